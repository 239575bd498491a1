// Tape: notes the ops that a thread runs on watched values, and differentiates the noted ops by their
// own gradients. The context runs these gradients like any op, so outer tapes note them, which gives
// derivatives of higher orders.
// Threads: only the thread that made the tape.
#pragma once
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/eager/eager.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

// The gradient of one source. If `rows` is set, the gradient is sparse; see Gradient (autodiff.h). If
// both are empty, no target depends on the source.
struct TapeGradient {
  Tensor values, rows;
};

class Tape {
 public:
  explicit Tape(std::shared_ptr<Eager> eager);
  ~Tape();
  // Notes ops on this value from now on. Errors: INVALID_ARGUMENT for an element type without
  // gradients.
  Status Watch(const Tensor& value);
  void Stop() { stopped_ = true; }
  // Returns true if the tape notes the ops that this thread runs now.
  bool Hears() const { return IsOfThisThread() && !stopped_; }  // in this order: other threads must not read stopped_
  // Notes an op that ran, if it read a watched value, a variable, or an output of a noted op, and if
  // one of its outputs can have a gradient.
  void Note(const std::shared_ptr<EagerEntry>& entry, Prepared* op, const Tensor* in, const Tensor* out);
  // Computes d(sum of targets)/d(sources). dys: incoming gradients of the targets, one each; an empty
  // tensor, or an empty list, stands for ones.
  // Errors: INVALID_ARGUMENT (a type without gradients, a dy of another type or shape); those of
  // AddGradients and of the ops of gradients.
  Status Gradient(const std::vector<Tensor>& targets, const std::vector<Tensor>& dys, const std::vector<Tensor>& sources,
                  std::vector<TapeGradient>* out);
  bool IsOfThisThread() const { return thread_ == __builtin_thread_pointer(); }

 private:
  struct Noted {
    std::shared_ptr<EagerEntry> entry;
    Prepared* op;
    std::vector<Tensor> in, out;
  };
  // Identifies a value by its tensor, or by the variable of its handle.
  using Id = const void*;
  // All incoming gradients of one value.
  struct Arriving {
    std::vector<Tensor> dense;
    std::vector<TapeGradient> sparse;
    void Add(TapeGradient g);
  };
  static Id IdOf(const Tensor& value);
  using All = std::unordered_map<Id, Arriving>;
  Status Seed(const std::vector<Tensor>& targets, const std::vector<Tensor>& dys, All* arriving);
  Status PassBack(const Noted& noted, const std::unordered_set<Id>& useful, All* arriving);
  // Sums all incoming gradients of a value into *sum and returns `sum`, or NULL if there are none.
  StatusOr<const TapeGradient*> Collect(Id id, All* arriving, TapeGradient* sum);
  StatusOr<TapeGradient> Sum(const Arriving& a);

  const std::shared_ptr<Eager> eager_;
  void* const thread_;
  bool stopped_ = false;
  std::unordered_set<Id> watched_;  // and outputs of noted ops
  std::vector<Tensor> kept_;        // watched tensors, so that no other tensor reuses their addresses
  std::vector<Noted> noted_;
};

}  // namespace thalweg
