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
#include <unordered_map>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/function.h"
#include "framework/graph/graph.h"
#include "framework/plan/open_variables.h"
#include "framework/plan/plan.h"
#include "framework/runtime/cancel.h"
#include "framework/runtime/executor.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/step.h"
#include "framework/session/limits.h"
#include "framework/session/options.h"
#include "framework/session/placement_store.h"
#include "framework/session/placement_trial.h"
#include "framework/session/plan_cache.h"

namespace thalweg {

struct CallableSpec {
  std::vector<Edge> feeds, fetches;
  std::vector<const Node*> targets;
  std::vector<const Node*> over;                     // of a part of a run: see Signature
  std::vector<Device*> feed_devices, fetch_devices;  // see Signature
};

struct RunOptions {
  int64_t deadline_ns = 0;  // from now; 0: none
  const CancelToken* cancel = nullptr;
  StepStats* stats = nullptr;        // filled by the run
  Rendezvous* rendezvous = nullptr;  // of a part of a step over several processes
  bool accepted = false;             // by StartAsync, before the session was closed: it runs all the same
};

struct PlanReport {
  uint64_t nodes = 0, block_bytes = 0, peak_bytes = 0, unplanned_bytes = 0;
  bool counted = false;
};

// What a session has done and keeps.
struct SessionReport {
  uint64_t steps = 0, signatures = 0, block_bytes = 0, peak_bytes = 0;
  PlanCounts plans;
  uint64_t swapped_out_bytes = 0, swapped_in_bytes = 0;
};

class Session;

// Whether the tensor can be the value. Errors: INVALID_ARGUMENT, naming it.
Status CheckFeed(const Edge& e, const Tensor& feed);

// A signature, ready to run. Must not outlive its session (the C API sees to it).
class Callable final : private PlanCache::Maker {
 public:
  Callable(Session* session, CallableSpec spec);
  // Of a function, for RunInside. device: where its nodes run that do not say it themselves, if they can; "": as the session has it.
  // feed_devices: see Signature.
  Callable(Session* session, const Function& function, std::string device, std::vector<Device*> feed_devices);
  ~Callable();
  // feeds, fetches: as many as the spec's. Errors: INVALID_ARGUMENT for a feed of the wrong type or shape; what planning and kernels say;
  // CANCELLED; DEADLINE_EXCEEDED; FAILED_PRECONDITION if the session is closed. fetches are empty after a failure.
  Status Run(const Tensor* feeds, const RunOptions& options, Tensor* fetches);
  // The same without waiting: done is told, maybe before this returns. Feeds and fetches live until then. Throws only before it begins.
  void Start(const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done);
  const CallableSpec& spec() const { return spec_; }
  StatusOr<PlanReport> Report(const std::vector<Shape>& feed_shapes);
  // See tw_callable_plan_json. NULL: the plan of the latest run, or one for what the graph declares.
  StatusOr<std::string> PlanText(const std::vector<Shape>* feed_shapes);

 private:
  friend class Session;
  Callable(Session* session, CallableSpec spec, std::string device);
  // Run of a step that the session has counted in. REQUIRES: fetches are empty.
  Status RunCounted(const Tensor* feeds, const RunOptions& options, Tensor* fetches);
  void StartCounted(const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done);
  // A run from when it has its step state until the step is over.
  struct Running {
    std::unique_ptr<StepTrace> trace;
    PlanCache::Found found;
    std::vector<Tensor> moved;  // feeds, where some came in other memory than the signature says
    std::unique_ptr<StepState> state;
    StepStats* stats = nullptr;      // that the trace fills
    bool measured = false;           // they are those of the trial
    std::vector<Shape> feed_shapes;  // of a run that is measured
  };
  // The feeds in the memory that the signature says; *moved holds them where some had to be copied.
  StatusOr<const Tensor*> PlaceFeeds(const Tensor* feeds, std::vector<Tensor>* moved) const;
  Status Begin(const Tensor** feeds, const RunOptions& options, Running* r);
  Status End(Running* r, Status s);
  // Runs as a part of another step, which take the feeds over. REQUIRES: fetches are empty.
  struct Inside {
    PlanCache::Found found;
    std::unique_ptr<StepState> state;
    std::unique_ptr<StepTrace> trace;
  };
  Status BeginInside(const StepBase& step, std::string_view function, Tensor* feeds, Inside* in);
  Status EndInside(Inside* in, Status s);
  Status RunInside(const StepBase& step, std::string_view function, Tensor* feeds, Tensor* fetches);
  void StartInside(const StepBase& step, std::string_view function, Tensor* feeds, Tensor* fetches, StepDone done);
  // The plan and the sizes of the feeds.
  Status FindPlan(const Tensor* feeds, PlanCache::Found* found);
  // A state that is bound to the sizes of the feeds; *found is what to give it back to.
  StatusOr<std::unique_ptr<StepState>> ReadyState(const Tensor* feeds, PlanCache::Found* found);
  StatusOr<std::unique_ptr<Plan>> MakePlan(const std::vector<Shape>& feed_shapes) override;
  // What is to be measured of the run, if anything is (placement=learned); and what follows from it.
  Status Measure(const Tensor* feeds, Running* r);
  void Learn(Running* r, bool ok);
  // What learned places are kept under.
  std::string SignatureText() const;
  Status Keep(const PlanShapes& shapes) override;
  PlanOptions Options() const;
  Status CheckFeeds(const Tensor* feeds) const;

