// TakeDataset, SkipDataset and ShardDataset: elements chosen by their number.
#include "kernel.h"
#include "register.h"
#include "state.h"

namespace thalweg::data {
namespace {

// Passes over `first` elements, then gives each `step`-th one, at most `most` of them (-1: all).
class Chosen final : public Dataset {
 public:
  Chosen(std::string op, DatasetPtr input, int64_t first, int64_t step, int64_t most)
      : Dataset(std::move(op), input->types), input_(std::move(input)), first_(first), step_(step), most_(most) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override {
    return std::make_unique<Walk>(input_->Begin(c, round), first_, step_, most_);
  }
  int64_t Cardinality() const override {
    const int64_t n = input_->Cardinality();
    if (most_ == 0) return 0;
    if (n == kUnknown) return n;
    if (n == kInfinite) return most_ < 0 ? n : most_;
    const int64_t left = n > first_ ? 1 + (n - first_ - 1) / step_ : 0;
    return most_ < 0 ? left : std::min(left, most_);
  }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > " + name + "(" + tw::text(first_) + ", " + tw::text(step_) + ", " + tw::text(most_) + ")";
  }

 private:
  class Walk final : public Iterator {
   public:
    Walk(std::unique_ptr<Iterator> input, int64_t first, int64_t step, int64_t most)
        : input_(std::move(input)), first_(first), step_(step), most_(most), pass_(first) {}
    // An element that fails has a number, too: if failures are skipped, the shards stay apart.
    bool Next(Call& c, Element* out) override {
      if (over_ || given_ == most_) return false;
      while (pass_ > 0 && !over_) {
        const int64_t n = c.skips_failures ? 1 : pass_;
        tw_status* failed = tw::guard(c.host(), [&] { over_ = input_->Skip(c, n) < n; });
        if (!failed || (n == 1 && MaySkip(c.host()->status->code(failed)))) pass_ -= n;
        tw::check(failed);
      }
      if (over_) return false;
      tw_status* failed = tw::guard(c.host(), [&] { over_ = !input_->Next(c, out); });
      if (!failed || MaySkip(c.host()->status->code(failed))) pass_ = step_ - 1;
      tw::check(failed);
      given_ += !over_;
      return !over_;
    }
    void Save(StateWriter& w) const override {
      w.Number(uint64_t(given_));
      const bool usual = pass_ == Usual();
      w.Number(over_ ? 1 : usual ? 0 : kPassing);
      if (!over_ && !usual) w.Number(uint64_t(pass_));
      input_->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      given_ = int64_t(r.Number(most_ < 0 ? uint64_t{INT64_MAX} : uint64_t(most_)));
      const uint64_t state = r.Number(kPassing);
      over_ = state == 1;
      pass_ = state == kPassing ? int64_t(r.Number(INT64_MAX)) : Usual();
      input_->Restore(c, r);
    }

   private:
    const std::unique_ptr<Iterator> input_;
    static constexpr uint64_t kPassing = 2;  // in a position: the number of elements to pass over follows
    int64_t Usual() const { return given_ == 0 ? first_ : step_ - 1; }
    const int64_t first_, step_, most_;
    int64_t given_ = 0;
    int64_t pass_;  // elements to pass over before the next one
    bool over_ = false;
  };

  const DatasetPtr input_;
  const int64_t first_, step_, most_;
};

struct TakeMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    const int64_t count = in.Int(1, "count");
    return std::make_shared<Chosen>("Take", in.Dataset(0), 0, 1, count < 0 ? -1 : count);
  }
};

struct SkipMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    const int64_t count = in.Int(1, "count");
    if (count < 0) return std::make_shared<Chosen>("Skip", in.Dataset(0), 0, 1, 0);  // all are passed over
    return std::make_shared<Chosen>("Skip", in.Dataset(0), count, 1, -1);
  }
};

struct ShardMaker : Maker {
  explicit ShardMaker(const tw::Node& n) : Maker(n), non_empty(n.b("require_non_empty")) {}
  DatasetPtr Make(const Inputs& in) const {
    const int64_t shards = in.Least(1, "num_shards", 1), index = in.Least(2, "index", 0);
    if (index >= shards) Invalid("'index' is " + tw::text(index) + "; it must be below 'num_shards', which is " + tw::text(shards));
    DatasetPtr input = in.Dataset(0);
    const int64_t n = input->Cardinality();
    if (non_empty && n >= 0 && n < shards) {
      Invalid("the " + tw::text(n) + " elements are fewer than the " + tw::text(shards) +
              " shards; use fewer shards, or require_non_empty = false");
    }
    return std::make_shared<Chosen>("Shard", std::move(input), index, shards, -1);
  }
  const bool non_empty;
};

}  // namespace

void register_take(tw::Plugin& p) {
  AddDataset<TakeMaker>(p, "TakeDataset(variant, int64 -> variant) @CPU");
  AddDataset<SkipMaker>(p, "SkipDataset(variant, int64 -> variant) @CPU");
  AddDataset<ShardMaker>(p, "ShardDataset(variant, int64, int64 -> variant) @CPU");
}

}  // namespace thalweg::data
