// PlanCache: the plans of one signature, the feed shapes that they are known to serve, and idle
// step states. A run with known shapes finds all three without a heap call. The session options
// max_shape_plans and max_shapes bound the cache.
// Threads: any. Plans are made one at a time, while steps run.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/base/status.h"
#include "framework/plan/plan.h"

namespace thalweg {

class StepState;

// Counts since the session was made, except `plans` and `shapes`, which count the present entries.
struct PlanCounts {
  uint64_t plans = 0, shapes = 0, hits = 0, shape_hits = 0, misses = 0, evictions = 0;
  void Add(const PlanCounts& o) {
    plans += o.plans;
    shapes += o.shapes;
    hits += o.hits;
    shape_hits += o.shape_hits;
    misses += o.misses;
    evictions += o.evictions;
  }
};

class PlanCache {
 public:
  struct Entry {
    std::unique_ptr<Plan> plan;
    std::vector<std::unique_ptr<StepState>> idle;
  };
  // The parts of a run: a plan, its sizes, and a state to bind to them. `state` is NULL if no state
  // is idle.
  struct Found {
    Entry* entry = nullptr;
    const Plan* plan = nullptr;                // the entry's plan at the time of the lookup
    std::shared_ptr<const PlanShapes> shapes;  // NULL if the state is already bound to them
    std::unique_ptr<StepState> state;
    bool made = false;  // the plan was made for this run
  };
  // Makes plans. Keep is called for each set of sizes before the cache keeps it; an error refuses
  // the set.
  struct Maker {
    virtual StatusOr<std::unique_ptr<Plan>> MakePlan(const std::vector<Shape>& feed_shapes) = 0;
    virtual Status Keep(const PlanShapes& shapes) = 0;

   protected:
    ~Maker() = default;
  };

  PlanCache(size_t n_feeds, uint32_t max_plans, uint32_t max_shapes, Maker* maker);
  ~PlanCache();

  // Returns true and fills *out if the shapes are known.
  bool Find(const Tensor* feeds, Found* out);
  // As Find, but makes a plan or sizes if the shapes are unknown. Errors: those of planning.
  Status Prepare(const Tensor* feeds, Found* out);
  // For reports: gives no state and does not count as a run.
  Status Prepare(const std::vector<Shape>& feed_shapes, Found* out);
  // Gives the plan of the latest run; `entry` stays NULL before the first run.
  void Latest(Found* out);
  void GiveBack(Entry* entry, std::unique_ptr<StepState> state);
  bool ServesAll(const Entry* entry) {
    std::lock_guard lock(mu_);
    return entry == any_;
  }
  // Gives runs that begin from now on this plan instead of the entry's. The old plan lives as long
  // as the cache. shapes: the feed shapes that the new plan was made for.
  void Replace(Entry* entry, std::unique_ptr<Plan> plan, const std::vector<Shape>& shapes);
  // Makes runs that begin from now on find another plan than the entry's. The old plan lives as
  // long as the cache.
  void Drop(Entry* entry);
  // Moves the idle states to *to, unless another thread holds the lock.
  void TakeIdle(std::vector<std::unique_ptr<StepState>>* to);
  PlanCounts counts();

 private:
  struct Known {
    std::vector<int64_t> key;  // ranks and dims of the feeds
    Entry* entry = nullptr;
    std::shared_ptr<const PlanShapes> shapes;
    uint64_t used = 0;
  };
  template <class Fits>
  Known* FindKnown(Fits&& fits);
  void Hand(const Known& known, Found* out);
  Status Make(const std::vector<int64_t>& key, const std::vector<Shape>& shapes, bool for_run, Found* out);
  StatusOr<Known> Work(const std::vector<Shape>& shapes, bool* made);
  void Remember(Known known);

  const size_t n_feeds_;
  const uint32_t max_plans_, max_shapes_;
  Maker* const maker_;
  std::mutex making_mu_;  // taken before mu_
  std::mutex mu_;         // guards everything below
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<std::unique_ptr<Plan>> replaced_;  // plans that steps may still run
  std::vector<std::unique_ptr<Entry>> dropped_;  // entries whose plans are in replaced_
  Entry* any_ = nullptr;                         // the entry that serves all shapes
  std::vector<std::unique_ptr<Known>> known_;
  Known* latest_ = nullptr;
  uint64_t clock_ = 0;
  PlanCounts counts_;
};

}  // namespace thalweg