  Session* session_;
  Graph* graph_;
  CallableSpec spec_;
  Signature signature_;
  PlanCache plans_;
  std::unique_ptr<PlacementTrial> trial_;  // NULL: nothing is tried
  uint64_t used_ = 0;                      // by named runs: when last; guarded by the session
  const std::string device_;               // of a function: where its nodes run that do not say it themselves; "": as the session has it
};

class Session final : public StateCache, public FunctionCaller {
 public:
  static StatusOr<std::unique_ptr<Session>> Create(std::shared_ptr<Graph> graph, const SessionOptions& options);
  ~Session() override;

  Graph& graph() const { return *graph_; }
  Runtime& runtime() const { return graph_->runtime(); }
  const SessionOptions& options() const { return options_; }

  StatusOr<std::unique_ptr<Callable>> MakeCallable(const CallableSpec& spec);
  // The named form: finds the callable of the signature or makes one.
  Status Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches);
  void Start(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done);
  // Errors: INVALID_ARGUMENT for what is not of the graph, or fed twice.
  Status CheckSpec(const CallableSpec& spec) const;
  // Runs `work`, which must see to it that EndAsync is called once when its step is over, on a thread for tasks; in a session of one
  // thread, here and now.
  // Waits while too many such are under way. Errors: FAILED_PRECONDITION if the session is closed; then work is not run.
  Status StartAsync(std::function<void()> work);
  void EndAsync();
  // No new steps; returns when the running ones are over. What waits at resources in them ends. Again: no effect.
  Status Close();
  uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  SessionReport Report();

  StatusOr<void*> State(const NodeRun& run, const std::vector<tw_shape>& shapes) override;
  StatusOr<std::vector<Tensor>> Once(const NodeRun& run) override;
  const tw_host* HostFor(const Node& node, const KernelDef& kernel) override { return limits_->HostFor(node, kernel); }

  StatusOr<const Function*> FindFunction(std::string_view name) override;
  Status Call(StepBase& step, const FunctionCall& call) override;
  void Start(StepBase& step, const FunctionCall& call, std::function<void(Status)> done) override;

 private:
  friend class Callable;
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
  bool Enter(bool accepted);
  void Leave();
  struct Leaver {
    Session* session;
    ~Leaver() { session->Leave(); }
  };

  std::shared_ptr<Graph> graph_;
  SessionOptions options_;
  std::unique_ptr<SessionLimits> limits_;
  std::unique_ptr<PlacementStore> placements_;  // NULL: places do not depend on costs
  int64_t timeout_ns_;                          // of runs that were given none; 0: none
  ThreadPool* pool_;                            // NULL: one thread
  uint32_t threads_;                            // that compute for a step at once
  std::atomic<uint64_t> steps_{0};
  std::atomic<int64_t> running_{0};  // negative offset once closed
  CancelToken closing_;
  std::mutex mu_;  // callables, states
  std::map<std::vector<uint64_t>, std::shared_ptr<Callable>> callables_;
  // Functions that were called. REQUIRES of reading one: nothing, once it was handed out.
  struct Called {
    std::shared_ptr<const Function> function;
    std::unique_ptr<Callable> callable;
    std::map<std::pair<std::string, std::vector<Device*>>, std::unique_ptr<Callable>> elsewhere;  // from other devices, of values there
  };
  Status BeginCall(StepBase& step, const FunctionCall& call, Callable** callable);
  Callable* CallableOf(const StepBase& step, const FunctionCall& call);
  std::mutex open_mu_;
  OpenVariables open_;
  std::shared_mutex functions_mu_;
  std::map<std::string, Called, std::less<>> functions_;
  uint64_t named_runs_ = 0;
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
