// MapDataset and ParallelMapDatasetV2.
#include <deque>
#include <memory>

#include "captured.h"
#include "kernel.h"
#include "register.h"
#include "state.h"

namespace thalweg::data {
namespace {

constexpr int64_t kAutotune = -1;

struct ReleaseStatus {
  const tw_host* host;
  void operator()(tw_status* s) const { host->status->release(s); }
};
using Failure = std::unique_ptr<tw_status, ReleaseStatus>;

// An element on its way through the function.
struct Mapped {
  Element element;  // the result if `done`, else the input
  bool done = false;
  Failure failure{nullptr, {}};  // why there is no result
};

// Runs the function on elements at once, in place. The failure of an element is kept with it. If the step is cancelled, the elements
// without a result can be computed again, and the reason is thrown.
void MapAll(Call& c, const CapturedFunction& function, const std::vector<uint32_t>& types, Mapped* elements, size_t n) {
  const tw::Function& fn = c.Find(function.name);
  const auto one = [&](Mapped& m) {
    tw_status* failed = tw::guard(c.host(), [&] {
      Element result = c.Run(fn, m.element, function.captured);
      CheckResults(function.name, result, types);
      m.element = std::move(result);
      m.done = true;
    });
    m.failure = Failure(failed, {c.host()});
  };
  if (n == 1) {
    one(elements[0]);
  } else {
    c.f.parallel(n, 1, [&](uint64_t b, uint64_t e) {
      for (uint64_t i = b; i < e; ++i) one(elements[i]);
    });
  }
  if (tw_status* cancelled = tw::guard(c.host(), [&] { c.CheckCancelled(); })) {
    for (size_t i = 0; i < n; ++i) elements[i].failure.reset();
    tw::check(cancelled);
  }
}

class Map final : public Dataset {
 public:
  // calls: elements that are computed at once; kAutotune: as many as there are threads.
  Map(DatasetPtr input, Captured function, std::vector<uint32_t> element_types, int64_t calls)
      : Dataset("Map", std::move(element_types)), input_(std::move(input)), function_(std::move(function)), calls_(calls) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override {
    return std::make_unique<Walk>(input_->Begin(c, round), function_, input_->types, types, calls_);
  }
  int64_t Cardinality() const override { return input_->Cardinality(); }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > Map";
  }

 private:
  class Walk final : public Iterator {
   public:
    Walk(std::unique_ptr<Iterator> input, Captured function, std::vector<uint32_t> input_types, std::vector<uint32_t> types, int64_t calls)
        : input_(std::move(input)),
          function_(std::move(function)),
          input_types_(std::move(input_types)),
          types_(std::move(types)),
          calls_(calls) {}
    bool Next(Call& c, Element* out) override {
      if (ahead_.empty()) Compute(c, Calls(c));
      return Take(c, out);
    }
    void NextMany(Call& c, size_t n, std::vector<Element>* out) override {
      for (Element e; n > 0; --n) {
        // With parallel calls a whole batch is computed at once: no thread waits for the others
        // before the end of the batch.
        if (ahead_.empty()) Compute(c, calls_ == 1 ? 1 : std::min(std::max(n, Calls(c)), kMost));
        if (!Take(c, &e)) return;
        out->push_back(std::move(e));
      }
    }
    // Elements that failed ahead of their turn are computed again after Restore. A failure of the input has no element: the position can
    // be saved once the failure has been seen.
    void Save(StateWriter& w) const override {
      if (input_failure_ && !skipped_)
        throw tw::Error{TW_FAILED_PRECONDITION,
                        "Map: the position cannot be saved: what was read ahead failed; get the next elements until "
                        "they say why, or read one at a time (num_parallel_calls=1)"};
      w.Number(ahead_.size());
      for (const Mapped& m : ahead_) {
        w.Number(m.done);
        w.Values(m.element);
      }
      input_->Save(w);
    }
    void Restore(Call& c, StateReader& r) override {
      ahead_.clear();
      for (uint64_t n = r.Number(); n > 0; --n) {
        const bool done = r.Number(1);
        ahead_.push_back({r.Values(c, done ? types_ : input_types_), done});
      }
      input_->Restore(c, r);
    }

   private:
    static constexpr size_t kMost = 1024;  // elements computed between two looks at cancellation
    size_t Calls(Call& c) const {
      return calls_ == kAutotune ? c.host()->run->threads(c.f.f) : size_t(std::min<int64_t>(calls_, int64_t(kMost)));
    }
    // Gives the first of the elements ahead, or throws its failure, in the order of the input.
    bool Take(Call& c, Element* out) {
      if (ahead_.empty()) {
        tw::check(input_failure_.release());
        return false;
      }
      Mapped& first = ahead_.front();
      if (!first.done && !first.failure) MapAll(c, *function_, types_, &first, 1);
      Mapped taken = std::move(first);
      ahead_.pop_front();
      tw::check(taken.failure.release());
      *out = std::move(taken.element);
      return true;
    }
    // Computes up to n elements ahead. What the input gave before it failed is kept.
    void Compute(Call& c, size_t n) {
      if (input_failure_) return;
      std::vector<Element> elements;
      input_failure_ = Failure(tw::guard(c.host(), [&] { input_->NextMany(c, n, &elements); }), {c.host()});
      skipped_ = input_failure_ && c.skips_failures && MaySkip(c.host()->status->code(input_failure_.get()));
      std::vector<Mapped> mapped;
      for (Element& e : elements) mapped.push_back({std::move(e)});
      tw_status* ended = nullptr;
      if (!mapped.empty()) ended = tw::guard(c.host(), [&] { MapAll(c, *function_, types_, mapped.data(), mapped.size()); });
      for (Mapped& m : mapped) ahead_.push_back(std::move(m));
      if (ended) input_failure_.reset();  // the input may have failed for the same reason; it is asked again
      tw::check(ended);
    }
    const std::unique_ptr<Iterator> input_;
    const Captured function_;
    const std::vector<uint32_t> input_types_, types_;
    const int64_t calls_;
    std::deque<Mapped> ahead_;            // elements that nobody has taken
    Failure input_failure_{nullptr, {}};  // what the input failed with behind them
    bool skipped_ = false;                // an iterator above skips that failure, so a position may leave it out
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
