// MapDataset and ParallelMapDatasetV2.
#include <atomic>
#include <deque>

#include "captured.h"
#include "kernel.h"
#include "register.h"
#include "state.h"

namespace thalweg::data {
namespace {

constexpr int64_t kAutotune = -1;

// Runs the function on elements at once, in place.
void MapAll(Call& c, const CapturedFunction& function, const std::vector<uint32_t>& types, Element* elements, size_t n) {
  const tw::Function& fn = c.Find(function.name);
  const auto one = [&](Element& e) {
    e = c.Run(fn, e, function.captured);
    CheckResults(function.name, e, types);
  };
  if (n == 1) return one(elements[0]);
  // The first failure in the order of the elements is reported, whatever thread found it.
  std::vector<tw_status*> failed(n, nullptr);
  std::atomic<bool> any{false};
  c.f.parallel(n, 1, [&](uint64_t b, uint64_t e) {
    for (uint64_t i = b; i < e && !any.load(std::memory_order_relaxed); ++i) {
      failed[i] = tw::guard(c.host(), [&] { one(elements[i]); });
      if (failed[i]) any = true;
    }
  });
  tw_status* first = nullptr;
  for (tw_status* s : failed) {
    if (s && first)
      c.host()->status->release(s);
    else if (s)
      first = s;
  }
  tw::check(first);
}

class Map final : public Dataset {
 public:
  // calls: elements that are computed at once; kAutotune: as many as there are threads.
  Map(DatasetPtr input, Captured function, std::vector<uint32_t> element_types, int64_t calls)
      : Dataset("Map", std::move(element_types)), input_(std::move(input)), function_(std::move(function)), calls_(calls) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override {
    return std::make_unique<Walk>(input_->Begin(c, round), function_, types, calls_);
  }
  int64_t Cardinality() const override { return input_->Cardinality(); }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > Map";
  }

 private:
  class Walk final : public Iterator {
   public:
    Walk(std::unique_ptr<Iterator> input, Captured function, std::vector<uint32_t> types, int64_t calls)
        : input_(std::move(input)), function_(std::move(function)), types_(std::move(types)), calls_(calls) {}
    bool Next(Call& c, Element* out) override {
      if (ready_.empty()) Compute(c, Calls(c));
      if (ready_.empty()) return false;
      *out = std::move(ready_.front());
      ready_.pop_front();
      return true;
    }
    void NextMany(Call& c, size_t n, std::vector<Element>* out) override {
      while (n > 0) {
        // With parallel calls a whole batch is computed at once: no thread waits for the others
        // before the end of the batch.
        if (ready_.empty()) Compute(c, calls_ == 1 ? 1 : std::min(std::max(n, Calls(c)), kMost));
        if (ready_.empty()) return;
        for (; n > 0 && !ready_.empty(); --n) {
          out->push_back(std::move(ready_.front()));
          ready_.pop_front();
        }
      }
    }
    void Save(StateWriter& w) const override {
      w.Elements({ready_.begin(), ready_.end()});
      input_->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      std::vector<Element> ready = r.Elements(c, types_);
      ready_.assign(ready.begin(), ready.end());
      input_->Restore(c, r);
    }

   private:
    static constexpr size_t kMost = 1024;  // elements computed between two looks at cancellation
    size_t Calls(Call& c) const {
      return calls_ == kAutotune ? c.host()->run->threads(c.f.f) : size_t(std::min<int64_t>(calls_, int64_t(kMost)));
    }
    void Compute(Call& c, size_t n) {
      std::vector<Element> elements;
      input_->NextMany(c, n, &elements);
      if (elements.empty()) return;
      MapAll(c, *function_, types_, elements.data(), elements.size());
      for (Element& e : elements) ready_.push_back(std::move(e));
      if (n > 1) c.CheckCancelled();
    }
    const std::unique_ptr<Iterator> input_;
    const Captured function_;
    const std::vector<uint32_t> types_;
    const int64_t calls_;
    std::deque<Element> ready_;  // results that nobody has taken
  };

  const DatasetPtr input_;
  const Captured function_;
  const int64_t calls_;
};

struct MapMaker : Maker {
  explicit MapMaker(const tw::Node& n) : Maker(n), function(n.s("f")) {}
  DatasetPtr Make(const Inputs& in) const { return Make(in, 1); }
  DatasetPtr Make(const Inputs& in, int64_t calls) const {
    return std::make_shared<Map>(in.Dataset(0), std::make_shared<CapturedFunction>(CapturedFunction{function, in.Kept(1)}), types, calls);
  }
  const std::string function;
};

struct ParallelMapMaker : MapMaker {
  using MapMaker::MapMaker;
  DatasetPtr Make(const Inputs& in) const {
    const int64_t calls = in.Int(2, "num_parallel_calls");
    if (calls < 1 && calls != kAutotune)
      Invalid("'num_parallel_calls' is " + tw::text(calls) + "; it must be at least 1, or -1 for the number of threads");
    return MapMaker::Make(in, calls);
  }
};

}  // namespace

void register_map(tw::Plugin& p) {
  AddDataset<MapMaker>(p, "MapDataset(variant, _ -> variant) @CPU; keep other_arguments");
  AddDataset<ParallelMapMaker>(p, "ParallelMapDatasetV2(variant, _, int64 -> variant) @CPU; keep other_arguments");
}

}  // namespace thalweg::data
