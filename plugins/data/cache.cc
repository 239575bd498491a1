// CacheDatasetV2: keeps the elements of the first whole pass in memory, for all later passes with
// the same memory (DummyMemoryCache). PrefetchDataset and OptionsDataset: pass their elements on (README.md).
#include <mutex>

#include "kernel.h"
#include "register.h"
#include "state.h"
#include "thalweg/cpp/held_resource.hpp"

namespace thalweg::data {
namespace {

// The elements, once a pass has read all of them. Threads: any.
class Store {
 public:
  using Elements = std::shared_ptr<const std::vector<Element>>;
  Elements elements() const {
    std::lock_guard lock(mu_);
    return elements_;
  }
  uint64_t round() const {
    std::lock_guard lock(mu_);
    return round_;
  }
  // Has no effect if another pass was complete before.
  void Fill(Elements elements, uint64_t round) {
    std::lock_guard lock(mu_);
    if (elements_) return;
    elements_ = std::move(elements);
    round_ = round;
  }

 private:
  mutable std::mutex mu_;  // guards the two below
  Elements elements_;
  uint64_t round_ = 0;  // of the pass that filled it
};

class Cache final : public Dataset {
 public:
  Cache(DatasetPtr input, std::shared_ptr<Store> store)
      : Dataset("Cache", input->types), input_(std::move(input)), store_(std::move(store)) {}
  std::unique_ptr<Iterator> Begin(Call& c, uint64_t round) const override { return std::make_unique<Walk>(c, input_, store_, round); }
  int64_t Cardinality() const override { return input_->Cardinality(); }
  void Describe(std::string* to) const override {
    input_->Describe(to);
    *to += " > Cache";
  }

 private:
  class Walk final : public Iterator {
   public:
    Walk(Call& c, DatasetPtr dataset, std::shared_ptr<Store> store, uint64_t round)
        : dataset_(std::move(dataset)), store_(std::move(store)) {
      known_ = store_->elements();
      round_ = known_ ? store_->round() : round;
      if (!known_) Record(c);
    }
    bool Next(Call& c, Element* out) override {
      if (known_) {
        if (at_ == known_->size()) return false;
        *out = (*known_)[at_++];
        return true;
      }
      if (!input_->Next(c, out)) {
        known_ = std::move(read_);
        store_->Fill(known_, round_);
        input_.reset();
        return false;
      }
      read_->push_back(*out);
      ++at_;
      return true;
    }
    void Save(StateWriter& w) const override {
      w.Number(round_);
      w.Number(at_);
    }
    // Reads the elements up to the position again, unless the store has them.
    void Restore(Call& c, StateReader& r) override {
      const uint64_t round = r.Number(), at = r.Number(INT64_MAX);
      at_ = 0;
      if (known_ && store_->round() == round) {
        if (at > known_->size()) StateReader::Damaged();
        at_ = at;
        return;
      }
      known_.reset();
      round_ = round;
      Record(c);
      Element e;
      for (; at_ < at; c.CheckCancelled()) {
        bool more = true;
        tw_status* failed = tw::guard(c.host(), [&] { more = Next(c, &e); });
        if (failed && c.skips_failures && MaySkip(c.host()->status->code(failed))) {
          c.host()->status->release(failed);  // it was skipped before, too
          continue;
        }
        tw::check(failed);
        if (!more) StateReader::Damaged();
      }
    }

   private:
    void Record(Call& c) {
      input_ = dataset_->Begin(c, round_);
      read_ = std::make_shared<std::vector<Element>>();
    }
    const DatasetPtr dataset_;
    const std::shared_ptr<Store> store_;
    Store::Elements known_;
    std::shared_ptr<std::vector<Element>> read_;
    std::unique_ptr<Iterator> input_;  // while the elements are not known
    uint64_t round_ = 0;
    size_t at_ = 0;
  };

  const DatasetPtr input_;
  const std::shared_ptr<Store> store_;
};

struct CacheMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    const std::string_view file = in.Text(1, "filename");
    if (!file.empty()) Fail(TW_UNIMPLEMENTED, "'filename' is '" + std::string(file) + "'; caches are in memory only, so leave it empty");
    const tw::HeldResource memory(in.c.f, in.frame()->in_at[2]);
    return std::make_shared<Cache>(in.Dataset(0), memory.copy<std::shared_ptr<Store>>("the memory of the cache"));
  }
};

// DummyMemoryCache: a Store that belongs to the node, so that it outlives the steps that make the
// dataset.
constexpr char kStore[] = "org.thalweg.dataset_cache";

class MakeStore {
 public:
  explicit MakeStore(const tw::Node& n) : name_(n.name()) {}
  void operator()(tw::Frame f) const {
    const tw_resource_key key = {TW_SIZED(tw_resource_key), TW_S(kStore), nullptr, 0, name_.data(), name_.size()};
    const auto make = [](const tw_host* h, void*, void** out) {
      return tw::guard(h, [&] { *out = new std::shared_ptr<Store>(std::make_shared<Store>()); });
    };
    tw::check(f.f->host->resource->open(f.f, &key, make, nullptr, 0));
  }

 private:
  const std::string name_;
};

struct PassMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const { return in.Dataset(0); }
};
struct PrefetchMaker : Maker {
  using Maker::Maker;
  DatasetPtr Make(const Inputs& in) const {
    in.Least(1, "buffer_size", -1);
    return in.Dataset(0);
  }
};

}  // namespace

void register_cache(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kStore), 1, nullptr,
              [](const tw_host*, void* object) { delete static_cast<std::shared_ptr<Store>*>(object); }, nullptr, nullptr});
  p.kernel<MakeStore>("DummyMemoryCache @CPU");
  AddDataset<CacheMaker>(p, "CacheDatasetV2(variant, string, resource -> variant) @CPU");
  AddDataset<PassMaker>(p, "OptionsDataset(variant -> variant) @CPU");
  AddDataset<PrefetchMaker>(p, "PrefetchDataset(variant, int64 -> variant) @CPU");
}

}  // namespace thalweg::data
