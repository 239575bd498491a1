#include "framework/session/placement_trial.h"

#include <algorithm>

#include "framework/base/strings.h"
#include "framework/runtime/devices/device.h"
#include "framework/session/placement_store.h"

namespace thalweg {
namespace {

std::string ShortName(const Device& d) { return StrCat(d.kind(), ":", d.index()); }

std::shared_ptr<const Places> PlacesOf(const Plan& plan) {
  auto places = std::make_shared<Places>();
  for (const PlaceNote& p : plan.notes.places) (*places)[p.node->name()] = ShortName(*p.device);
  return places;
}

std::shared_ptr<const Places> AllOn(const Places& nodes, const std::string& device) {
  auto places = std::make_shared<Places>();
  for (const auto& [node, was] : nodes) (*places)[node] = device;
  return places;
}

}  // namespace

PlacementTrial::PlacementTrial(PlacementStore* store, Runtime* runtime, uint32_t steps, std::string signature)
    : store_(store), runtime_(runtime), steps_(steps), signature_(std::move(signature)) {}

void PlacementTrial::Planned(const Plan& plan) {
  {
    std::lock_guard lock(mu_);
    if (plan_ || over()) return;
  }
  Replaced(plan);
  std::lock_guard lock(mu_);
  Suggest();
}

void PlacementTrial::Replaced(const Plan& plan) {
  std::lock_guard lock(mu_);
  plan_ = &plan;
  places_now_ = PlacesOf(plan);
  runs_ = 0;
}

// REQUIRES: mu_.
void PlacementTrial::Suggest() {
  left_.push_back({"cost", nullptr});  // tried last, after the others have shown the costs of kernels on each device
  std::vector<Device*> devices = runtime_->devices();
  for (auto d = devices.rbegin(); d != devices.rend(); ++d) {
    auto all = AllOn(*places_now_, ShortName(**d));
    if (!((*d)->on_request() && (*d)->host_memory()) && *all != *places_now_) left_.push_back({"simple", std::move(all)});
  }
  if (left_.size() == 1) over_.store(true, std::memory_order_release);  // with one device there is nothing to choose
}

StepStats* PlacementTrial::Watch(const Plan* plan) {
  std::lock_guard lock(mu_);
  if (over() || watched_ || plan != plan_) return nullptr;
  if (!stats_) stats_ = std::make_unique<StepStats>();
  watched_ = true;
  return stats_.get();
}

bool PlacementTrial::Over(StepStats* stats, bool ok) {
  std::lock_guard lock(mu_);
  watched_ = false;
  if (!ok) return best_ != nullptr;  // a suggestion that fails is not tried again
  const int64_t ns = stats->total().total_ns - stats->total().plan_ns;
  if (++runs_ <= kWarmUp) return false;
  store_->costs()->Learn(*stats);
  least_ns_ = runs_ == kWarmUp + 1 ? ns : std::min(least_ns_, ns);
  if (runs_ < kWarmUp + steps_) return false;
  constexpr double kWorthIt = 0.97;  // a smaller gain may be chance, and the first suggestion is the simplest
  if (!best_ || double(least_ns_) < kWorthIt * double(best_ns_)) {
    best_ = places_now_;
    best_ns_ = least_ns_;
  }
  return true;
}

bool PlacementTrial::Next(Suggestion* next) {
  std::lock_guard lock(mu_);
  if (over()) return false;
  if (!left_.empty()) {
    *next = left_.back();
    left_.pop_back();
    return true;
  }
  over_.store(true, std::memory_order_release);
  store_->Keep(signature_, best_);
  *next = {"simple", best_};
  return *best_ != *places_now_;
}

}  // namespace thalweg
