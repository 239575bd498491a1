// Session: runs parts of a graph. Keeps plans per signature, kernel states and step states, so that a repeated step pays for its kernels
// only. Threads: any number of steps at once; Close waits for them.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/function.h"
#include "framework/graph/graph.h"
#include "framework/plan/open_variables.h"
#include "framework/runtime/cancel.h"
#include "framework/runtime/executor.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/step.h"
#include "framework/session/callable.h"
#include "framework/session/limits.h"
#include "framework/session/options.h"
#include "framework/session/placement_store.h"
#include "framework/session/plan_cache.h"

namespace thalweg {

// What a session has done and keeps.
struct SessionReport {
  uint64_t steps = 0, signatures = 0, block_bytes = 0, peak_bytes = 0;
  PlanCounts plans;
  uint64_t swapped_out_bytes = 0, swapped_in_bytes = 0;
};

class Session final : public StateCache, public FunctionCaller {
 public:
  // account: pays for what the session holds, beside the session itself (see SessionLimits); NULL: there is none.
  static StatusOr<std::unique_ptr<Session>> Create(std::shared_ptr<Graph> graph, const SessionOptions& options,
                                                   MemoryBudget* account = nullptr);
  ~Session() override;
  // Makes what the calling thread has of all sessions, while there is memory (see thread_reserve.h).
  static void TouchThread() noexcept;

  Graph& graph() const { return *graph_; }
  Runtime& runtime() const { return graph_->runtime(); }
  const SessionOptions& options() const { return options_; }

  StatusOr<std::unique_ptr<Callable>> MakeCallable(const CallableSpec& spec);
  // The named form: finds the callable of the signature or makes one.
  Status Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches);
  void Start(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done);
  // Runs `work`, which must see to it that EndAsync is called once when its step is over, on a thread for tasks; in a session of one
  // thread, here and now.
  // Waits while too many such are under way. Errors: FAILED_PRECONDITION if the session is closed; then work is not run.
  Status StartAsync(std::function<void()> work);
  void EndAsync();
  // Kernels that block hold threads of the line as one of its guests. Before the first step.
  void LimitBlocking(std::shared_ptr<BlockingLine::Guest> guest) { blocking_ = std::move(guest); }
  // No new steps; returns when the running ones are over. What waits at resources in them ends. Again: no effect.
  Status Close();
  // Empties a container; empty: the session's. Answers how many things were in it. Errors: INVALID_ARGUMENT for another graph's own.
  StatusOr<uint64_t> Reset(std::string_view container);
  uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  SessionReport Report();
  // What its nodes hold is counted there, and what others hold for it; NULL: no limit.
  MemoryBudget* budget();

  StatusOr<void*> State(const NodeRun& run, const std::vector<tw_shape>& shapes) override;
  StatusOr<std::vector<Tensor>> Once(const NodeRun& run) override;
  const tw_host* HostFor(const Node& node, const KernelDef& kernel) override { return limits_->HostFor(node, kernel); }

  StatusOr<const FoundFunction*> FindFunction(std::string_view name) override;
  Status Call(StepBase& step, const FunctionCall& call) override;
  void Start(StepBase& step, const FunctionCall& call, std::function<void(Status)> done) override;
  Status Loop(StepBase& step, FunctionLoop* loop) override;

 private:
  friend class Callable;
  friend class SteadyLoop;
  Session(std::shared_ptr<Graph> graph, const SessionOptions& options);
  // The callable of a named run: found or made.
  StatusOr<std::shared_ptr<Callable>> CallableOf(const CallableSpec& spec);
  // A named run is over; where plans were made since the last look, they may be too many.
  void AfterNamedRun(std::shared_ptr<Callable> callable);
  // Lets go of the signatures of named runs that were not run for longest, where their plans are too many.
  void DropOldPlans();
  // Lets go of step states that no step uses.
  void DropIdleStates();
  // Whether the graph got nodes since that may change the shapes which the plan counts on.
  bool IsOutdated(const Plan& plan);
  void LimitThreads(StepState* state) const;
  // Counts a step in; false if closed, unless it was accepted before.
  bool Enter(bool accepted) {
    if (running_.fetch_add(1, std::memory_order_acquire) >= kClosed && !accepted) {
      Leave();
      return false;
    }
    return true;
  }
  void Leave() { running_.fetch_sub(1, std::memory_order_release); }
  struct Leaver {
    Session* session;
    ~Leaver() { session->Leave(); }
  };

  std::shared_ptr<Graph> graph_;
  SessionOptions options_;
  std::unique_ptr<SessionLimits> limits_;
  std::unique_ptr<PlacementStore> placements_;     // NULL: places do not depend on costs
  int64_t timeout_ns_;                             // of runs that were given none; 0: none
  ThreadPool* pool_;                               // NULL: one thread
  uint32_t threads_;                               // that compute for a step at once
  std::shared_ptr<BlockingLine::Guest> blocking_;  // NULL: kernels that block have as many threads as they like
  std::atomic<uint64_t> steps_{0};
  static constexpr int64_t kClosed = int64_t{1} << 40;
  std::atomic<int64_t> running_{0};  // no less than kClosed once closed
  CancelToken closing_;
  std::mutex mu_;  // callables, states
  std::map<std::vector<uint64_t>, std::shared_ptr<Callable>> callables_;
  // Functions that were called. REQUIRES of reading one: nothing, once it was handed out.
  struct Called : FoundFunction {
    std::unique_ptr<Callable> callable;
    mutable std::map<std::pair<std::string, std::vector<Device*>>, std::unique_ptr<Callable>>
        elsewhere;  // from other devices, of values there
  };
  Status BeginCall(StepBase& step, const FunctionCall& call, Callable** callable);
  Callable* CallableOf(const StepBase& step, const FunctionCall& call);
  std::mutex open_mu_;
  OpenVariables open_;
  std::shared_mutex functions_mu_;
  std::map<std::string, Called, std::less<>> functions_;
  uint64_t named_runs_ = 0;
  std::atomic<uint64_t> free_for_plans_{64 << 10};          // bytes that cost nothing: a session that has little may run what is small
  std::atomic<uint64_t> plans_made_{0}, plans_checked_{0};  // a difference: callables_ may hold too many
  std::atomic<uint64_t> dropped_{0};                        // signatures of named runs
  BlockCount blocks_;
  Swapping swapping_;
  struct StateKey {
    const Node* node;
    const KernelDef* kernel;
    Device* device;
    bool operator<(const StateKey& o) const { return std::tie(node, kernel, device) < std::tie(o.node, o.kernel, o.device); }
  };
  std::mutex all_mu_;
  std::set<Callable*> all_;  // also those that the user holds
  PlanCounts gone_;          // of callables that are no more
  std::mutex async_mu_;
  std::condition_variable async_ended_;
  uint32_t async_runs_ = 0;
  std::mutex state_mu_;
  std::map<StateKey, void*> states_;               // what kernels made for them
  std::set<std::shared_ptr<const void>> plugins_;  // of those kernels and devices, so that they are not unloaded
  std::map<const Node*, std::vector<Tensor>> once_;
};

}  // namespace thalweg
