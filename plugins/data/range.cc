// RangeDataset and RandomDataset: numbers without an input.
#include <cstring>

#include "kernel.h"
#include "random.h"
#include "register.h"
#include "state.h"

namespace thalweg::data {
namespace {

// Writes `value` into a scalar of an integer or floating-point type.
Ref Scalar(const Call& c, uint32_t dtype, int64_t value) {
  Ref t = c.Make(dtype, {});
  void* to = t.view().data;
  switch (dtype) {
    case TW_INT64: *static_cast<int64_t*>(to) = value; break;
    case TW_INT32: *static_cast<int32_t*>(to) = int32_t(value); break;
    case TW_FLOAT: *static_cast<float*>(to) = float(value); break;
    case TW_DOUBLE: *static_cast<double*>(to) = double(value); break;
    default: Invalid("'output_types' is " + tw::dtype_text(dtype) + "; this dataset gives int64, int32, float or double");
  }
  return t;
}

class Range final : public Dataset {
 public:
  Range(std::vector<uint32_t> element_types, int64_t start, int64_t stop, int64_t step)
      : Dataset("Range", std::move(element_types)), start_(start), step_(step) {
    if (step == 0) Invalid("'step' is 0; it must not be");
    if (types.size() != 1) Invalid("'output_types' has " + std::to_string(types.size()) + " types; it must have one");
    const auto span = static_cast<__int128>(stop) - start;
    const __int128 n =
        step > 0 ? (span > 0 ? (span + step - 1) / step : 0) : (span < 0 ? (-span - step - 1) / -static_cast<__int128>(step) : 0);
    if (n > INT64_MAX) Invalid("the range has more than 2^63 numbers; use a larger step");
    n_ = int64_t(n);
  }
  std::unique_ptr<Iterator> Begin(Call&, uint64_t) const override { return std::make_unique<Walk>(types[0], start_, n_, step_); }
  int64_t Cardinality() const override { return n_; }
  void Describe(std::string* to) const override { *to += "Range(" + tw::text(start_) + ", " + tw::text(n_) + ", " + tw::text(step_) + ")"; }

 private:
  class Walk final : public Iterator {
   public:
    Walk(uint32_t dtype, int64_t start, int64_t n, int64_t step) : dtype_(dtype), start_(start), n_(n), step_(step) {}
    bool Next(Call& c, Element* out) override {
      if (at_ == n_) return false;
      out->assign(1, Scalar(c, dtype_, int64_t(uint64_t(start_) + uint64_t(at_) * uint64_t(step_))));
      ++at_;
      return true;
    }
    int64_t Skip(Call&, int64_t n) override {
      n = std::min(n, n_ - at_);
      at_ += n;
      return n;
    }
    void Save(StateWriter& w) const override { w.Number(uint64_t(at_)); }
    void Restore(Call&, StateReader& r) override { at_ = int64_t(r.Number(uint64_t(n_))); }

   private:
    const uint32_t dtype_;
    const int64_t start_, n_, step_;
    int64_t at_ = 0;
  };

  const int64_t start_, step_;
  int64_t n_ = 0;
};

struct RangeMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    return std::make_shared<Range>(types, in.Int(0, "start"), in.Int(1, "stop"), in.Int(2, "step"));
  }
};

// An endless sequence of numbers in [0, 2^32), the same in each pass.
class Draws final : public Dataset {
 public:
  Draws(std::vector<uint32_t> element_types, uint64_t seed) : Dataset("Random", std::move(element_types)), seed_(seed) {}
  std::unique_ptr<Iterator> Begin(Call&, uint64_t) const override { return std::make_unique<Walk>(types.at(0), seed_); }
  int64_t Cardinality() const override { return kInfinite; }

 private:
  class Walk final : public Iterator {
   public:
    Walk(uint32_t dtype, uint64_t seed) : dtype_(dtype), random_(seed) {}
    bool Next(Call& c, Element* out) override {
      out->assign(1, Scalar(c, dtype_, int64_t(random_.Next() >> 32)));
      return true;
    }
    void Save(StateWriter& w) const override { w.Number(random_.state()); }
    void Restore(Call&, StateReader& r) override { random_ = Random(r.Number()); }

   private:
    const uint32_t dtype_;
    Random random_;
  };
  const uint64_t seed_;
};

struct DrawsMaker : Maker {
  explicit DrawsMaker(const tw::Node& n) : Maker(n) {
    if (types != std::vector<uint32_t>{TW_INT64}) Invalid("'output_types' must be [int64]");
  }
  DatasetPtr Make(const Inputs& in) const {
    return std::make_shared<Draws>(types, Combined(uint64_t(in.Int(0, "seed")), uint64_t(in.Int(1, "seed2"))));
  }
};

}  // namespace

void register_range(tw::Plugin& p) {
  AddDataset<RangeMaker>(p, "RangeDataset(int64, int64, int64 -> variant) @CPU");
  AddDataset<DrawsMaker>(p, "RandomDataset(int64, int64 -> variant) @CPU");
}

}  // namespace thalweg::data
