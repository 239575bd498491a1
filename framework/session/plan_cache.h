// PlanCache: the plans of one signature, the feed shapes that they are known to serve, and step states that no step uses. A run of shapes
// seen before finds all three without a heap call. Bounded: see the session options max_shape_plans and max_shapes.
// Threads: any. Plans are made one at a time, while steps run.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/base/status.h"
#include "framework/plan/plan.h"
#include "framework/runtime/step.h"

namespace thalweg {

// Since the session was made, but for `plans` and `shapes`, which are there now.
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
  // What a run needs: a plan, its sizes, and a state to bind to them. state: NULL if all are in use.
  struct Found {
    Entry* entry = nullptr;
    const Plan* plan = nullptr;                // the entry's at that time
    std::shared_ptr<const PlanShapes> shapes;  // not set where the state is bound to them already
    std::unique_ptr<StepState> state;
    bool made = false;  // the plan, for this run
  };
  // Makes a plan; and is told of every set of sizes that is kept, before it is.
  struct Maker {
    virtual StatusOr<std::unique_ptr<Plan>> MakePlan(const std::vector<Shape>& feed_shapes) = 0;
    virtual Status Keep(const PlanShapes& shapes) = 0;

   protected:
    ~Maker() = default;
  };

  PlanCache(size_t n_feeds, uint32_t max_plans, uint32_t max_shapes, Maker* maker)
      : n_feeds_(n_feeds), max_plans_(max_plans), max_shapes_(max_shapes), maker_(maker) {}

  // True, and *out is filled, for shapes that are known.
  bool Find(const Tensor* feeds, Found* out);
  // The same for any shapes. Errors: those of planning.
  Status Prepare(const Tensor* feeds, Found* out);
  // For reports: no state, and not counted as a run.
  Status Prepare(const std::vector<Shape>& feed_shapes, Found* out);
  // The plan of the latest run; entry NULL before any.
  void Latest(Found* out);
  void GiveBack(Entry* entry, std::unique_ptr<StepState> state);
  bool ServesAll(const Entry* entry) {
    std::lock_guard lock(mu_);
    return entry == any_;
  }
  // Runs that begin from now on have this plan in place of the entry's, which lives as long as the cache. shapes: of the feeds that it was
  // made for.
  void Replace(Entry* entry, std::unique_ptr<Plan> plan, const std::vector<Shape>& shapes);
  // Runs that begin from now on find another plan than the entry's, which lives as long as the cache.
  void Drop(Entry* entry);
  // Takes the states that no step uses, unless somebody is looking at them.
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
  std::mutex mu_;         // all below
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<std::unique_ptr<Plan>> replaced_;  // which steps may still run
  std::vector<std::unique_ptr<Entry>> dropped_;  // whose plan is among those
  Entry* any_ = nullptr;                         // serves all shapes
  std::vector<std::unique_ptr<Known>> known_;
  Known* latest_ = nullptr;
  uint64_t clock_ = 0;
  PlanCounts counts_;
};

}  // namespace thalweg
