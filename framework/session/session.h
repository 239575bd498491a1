// Session: runs parts of a graph. It keeps plans per signature, kernel states and step states, so
// that a repeated step costs only its kernels. Threads: any number of concurrent steps; Close waits
// for them.
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
#include "framework/planner/passes/open_variables.h"
#include "framework/runtime/cancel.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/runtime_of.h"
#include "framework/runtime/state/groups.h"
#include "framework/runtime/step/executor.h"
#include "framework/runtime/step/step.h"
#include "framework/session/callable.h"
#include "framework/session/limits.h"
#include "framework/session/options.h"
#include "framework/session/placement_store.h"
#include "framework/session/plan_cache.h"

namespace thalweg {

class Profilers;

// Counts of a session's work and of what it holds.
struct SessionReport {
  uint64_t steps = 0, signatures = 0, block_bytes = 0, peak_bytes = 0;
  PlanCounts plans;
  uint64_t swapped_out_bytes = 0, swapped_in_bytes = 0;
};

class Session final : public StateCache, public FunctionCaller, public GroupMember {
 public:
  // account: is charged for what the session holds, in addition to the session's own account (see
  // SessionLimits); NULL: none.
  static StatusOr<std::unique_ptr<Session>> Create(std::shared_ptr<Graph> graph, const SessionOptions& options,
                                                   MemoryBudget* account = nullptr);
  ~Session() override;
  // Allocates the session code's thread-local variables for the calling thread while there is
  // memory (see thread_reserve.h).
  static void TouchThread() noexcept;

  Graph& graph() const { return *graph_; }
  Runtime& runtime() const { return RuntimeOf(*graph_); }
  const SessionOptions& options() const { return options_; }
  // Returns true if runs check the values of their feeds.
  bool check_feeds() const { return check_feeds_; }

  StatusOr<std::unique_ptr<Callable>> MakeCallable(const CallableSpec& spec);
  // Runs a step by its signature: finds the callable in the cache or makes one.
  Status Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches);
  void Start(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done);
  // Runs `work` on a thread for tasks, or on the calling thread if the session has one thread.
  // `work` must ensure that EndAsync is called once, when its step ends. Waits while max_async_runs
  // runs are in progress. FAILED_PRECONDITION if the session is closed; `work` is then not run.
  Status StartAsync(std::function<void()> work);
  void EndAsync();
  // Runs kernels that block on threads of the line, as one of its guests. REQUIRES: called before
  // the first step.
  void LimitBlocking(std::shared_ptr<BlockingLine::Guest> guest) { blocking_ = std::move(guest); }
  // Refuses new steps, cancels what waits at resources, and returns when the running steps have
  // ended. A second call has no effect.
  Status Close();
  // Empties a container ("" means the session's) and returns the number of resources that it held.
  // INVALID_ARGUMENT if the name is that of a graph's own container.
  StatusOr<uint64_t> Reset(std::string_view container);
  uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  SessionReport Report();
  // Returns the account for what the session's nodes hold and for what others hold on its behalf;
  // NULL if there is no limit.
  MemoryBudget* budget();

  StatusOr<void*> State(const NodeRun& run, const std::vector<tw_shape>& shapes) override;
  StatusOr<std::vector<Tensor>> Once(const NodeRun& run) override;
  const tw_host* HostFor(const Node& node, const KernelDef& kernel) override { return limits_->HostFor(node, kernel); }

  Groups* groups() override { return groups_.get(); }
  StatusOr<const FoundFunction*> FindFunction(std::string_view name) override;
  Status Call(StepBase& step, const FunctionCall& call) override;
  void Start(StepBase& step, const FunctionCall& call, std::function<void(Status)> done) override;
  Status Loop(StepBase& step, FunctionLoop* loop) override;

 private:
  friend class Callable;
  friend class SteadyLoop;
  Session(std::shared_ptr<Graph> graph, const SessionOptions& options);
  // Finds or makes the callable of a named run.
  StatusOr<std::shared_ptr<Callable>> CallableOf(const CallableSpec& spec);
  // Ends a named run. If plans were made since the last check, drops old plans where there are too
  // many.
  void AfterNamedRun(std::shared_ptr<Callable> callable);
  // If there are too many plans, drops the least recently run signatures of named runs.
  void DropOldPlans();
  // Frees the idle step states of all callables.
  void DropIdleStates();
  // Returns true if nodes added to the graph since may change shapes that the plan relies on.
  bool IsOutdated(const Plan& plan);
  void LimitThreads(StepState* state) const;
  // Counts a step as running. Returns false if the session is closed, unless the run was accepted
  // before.
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
  std::unique_ptr<Groups> groups_;                 // NULL: the session is in no collective group
  std::unique_ptr<PlacementStore> placements_;     // NULL: placement does not depend on costs
  std::unique_ptr<Profilers> profilers_;           // NULL: the session has none
  const bool check_feeds_;                         // see there
  int64_t timeout_ns_;                             // for runs without a deadline of their own; 0: none
  ThreadPool* pool_;                               // NULL: the session has one thread
  uint32_t threads_;                               // threads that compute for one step at once
  std::shared_ptr<BlockingLine::Guest> blocking_;  // NULL: no limit on the threads for kernels that block
  std::atomic<uint64_t> steps_{0};
  static constexpr int64_t kClosed = int64_t{1} << 40;
  std::atomic<int64_t> running_{0};  // at least kClosed once closed
  CancelToken closing_;
  std::mutex mu_;  // guards callables_
  std::map<std::vector<uint64_t>, std::shared_ptr<Callable>> callables_;
  // A function that was called. An entry that was handed out may be read without a lock.
  struct Called : FoundFunction {
    std::unique_ptr<Callable> callable;
    mutable std::map<std::pair<std::string, std::vector<Device*>>, std::unique_ptr<Callable>>
        elsewhere;  // per device of the call and devices of the arguments
  };
  Status BeginCall(StepBase& step, const FunctionCall& call, Callable** callable);
  Callable* CallableOf(const StepBase& step, const FunctionCall& call);
  std::mutex open_mu_;
  OpenVariables open_;
  std::shared_mutex functions_mu_;
  std::map<std::string, Called, std::less<>> functions_;
  uint64_t named_runs_ = 0;
  std::atomic<uint64_t> free_for_plans_{64 << 10};          // free bytes: a session with a small limit can run small graphs
  std::atomic<uint64_t> plans_made_{0}, plans_checked_{0};  // they differ while callables_ may hold too many plans
  std::atomic<uint64_t> dropped_{0};                        // signatures of named runs that were dropped
  BlockCount blocks_;
  Swapping swapping_;
  struct StateKey {
    const Node* node;
    const KernelDef* kernel;
    Device* device;
    bool operator<(const StateKey& o) const { return std::tie(node, kernel, device) < std::tie(o.node, o.kernel, o.device); }
  };
  std::mutex all_mu_;
  std::set<Callable*> all_;  // includes callables that the user owns
  PlanCounts gone_;          // counts of deleted callables
  std::mutex async_mu_;
  std::condition_variable async_ended_;
  uint32_t async_runs_ = 0;
  std::mutex state_mu_;
  std::map<StateKey, void*> states_;               // made by kernels
  std::set<std::shared_ptr<const void>> plugins_;  // plugins of those kernels and devices, kept loaded
  std::map<const Node*, std::vector<Tensor>> once_;
};

}  // namespace thalweg
