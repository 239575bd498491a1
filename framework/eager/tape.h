// Tape: notes the ops that a thread runs on watched values, and differentiates the noted ops by their
// own gradients. The context runs these gradients like any op, so outer tapes note them, which gives
// derivatives of higher orders. A tape need not keep all values of what it noted: see Fold.
// Threads: only the thread that made the tape.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class Eager;
class EagerEntry;
class Prepared;

// The gradient of one source. If `rows` is set, the gradient is sparse; see Gradient (autodiff.h). If
// both are empty, no target depends on the source.
struct TapeGradient {
  Tensor values, rows;
};

// Ops that ran one after the other, without the values between them, which are recomputed when a
// gradient reads them. Values have numbers; the inputs have the first ones.
struct TapePart {
  struct Step {
    std::shared_ptr<EagerEntry> entry;
    Prepared* op = nullptr;
    std::shared_ptr<const TapePart> part;  // an inner part, in place of an op
    std::vector<size_t> in, out;           // numbers of values
  };
  std::vector<Step> steps;
  std::vector<size_t> out;  // numbers of the outputs
  size_t n_values = 0;
};

class Tape {
 public:
  // A noted op, or a noted part.
  struct Noted {
    std::shared_ptr<EagerEntry> entry;
    Prepared* op = nullptr;
    std::vector<Tensor> in, out;
    std::shared_ptr<const TapePart> part;  // NULL for an op
    bool MayRepeat() const { return part || op->MayRepeat(); }
  };
  using Counts = std::unordered_map<const tw_tensor*, int32_t>;
  using Tensors = std::unordered_set<const tw_tensor*>;

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
  // Marks the beginning of a part.
  void BeginPart(uint64_t part) { begun_.emplace_back(part, noted_.size()); }
  // Adds to *held how often this tape holds each tensor since the part began. Returns false if it did
  // not note the beginning.
  bool CountHeld(uint64_t part, Counts* held) const;
  // Ends a part: replaces each run of ops without state that were noted since its beginning by one
  // TapePart, and appends these ops to *dropped. The inputs of the run are kept, and so are outputs
  // in `used` (values with other owners than tapes), or that an op outside of the run reads. Results
  // of ops with state (reads of variables, random draws) are inputs of runs, and so are values in
  // `used`: a run that read one of its own outputs could not give a gradient of that output.
  void Fold(uint64_t part, const Tensors& used, std::vector<Noted>* dropped);
  // Computes d(sum of targets)/d(sources). dys: incoming gradients of the targets, one each; an empty
  // tensor, or an empty list, stands for ones.
  // Errors: INVALID_ARGUMENT (a type without gradients, a dy of another type or shape); those of
  // AddGradients and of the ops of gradients.
  Status Gradient(const std::vector<Tensor>& targets, const std::vector<Tensor>& dys, const std::vector<Tensor>& sources,
                  std::vector<TapeGradient>* out);
  bool IsOfThisThread() const { return thread_ == __builtin_thread_pointer(); }

 private:
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
  using Ids = std::unordered_set<Id>;
  void FoldRun(std::vector<Noted>* run, const Counts& reads, const Tensors& used, std::vector<Noted>* dropped);
  Status PassBack(const Noted& noted, const Ids& useful, All* arriving);
  Status PassBackOp(const Noted& noted, const Ids& useful, All* arriving);
  Status PassBackPart(const Noted& noted, const Ids& useful, All* arriving);
  // Runs the ops of a part again and differentiates this run.
  Status DifferentiateAgain(const Noted& noted, const Ids& useful, All* arriving);
  // Runs ops of a part again. values: the inputs, and values that are known; the others are added.
  Status RunPart(const TapePart& part, std::vector<Tensor>* values);
  // Sums all incoming gradients of a value into *sum and returns `sum`, or NULL if there are none.
  StatusOr<const TapeGradient*> Collect(Id id, All* arriving, TapeGradient* sum);
  StatusOr<TapeGradient> Sum(const Arriving& a);

  const std::shared_ptr<Eager> eager_;
  void* const thread_;
  bool stopped_ = false;
  std::unordered_set<Id> watched_;  // and outputs of noted ops
  std::vector<Tensor> kept_;        // watched tensors, so that no other tensor reuses their addresses
  std::vector<Noted> noted_;
  std::vector<std::pair<uint64_t, size_t>> begun_;  // parts that have not ended, and how many ops were noted before each
};

}  // namespace thalweg
