// PlacementTrial: finds out where a plan's nodes run fastest (placement=learned): the plan as it is, all nodes on each device that can take
// them, then what their measured costs suggest. Each is run some steps, and the fastest stays.
// Threads: any.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/plan/plan.h"
#include "framework/runtime/step_stats.h"
#include "framework/session/placement_store.h"

namespace thalweg {

class PlacementTrial {
 public:
  // What the next runs are to have. Both NULL: what plans have without looking at costs.
  struct Suggestion {
    std::string placement = "simple";
    std::shared_ptr<const Places> places;
  };

  // signature: what the places are kept under.
  PlacementTrial(PlacementStore* store, Runtime* runtime, uint32_t steps, std::string signature);

  // The first plan; others, for other feeds, are not measured.
  void Planned(const Plan& plan);
  // A plan as the latest suggestion has it.
  void Replaced(const Plan& plan);
  // Statistics for a run that begins with the plan; NULL: nothing is to be measured.
  StepStats* Watch(const Plan* plan);
  // The run is over. True: what it ran has been measured, and Next says what to plan now.
  bool Over(StepStats* stats, bool ok);
  // False: nothing, what is planned stays. Also after a suggestion that cannot be planned.
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
  std::mutex mu_;               // all below
  const Plan* plan_ = nullptr;  // that is being measured
  std::shared_ptr<const Places> places_now_;
  std::unique_ptr<StepStats> stats_;
  bool watched_ = false;
  uint32_t runs_ = 0;
  int64_t least_ns_ = 0, best_ns_ = 0;  // of what is being measured; of the best
  std::shared_ptr<const Places> best_;
  std::vector<Suggestion> left_;  // the last comes first
};

}  // namespace thalweg
