// Callable: one signature of a session, ready to run. It owns the plans of the signature and the
// step states that are idle between runs. Threads: any number of concurrent runs.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/function.h"
#include "framework/graph/graph.h"
#include "framework/plan/plan.h"
#include "framework/planner/compile.h"
#include "framework/runtime/cancel.h"
#include "framework/runtime/step/executor.h"
#include "framework/session/plan_cache.h"

namespace thalweg {

class PlacementTrial;
class Rendezvous;
class StepState;
class StepStats;
class StepTrace;
struct FunctionCall;
struct StepBase;

struct CallableSpec {
  std::vector<Edge> feeds, fetches;
  std::vector<const Node*> targets;
  std::vector<const Node*> over;                     // nodes that earlier parts of a partial run have run: see Signature
  std::vector<Device*> feed_devices, fetch_devices;  // see Signature
  bool stays = false;                                // see Signature
  std::string near;  // where nodes run that do not say it themselves, if they can; "": as the session has it
};

struct RunOptions {
  int64_t deadline_ns = 0;  // nanoseconds from now; 0 means no deadline
  const CancelToken* cancel = nullptr;
  StepStats* stats = nullptr;        // filled by the run
  Rendezvous* rendezvous = nullptr;  // of a step that is distributed over several processes
  bool accepted = false;             // StartAsync accepted the run before the session was closed, so it still runs
};

struct PlanReport {
  uint64_t nodes = 0, block_bytes = 0, peak_bytes = 0, unplanned_bytes = 0;
  bool counted = false;
};

class Session;

// INVALID_ARGUMENT if a feed, fetch or target is not of the graph, or a value is fed twice.
Status CheckSpec(const Graph& graph, const CallableSpec& spec);
// Checks that the tensor can be the value of the edge. INVALID_ARGUMENT names the edge.
Status CheckFeed(const Edge& e, const Tensor& feed);

// One signature, ready to run. It must not outlive its session; the C API ensures this.
class Callable final : private PlanCache::Maker {
 public:
  Callable(Session* session, CallableSpec spec);
  // Makes a callable of `function`, to be run by RunInside. device: where nodes that name no device
  // run, if they can; "" means as the session's options say. feed_devices: see Signature.
  Callable(Session* session, const Function& function, std::string device, std::vector<Device*> feed_devices);
  ~Callable();
  // Runs one step. feeds, fetches: as many as the spec's. INVALID_ARGUMENT for a feed of the wrong
  // type or shape; CANCELLED; DEADLINE_EXCEEDED; FAILED_PRECONDITION if the session is closed; the
  // errors of planning and kernels. After a failure the fetches are empty.
  Status Run(const Tensor* feeds, const RunOptions& options, Tensor* fetches);
  // Starts one step and does not wait. Calls `done` when the step ends, possibly before Start
  // returns. Feeds and fetches must live until then. Throws only before the step begins.
  void Start(const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done);
  const CallableSpec& spec() const { return spec_; }
  // Returns true if the latest plan is cheap and cannot block; false before the first run.
  bool IsLight();
  StatusOr<PlanReport> Report(const std::vector<Shape>& feed_shapes);
  // See tw_callable_plan_json. If feed_shapes is NULL, describes the plan of the latest run or,
  // before the first run, a plan for the shapes that the graph declares.
  StatusOr<std::string> PlanText(const std::vector<Shape>* feed_shapes);

 private:
  friend class Session;
  friend class SteadyLoop;
  Callable(Session* session, CallableSpec spec, std::string device);
  // Run a step that the session has already counted as running. REQUIRES: fetches are empty.
  Status RunCounted(const Tensor* feeds, const RunOptions& options, Tensor* fetches);
  void StartCounted(const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done);
  // One run, from the time it has a step state until the step ends.
  struct Running {
    std::unique_ptr<StepStats> own_stats;  // for profilers, if the caller gave none; used by the trace
    std::unique_ptr<StepTrace> trace;
    PlanCache::Found found;
    std::vector<Tensor> moved;  // copies of the feeds, if some were not in the memory that the signature names
    std::unique_ptr<StepState> state;
    StepStats* stats = nullptr;      // filled by the trace
    bool measured = false;           // the statistics belong to the placement trial
    std::vector<Shape> feed_shapes;  // set if the run is measured
  };
  // Returns the feeds in the memory that the signature names. If some had to be copied, *moved owns
  // all of them.
  StatusOr<const Tensor*> PlaceFeeds(const Tensor* feeds, std::vector<Tensor>* moved) const;
  Status Begin(const Tensor** feeds, const RunOptions& options, Running* r);
  Status End(Running* r, Status s);
  // Ends a run whose Begin failed.
  Status Refused(Running* r, Status s);
  // Hands the run to the session's profilers. REQUIRES: it has a trace, and it is over.
  void Profile(Running* r);
  // A run as a part of another step, which consumes the feeds. REQUIRES: fetches are empty.
  struct Inside {
    PlanCache::Found found;
    std::unique_ptr<StepState> state;
    std::unique_ptr<StepTrace> trace;
    bool frees = false;  // the state is freed at the end, not kept
  };
  Status ReadyInside(const StepBase& step, std::string_view function, const Tensor* feeds, Inside* in);
  Status BeginInside(const StepBase& step, std::string_view function, Tensor* feeds, Inside* in);
  Status EndInside(Inside* in, Status s);
  Status RunInside(const StepBase& step, const FunctionCall& call);
  void StartInside(const StepBase& step, const FunctionCall& call, StepDone done);
  // Finds or makes the plan for the feeds and its sizes.
  Status FindPlan(const Tensor* feeds, PlanCache::Found* found);
  bool HoldsReset(const Plan& plan, uint64_t resets) const;
  // Returns a state that is bound to the sizes of the feeds; *found says where to return it.
  StatusOr<std::unique_ptr<StepState>> ReadyState(const Tensor* feeds, PlanCache::Found* found);
  StatusOr<std::unique_ptr<Plan>> MakePlan(const std::vector<Shape>& feed_shapes) override;
  // Measure sets up statistics if the placement trial wants this run measured (placement=learned).
  // Learn feeds the result to the cost model and the trial.
  Status Measure(const Tensor* feeds, Running* r);
  void Learn(Running* r, bool ok);
  // Returns the key under which learned places are stored.
  std::string SignatureText() const;
  Status Pay(uint64_t bytes, const char* what, size_t nodes);
  Status Keep(const PlanShapes& shapes) override;
  PlanOptions Options() const;
  Status CheckFeeds(const Tensor* feeds) const;
  // Refuses feeds with elements that the option check_values does not allow.
  Status CheckFeedValues(const Tensor* feeds) const;

  Session* session_;
  Graph* graph_;
  CallableSpec spec_;
  Signature signature_;
  std::atomic<uint64_t> paid_{0};  // bytes charged to the session's account for plans and their sizes
  uint32_t shapes_paid_ = 0;       // sets of sizes that were paid for; guarded by the cache's making lock
  PlanCache plans_;
  std::unique_ptr<PlacementTrial> trial_;  // NULL: no trial
  uint64_t used_ = 0;                      // clock of the latest named run; guarded by the session
  const std::string device_;               // of a function: where nodes that name no device run; "": as the session's options say
};

}  // namespace thalweg
