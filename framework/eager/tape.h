// Tape: notes the ops that a thread runs on watched values, and differentiates what it noted by the ops' own gradients. The gradients run
// on the context like any op, so that tapes around this one note them: that is how higher orders come about.
// Threads: the one that made it.
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

// The gradient of one source; rows set: sparse, see Gradient (autodiff.h); both empty: no target depends on it.
struct TapeGradient {
  Tensor values, rows;
};

class Tape {
 public:
  explicit Tape(std::shared_ptr<Eager> eager);
  ~Tape();
  // From now on ops on this value are noted. Errors: INVALID_ARGUMENT for an element type without gradients.
  Status Watch(const Tensor& value);
  void Stop() { stopped_ = true; }
  // Whether what this thread runs now is noted.
  bool Hears() const { return !stopped_ && thread_ == __builtin_thread_pointer(); }
  // Notes an op that ran, if it worked on a watched value, on a variable, or on what was made of these.
  void Note(const std::shared_ptr<EagerEntry>& entry, Prepared* op, const Tensor* in, const Tensor* out);
  // d(sum of targets)/d(sources). dys: gradients that arrive at the targets, one each, an empty one being ones; or none at all.
  // Errors: INVALID_ARGUMENT (a type without gradients, a dy of another type); those of AddGradients and of the gradients' own ops.
  Status Gradient(const std::vector<Tensor>& targets, const std::vector<Tensor>& dys, const std::vector<Tensor>& sources,
                  std::vector<TapeGradient>* out);
  bool IsOfThisThread() const { return thread_ == __builtin_thread_pointer(); }

 private:
  struct Noted {
    std::shared_ptr<EagerEntry> entry;
    Prepared* op;
    std::vector<Tensor> in, out;
  };
  // What a value is known by: its tensor, or the variable that a handle leads to.
  using Id = const void*;
  // All that arrives at one value.
  struct Arriving {
    std::vector<Tensor> dense;
    std::vector<TapeGradient> sparse;
    void Add(TapeGradient g);
  };
  static Id IdOf(const Tensor& value);
  using All = std::unordered_map<Id, Arriving>;
  Status Seed(const std::vector<Tensor>& targets, const std::vector<Tensor>& dys, All* arriving);
  Status PassBack(const Noted& noted, const std::unordered_set<Id>& useful, All* arriving);
  // Makes one of all that arrived. Answers NULL where nothing did.
  StatusOr<const TapeGradient*> Collect(Id id, All* arriving, TapeGradient* sum);
  StatusOr<TapeGradient> Sum(const Arriving& a);

  const std::shared_ptr<Eager> eager_;
  void* const thread_;
  bool stopped_ = false;
  std::unordered_set<Id> watched_;  // and what was made of watched values
  std::vector<Tensor> kept_;        // watched ones, so that no other tensor gets their place
  std::vector<Noted> noted_;
};

}  // namespace thalweg
