// Compiles plans: from a graph, a signature and options to a Plan. Threads: any, but for OtherShapes.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/device_spec.h"
#include "framework/graph/graph.h"
#include "framework/plan/plan.h"
#include "framework/registry/kernel_spec.h"
#include "framework/tensor/value_check.h"

namespace thalweg {

// Limits on nodes of imported graphs. Nodes that the program added itself are not limited.
struct ImportedRules {
  uint32_t may_touch = ~0u;                      // bits of Touches
  std::vector<std::string> allow_ops, deny_ops;  // if allow_ops is empty, all ops but deny_ops are allowed
};

// Maps the name of a node to the device that is to run it: the device's uid, or "CPU:0".
using Places = std::map<std::string, std::string, std::less<>>;
class CostModel;  // placement/cost_model.h

struct PlanOptions {
  bool optimize = true;
  uint32_t threads = 1;
  std::string engine = "auto";    // auto, fixed, counted
  std::string order = "auto";     // auto, given, smallest_peak
  uint64_t memory_budget = 0;     // limit on the bytes of a step's blocks; 0 means no limit
  std::string compilers = "on";   // on, off, require
  DeviceSpec device;              // requested device of nodes, for the parts of the name that a node does not set itself
  bool may_leave_device = false;  // whether a node may run elsewhere if that device has no kernel for it: for functions called from there
  std::string fallback = "fail";  // fail, warn, allow: whether a node may run elsewhere if its device has no kernel for it
  std::string placement = "simple";        // simple, cost, learned: see the session option
  std::shared_ptr<const CostModel> costs;  // used by the last two; NULL if no costs are known
  std::shared_ptr<const Places> places;    // learned places; NULL if none were learned
  std::vector<std::string> disabled_passes;
  ValueCheck check = ValueCheck::kOff;
  bool capture = true;  // record work that is enqueued on device queues again and again
  ImportedRules imported;
  MemoryBudget* budget = nullptr;                             // charged for values computed while planning; NULL if nothing is charged
  std::string prefer = "host";                                // auto, accelerator, host: which devices come first
  std::vector<std::pair<DeviceSpec, DeviceSpec>> device_map;  // see placement/device_map.h
};

// Creates and keeps kernel states: one per node, kernel and device of a session.
class StateCache {
 public:
  virtual ~StateCache() = default;
  virtual StatusOr<void*> State(const NodeRun& run, const std::vector<tw_shape>& shapes) = 0;
  // Returns the results of a node whose results are the same in every step of the session.
  virtual StatusOr<std::vector<Tensor>> Once(const NodeRun& run) = 0;
  // Returns the host table that a kernel of the node receives.
  virtual const tw_host* HostFor(const Node& node, const KernelDef& kernel) {
    (void)node;
    return kernel.host;
  }
};

// Compiles a plan. feed_shapes: one per feed; unknown if the plan is to serve any shape.
// Errors: INVALID_ARGUMENT for a placeholder that is not fed, or for impossible shapes; the errors
// of shape rules and placement.
StatusOr<std::unique_ptr<Plan>> CompilePlan(Graph& graph, const Signature& signature, const std::vector<Shape>& feed_shapes,
                                            const PlanOptions& options, StateCache* states);

// Recomputes the sizes, offsets and constants of `plan` that depend on shapes, by running only the
// shape rules. Returns NULL if the plan does not fit these shapes; the caller then compiles another
// plan. Threads: one call at a time per plan; steps may run meanwhile.
std::shared_ptr<const PlanShapes> OtherShapes(const Plan& plan, const std::vector<Shape>& feed_shapes);

}  // namespace thalweg
