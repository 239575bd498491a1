// ZipDataset: an element of each dataset, side by side.
#include "kernel.h"
#include "register.h"
#include "state.h"

namespace thalweg::data {
namespace {

std::vector<uint32_t> Joined(const std::vector<DatasetPtr>& inputs) {
  std::vector<uint32_t> types;
  for (const DatasetPtr& d : inputs) types.insert(types.end(), d->types.begin(), d->types.end());
  return types;
}

class Zip final : public Dataset {
 public:
  explicit Zip(std::vector<DatasetPtr> inputs) : Dataset("Zip", Joined(inputs)), inputs_(std::move(inputs)) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override {
    std::vector<std::unique_ptr<Iterator>> all;
    for (const DatasetPtr& d : inputs_) all.push_back(d->Begin(c, round));
    return std::make_unique<Walk>(std::move(all));
  }
  int64_t Cardinality() const override {
    int64_t least = kInfinite;
    for (const DatasetPtr& d : inputs_) {
      const int64_t n = d->Cardinality();
      if (n == kUnknown) return n;
      if (n >= 0) least = least < 0 ? n : std::min(least, n);
    }
    return least;
  }
  void Describe(std::string* to) const override {
    *to += "Zip(";
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (i > 0) *to += "; ";
      inputs_[i]->Describe(to);
    }
    *to += ")";
  }

 private:
  class Walk final : public Iterator {
   public:
    explicit Walk(std::vector<std::unique_ptr<Iterator>> inputs) : inputs_(std::move(inputs)) {}
    bool Next(Call& c, Element* out) override {
      out->clear();
      Element part;
      tw_status* failed = nullptr;
      for (size_t i = 0; i < inputs_.size() && !over_; ++i) {
        tw_status* s = tw::guard(c.host(), [&] {
          over_ = !inputs_[i]->Next(c, &part);
          if (!over_) out->insert(out->end(), part.begin(), part.end());
        });
        if (!s) continue;
        // The others go on, too, so that the elements behind one that failed stay side by side.
        const bool element = MaySkip(c.host()->status->code(s));
        if (failed && element) {
          c.host()->status->release(s);
          continue;
        }
        if (failed) c.host()->status->release(failed);
        failed = s;
        if (!element) break;
      }
      tw::check(failed);
      return !over_;
    }
    void Save(StateWriter& w) const override {
      w.Number(over_);
      for (const auto& i : inputs_) i->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      over_ = r.Number(1) != 0;
      for (const auto& i : inputs_) i->Restore(c, r);
    }

   private:
    const std::vector<std::unique_ptr<Iterator>> inputs_;
    bool over_ = false;
  };

  const std::vector<DatasetPtr> inputs_;
};

struct ZipMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const { return std::make_shared<Zip>(in.Datasets(0)); }
};

}  // namespace

void register_zip(tw::Plugin& p) { AddDataset<ZipMaker>(p, "ZipDataset(variant -> variant) @CPU"); }

}  // namespace thalweg::data
