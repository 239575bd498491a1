// RepeatDataset and ConcatenateDataset: passes one after the other.
#include "kernel.h"
#include "random.h"
#include "register.h"
#include "state.h"

namespace thalweg::data {
namespace {

// Gives the elements of parts 0, 1, ... `passes - 1` (-1: without end). Part k is a new pass over
// inputs[k % inputs].
class Passes final : public Dataset {
 public:
  Passes(std::string op, std::vector<DatasetPtr> inputs, int64_t passes)
      : Dataset(std::move(op), inputs[0]->types), inputs_(std::move(inputs)), passes_(passes) {}
  std::unique_ptr<Iterator> Begin(Call&, uint64_t round) const override { return std::make_unique<Walk>(*this, round); }
  int64_t Cardinality() const override {
    int64_t sum = 0;
    if (passes_ == 0) return 0;
    for (const DatasetPtr& d : inputs_) {
      const int64_t n = d->Cardinality();
      if (n < 0) return n;
      if (__builtin_add_overflow(sum, n, &sum)) return kUnknown;
    }
    if (passes_ < 0) return sum > 0 ? kInfinite : 0;
    int64_t all = 0;
    return __builtin_mul_overflow(sum, passes_ / int64_t(inputs_.size()), &all) ? kUnknown : all;
  }
  void Describe(std::string* to) const override {
    for (const DatasetPtr& d : inputs_) {
      d->Describe(to);
      *to += " > ";
    }
    *to += name + "(" + tw::text(passes_) + ")";
  }

 private:
  class Walk final : public Iterator {
   public:
    Walk(const Passes& of, uint64_t round) : inputs_(of.inputs_), passes_(of.passes_), round_(round) {}
    bool Next(Call& c, Element* out) override {
      for (;;) {
        if (pass_ == passes_ || over_) return false;
        if (!input_) input_ = Begin(c);
        if (input_->Next(c, out)) return empty_ = false, true;
        input_.reset();
        ++pass_;
        // A pass over all inputs without an element would be followed by others without end.
        if (uint64_t(pass_) % inputs_.size() == 0) {
          over_ = passes_ < 0 && empty_;
          empty_ = true;
          c.CheckCancelled();
        }
      }
    }
    void Save(StateWriter& w) const override {
      w.Number(uint64_t(pass_));
      w.Number(empty_);
      w.Number(over_);
      w.Number(input_ != nullptr);
      if (input_) input_->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      pass_ = int64_t(r.Number(passes_ < 0 ? uint64_t{INT64_MAX} : uint64_t(passes_)));
      empty_ = r.Number(1) != 0;
      over_ = r.Number(1) != 0;
      input_.reset();
      if (r.Number(1) == 0) return;
      input_ = Begin(c);
      input_->Restore(c, r);
    }

   private:
    std::unique_ptr<Iterator> Begin(Call& c) const {
      const uint64_t k = uint64_t(pass_) / inputs_.size();
      return inputs_[uint64_t(pass_) % inputs_.size()]->Begin(c, round_ == 0 ? k : k == 0 ? round_ : Combined(round_, k));
    }
    const std::vector<DatasetPtr> inputs_;
    const int64_t passes_;
    const uint64_t round_;
    std::unique_ptr<Iterator> input_;
    int64_t pass_ = 0;
    bool empty_ = true, over_ = false;
  };

  const std::vector<DatasetPtr> inputs_;
  const int64_t passes_;
};

struct RepeatMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    const int64_t count = in.Int(1, "count");
    return std::make_shared<Passes>("Repeat", std::vector<DatasetPtr>{in.Dataset(0)}, count < 0 ? -1 : count);
  }
};

struct ConcatenateMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    std::vector<DatasetPtr> both = {in.Dataset(0), in.Dataset(1)};
    if (both[0]->types != both[1]->types) Invalid("the datasets have elements of different types; map one of them to the other's types");
    return std::make_shared<Passes>("Concatenate", std::move(both), 2);
  }
};

}  // namespace

void register_repeat(tw::Plugin& p) {
  AddDataset<RepeatMaker>(p, "RepeatDataset(variant, int64 -> variant) @CPU");
  AddDataset<ConcatenateMaker>(p, "ConcatenateDataset(variant, variant -> variant) @CPU");
}

}  // namespace thalweg::data
