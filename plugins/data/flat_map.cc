// FlatMapDataset, InterleaveDataset and ParallelInterleaveDatasetV4: a function makes a dataset of
// each element. A flat map is an interleave of one dataset at a time.
//
// An interleave has places 0 to cycle_length - 1. It takes up to block_length elements from the
// dataset at a place, then goes on to the next place. A place whose dataset has ended gets the
// dataset of the next element of the input. The order does not depend on threads.
#include "captured.h"
#include "kernel.h"
#include "register.h"
#include "state.h"

namespace thalweg::data {
namespace {

class Interleave final : public Dataset {
 public:
  Interleave(std::string op, DatasetPtr input, Captured function, std::vector<uint32_t> element_types, int64_t cycle, int64_t block)
      : Dataset(std::move(op), std::move(element_types)),
        input_(std::move(input)),
        function_(std::move(function)),
        cycle_(cycle),
        block_(block) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override {
    return std::make_unique<Walk>(*this, input_->Begin(c, round), round);
  }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > " + name + "(" + tw::text(cycle_) + ", " + tw::text(block_) + ")";
  }

 private:
  struct Place {
    Element of;  // the input's element, from which the dataset is made again after a restore
    std::unique_ptr<Iterator> iterator;
  };

  class Walk final : public Iterator {
   public:
    Walk(const Interleave& of, std::unique_ptr<Iterator> input, uint64_t round)
        : input_(std::move(input)),
          function_(of.function_),
          types_(of.types),
          in_types_(of.input_->types),
          cycle_(size_t(of.cycle_)),
          block_(of.block_),
          round_(round) {}
    bool Next(Call& c, Element* out) override {
      for (;; c.CheckCancelled()) {
        if (at_ >= places_.size() && places_.size() < cycle_ && !over_) places_.emplace_back();
        if (places_.empty()) return false;
        if (at_ >= places_.size()) at_ = 0;
        Place& place = places_[at_];
        if (!place.iterator && !Fill(c, &place)) {
          places_.erase(places_.begin() + int64_t(at_));  // the input has ended
          taken_ = 0;
          continue;
        }
        if (place.iterator->Next(c, out)) {
          if (++taken_ == block_) Go();
          return true;
        }
        place = Place();
        Go();
      }
    }
    void Save(StateWriter& w) const override {
      w.Number(at_);
      w.Number(uint64_t(taken_));
      w.Number(over_);
      w.Number(places_.size());
      for (const Place& p : places_) {
        w.Number(p.iterator != nullptr);
        if (!p.iterator) continue;
        w.Values(p.of);
        p.iterator->Save(w);
      }
      input_->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      at_ = r.Number(cycle_);
      taken_ = int64_t(r.Number(uint64_t(block_)));
      over_ = r.Number(1) != 0;
      places_.clear();
      for (uint64_t n = r.Number(cycle_); n > 0; --n) {
        Place p;
        if (r.Number(1) != 0) {
          p.of = r.Values(c, in_types_);
          p.iterator = Made(c, p.of);
          p.iterator->Restore(c, r);
        }
        places_.push_back(std::move(p));
      }
      input_->Restore(c, r);
    }

   private:
    void Go() {
      ++at_;
      taken_ = 0;
      if (at_ >= cycle_) at_ = 0;
    }
    bool Fill(Call& c, Place* place) {
      Element e;
      if (over_ || !input_->Next(c, &e)) return over_ = true, false;
      place->iterator = Made(c, e);
      place->of = std::move(e);
      return true;
    }
    std::unique_ptr<Iterator> Made(Call& c, const Element& e) const {
      const Element results = (*function_)(c, e);
      if (results.size() != 1)
        Invalid("function '" + function_->name + "' must give one dataset; it gives " + std::to_string(results.size()) + " values");
      const DatasetPtr dataset = DatasetOf(c.f.f, &results[0].view());
      if (dataset->types != types_)
        Invalid("the dataset of function '" + function_->name + "' has elements of other types than 'output_types'");
      return dataset->Begin(c, round_);
    }

    const std::unique_ptr<Iterator> input_;
    const Captured function_;
    const std::vector<uint32_t> types_, in_types_;
    const size_t cycle_;
    const int64_t block_;
    const uint64_t round_;
    std::vector<Place> places_;
    size_t at_ = 0;      // the place that the next element comes from
    int64_t taken_ = 0;  // elements taken there without a break
    bool over_ = false;  // the input has ended
  };

  const DatasetPtr input_;
  const Captured function_;
  const int64_t cycle_, block_;
};

struct FlatMapMaker : Maker {
  explicit FlatMapMaker(const tw::Node& n) : Maker(n), function(n.s("f")) {}
  DatasetPtr Make(const Inputs& in) const { return Make("FlatMap", in, 1, INT64_MAX); }
  DatasetPtr Make(const char* name, const Inputs& in, int64_t cycle, int64_t block) const {
    auto captured = std::make_shared<CapturedFunction>(CapturedFunction{function, in.Kept(1)});
    return std::make_shared<Interleave>(name, in.Dataset(0), std::move(captured), types, cycle, block);
  }
  const std::string function;
};

struct InterleaveMaker : FlatMapMaker {
  using FlatMapMaker::FlatMapMaker;
  DatasetPtr Make(const Inputs& in) const {
    int64_t cycle = in.Int(2, "cycle_length");
    if (cycle == -1) cycle = kPlaces;
    if (cycle < 1 || cycle > kMostPlaces) {
      Invalid("'cycle_length' is " + tw::text(cycle) + "; it must be from 1 to " + tw::text(kMostPlaces) + ", or -1 for " +
              tw::text(kPlaces));
    }
    return FlatMapMaker::Make("Interleave", in, cycle, in.Least(3, "block_length", 1));
  }
  // The default must not depend on the machine, because the order depends on it.
  static constexpr int64_t kPlaces = 16, kMostPlaces = 1 << 20;
};

}  // namespace

void register_flat_map(tw::Plugin& p) {
  AddDataset<FlatMapMaker>(p, "FlatMapDataset(variant, _ -> variant) @CPU; keep other_arguments");
  AddDataset<InterleaveMaker>(p, "InterleaveDataset(variant, _, int64, int64 -> variant) @CPU; keep other_arguments");
  AddDataset<InterleaveMaker>(
      p, "ParallelInterleaveDatasetV4(variant, _, int64, int64, int64, int64, int64 -> variant) @CPU; keep other_arguments");
}

}  // namespace thalweg::data
