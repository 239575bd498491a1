// Profilers: those of one session. Hands the record of each step to profilers of plugins
// (plugin/profiler.h). In a forked child it does nothing: the profiles are the parent's. Threads: any.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/base/origin.h"
#include "framework/base/status.h"
#include "framework/registry/profiler_role.h"
#include "framework/runtime/trace/step_stats.h"

namespace thalweg {

class Runtime;

class Profilers {
 public:
  // Starts the profilers that the session option chose, each as NAME or NAME:ARGUMENT; NULL if there
  // are none. runtime: must outlive the result. NOT_FOUND lists the known profilers; a failure of
  // `start` is returned, and those that were started are stopped.
  static StatusOr<std::unique_ptr<Profilers>> Start(Runtime* runtime, const std::vector<std::string>& chosen);
  ~Profilers() { Stop(); }
  Profilers(const Profilers&) = delete;

  // Returns statistics for a run that has none of its own; NULL in a forked child, whose runs are not
  // recorded. GiveBack keeps them for a later run.
  std::unique_ptr<StepStats> TakeStats();
  void GiveBack(std::unique_ptr<StepStats> stats) noexcept;
  // Hands over a step. REQUIRES: no run fills the statistics. A step that an entry of a profiler runs
  // in its own session is dropped, since the entry would wait for itself.
  void Over(const StepStats& stats) noexcept;
  // Ends the profiles, after the steps for which a Coming exists. Later steps are dropped.
  void Stop() noexcept;

  // A step that another thread hands over, later than its session counts it as running.
  class Coming {
   public:
    // given: the statistics that the program wants filled; NULL: none.
    Coming(std::shared_ptr<Profilers> to, StepStats* given);
    ~Coming();
    Coming(const Coming&) = delete;
    StepStats* stats() const { return stats_; }
    void Over() noexcept { to_->Over(*stats_); }

   private:
    const std::shared_ptr<Profilers> to_;
    std::unique_ptr<StepStats> own_;
    StepStats* const stats_;
  };

 private:
  struct Running {
    std::shared_ptr<const ProfilerRole> role;  // keeps the plugin loaded
    void* self = nullptr;
    bool failed = false;  // it failed in its latest step, so another failure is not logged
  };
  explicit Profilers(Runtime* runtime) : runtime_(runtime) {}
  Status StartOne(const std::string& chosen);
  void Log(const Running& r, const char* what, const Status& why) const noexcept;

  Runtime* const runtime_;
  const Origin origin_;
  std::mutex mu_;  // guards running_; held during calls of `step` to `done`, which a self gets one at a time
  std::vector<Running> running_;
  std::mutex spare_mu_;  // guards spare_ and coming_
  std::vector<std::unique_ptr<StepStats>> spare_;
  std::condition_variable all_came_;
  uint32_t coming_ = 0;
};

}  // namespace thalweg
