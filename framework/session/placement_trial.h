// PlacementTrial: finds the devices on which a plan runs fastest (placement=learned). It tries the
// plan as it is, then all nodes on each device that can run them, then the places that measured
// costs suggest. Each is run for some steps and the fastest is kept. Threads: any.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/plan/plan.h"
#include "framework/planner/compile.h"
#include "framework/runtime/trace/step_stats.h"

namespace thalweg {

class PlacementStore;

class PlacementTrial {
 public:
  // The placement of the next runs. If places is NULL, plans use the mode `placement` alone.
  struct Suggestion {
    std::string placement = "simple";
    std::shared_ptr<const Places> places;
  };

  // signature: the key under which the places are stored.
  PlacementTrial(PlacementStore* store, Runtime* runtime, uint32_t steps, std::string signature);

  // Tells of a new plan. Only the first plan is measured; plans for other feed shapes are not.
  void Planned(const Plan& plan);
  // Tells of the plan that follows the latest suggestion.
  void Replaced(const Plan& plan);
  // Returns statistics for a run that begins with the plan; NULL if the run is not to be measured.
  StepStats* Watch(const Plan* plan);
  // Ends a watched run. Returns true if the suggestion is decided: it was measured, or it failed when
  // another one was already measured. Next then says what to plan.
  bool Over(StepStats* stats, bool ok);
  // Returns false if the current plan stays. Called again if a suggestion cannot be planned.
  bool Next(Suggestion* next);
  bool over() const { return over_.load(std::memory_order_acquire); }

 private:
  static constexpr uint32_t kWarmUp = 1;
  void Suggest();

  PlacementStore* const store_;
  Runtime* const runtime_;
  const uint32_t steps_;
  const std::string signature_;
  std::atomic<bool> over_{false};
  std::mutex mu_;               // guards everything below
  const Plan* plan_ = nullptr;  // the plan being measured
  std::shared_ptr<const Places> places_now_;
  std::unique_ptr<StepStats> stats_;
  bool watched_ = false;
  uint32_t runs_ = 0;
  int64_t least_ns_ = 0, best_ns_ = 0;  // fastest run of the current suggestion; of the best suggestion
  std::shared_ptr<const Places> best_;
  std::vector<Suggestion> left_;  // taken from the back
};

}  // namespace thalweg
