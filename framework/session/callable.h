// Callable: a signature of a session, ready to run: its plans, the step states that wait for the next run, and what a run passes through.
// Threads: any number of runs at once.
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
#include "framework/runtime/cancel.h"
#include "framework/runtime/executor.h"
#include "framework/runtime/step.h"
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

class Session;

// Errors: INVALID_ARGUMENT for what is not of the graph, or fed twice.
Status CheckSpec(const Graph& graph, const CallableSpec& spec);
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
  // By its latest plan, a run does little, and nothing that may block; false before the first.
  bool IsLight();
  StatusOr<PlanReport> Report(const std::vector<Shape>& feed_shapes);
  // See tw_callable_plan_json. NULL: the plan of the latest run, or one for what the graph declares.
  StatusOr<std::string> PlanText(const std::vector<Shape>* feed_shapes);

 private:
  friend class Session;
  friend class SteadyLoop;
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
  Status ReadyInside(const StepBase& step, std::string_view function, const Tensor* feeds, Inside* in);
  Status BeginInside(const StepBase& step, std::string_view function, Tensor* feeds, Inside* in);
  Status EndInside(Inside* in, Status s);
  Status RunInside(const StepBase& step, std::string_view function, Tensor* feeds, Tensor* fetches);
  void StartInside(const StepBase& step, std::string_view function, Tensor* feeds, Tensor* fetches, StepDone done);
  // The plan and the sizes of the feeds.
  Status FindPlan(const Tensor* feeds, PlanCache::Found* found);
  bool HoldsReset(const Plan& plan, uint64_t resets) const;
  // A state that is bound to the sizes of the feeds; *found is what to give it back to.
  StatusOr<std::unique_ptr<StepState>> ReadyState(const Tensor* feeds, PlanCache::Found* found);
  StatusOr<std::unique_ptr<Plan>> MakePlan(const std::vector<Shape>& feed_shapes) override;
  // What is to be measured of the run, if anything is (placement=learned); and what follows from it.
  Status Measure(const Tensor* feeds, Running* r);
  void Learn(Running* r, bool ok);
  // What learned places are kept under.
  std::string SignatureText() const;
  Status Pay(uint64_t bytes, const char* what, size_t nodes);
  Status Keep(const PlanShapes& shapes) override;
  PlanOptions Options() const;
  Status CheckFeeds(const Tensor* feeds) const;

  Session* session_;
  Graph* graph_;
  CallableSpec spec_;
  Signature signature_;
  std::atomic<uint64_t> paid_{0};  // bytes of the session's account, for plans and their sizes
  uint32_t shapes_paid_ = 0;       // one at a time: while plans and sizes are made
  PlanCache plans_;
  std::unique_ptr<PlacementTrial> trial_;  // NULL: nothing is tried
  uint64_t used_ = 0;                      // by named runs: when last; guarded by the session
  const std::string device_;               // of a function: where its nodes run that do not say it themselves; "": as the session has it
};

}  // namespace thalweg
