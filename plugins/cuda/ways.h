// A cache of ways, a library's plans for what it was asked to compute. The least recently used way
// is evicted first, because shapes that change from step to step would otherwise fill memory.
// Threads: one at a time.
#ifndef THALWEG_PLUGINS_CUDA_WAYS_H_
#define THALWEG_PLUGINS_CUDA_WAYS_H_

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <utility>

namespace thalweg::cuda {

// A user of a plan holds a reference while it runs: the plan may own functions.
template <class Question, class Way>
class Ways {
 public:
  explicit Ways(size_t most) : most_(most) {}

  // Returns the cached result for the question, or calls make() and caches its result. It also
  // caches NULL, which means that there is no plan.
  template <class Make>
  std::shared_ptr<const Way> Find(const Question& question, Make&& make) {
    if (const auto found = places_.find(question); found != places_.end()) {
      kept_.splice(kept_.begin(), kept_, found->second);
      return kept_.front().way;
    }
    std::shared_ptr<const Way> way = make();
    std::list<Kept> fresh(1, {nullptr, way});
    fresh.front().question = &places_.emplace(question, fresh.begin()).first->first;
    kept_.splice(kept_.begin(), fresh);
    if (kept_.size() <= most_) return way;
    places_.erase(places_.find(*kept_.back().question));
    kept_.pop_back();
    return way;
  }
  size_t size() const { return kept_.size(); }
  void Clear() {
    places_.clear();
    kept_.clear();
  }

 private:
  struct Kept {
    const Question* question;  // points into places_
    std::shared_ptr<const Way> way;
  };
  const size_t most_;
  std::list<Kept> kept_;  // most recently used first
  std::map<Question, typename std::list<Kept>::iterator> places_;
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_WAYS_H_
