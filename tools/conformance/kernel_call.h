// PreparedKernel: a kernel of the plugin, called as the host calls it, but with its records in
// guarded memory and its values between red zones, so that any stray access is noticed.
// Threads: several threads may call Execute at once.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/runtime/step/frame.h"
#include "tools/conformance/held.h"
#include "tools/conformance/sleep_meter.h"

namespace thalweg::conformance {

struct CallResult {
  Status status;                             // the kernel's status
  std::vector<Tensor> outputs;               // in host memory, then the contents of resources; empty after a failure
  std::string breach;                        // describes a forbidden write; empty: none
  std::string completion;                    // describes a fault in the end of an asynchronous call; empty: none
  uint32_t shared = 0;                       // number of outputs that shared the memory of an input
  std::vector<std::vector<bool>> untouched;  // per output and element: unchanged by the call; empty: not known
  std::optional<Slept> slept;                // sleep during execute, if `watch` was set
};

// The settings of one call that differ from a plain call.
struct CallSetting {
  const CancelToken* cancel = nullptr;  // of the step
  Around inputs, outputs;               // the memory around values; `outputs` also applies to scratch
  bool inplace = false;                 // outputs share the memory of inputs where the spec allows it
  bool forget_host = false;             // overwrite inputs in host memory after execute returned, before its stream continues
  bool watch = false;                   // measure the sleep during execute
};

class PreparedKernel {
 public:
  // Creates and prepares the kernel. inputs: host tensors, one per flat input, whose shapes create and
  // prepare see. All arguments but `held` must outlive the result.
  // Errors: those of the shape rule, create and prepare.
  static StatusOr<std::unique_ptr<PreparedKernel>> Make(World* world, const Node* node, const KernelDef* kernel, Device* device,
                                                        const std::vector<Tensor>& inputs, const HeldBy& held = {});
  // Wraps a state that the caller made and destroys; output_shapes and scratch are known.
  static std::unique_ptr<PreparedKernel> Around(World* world, const Node* node, const KernelDef* kernel, Device* device, void* state,
                                                std::vector<Shape> output_shapes, uint64_t scratch);
  ~PreparedKernel();
  // Runs the kernel on new resources.
  CallResult Execute(const std::vector<Tensor>& inputs, const CallSetting& how = {}) const;
  // Runs the kernel on the resources of `state`, which earlier calls may have used.
  CallResult ExecuteOn(const State& state, const std::vector<Tensor>& inputs, const CallSetting& how = {}) const;
  bool updates() const { return !run_.open_update.empty(); }
  // The shapes of Make's rule, possibly partly unknown.
  const std::vector<Shape>& output_shapes() const { return shapes_; }

 private:
  PreparedKernel(World* world, const Node* node, const KernelDef* kernel, Device* device);
  Status Prepare(const std::vector<Tensor>& inputs);
  World* world_;
  NodeRun run_;
  HeldBy held_;
  std::vector<Shape> shapes_;  // of the outputs
  uint64_t scratch_ = 0;
  bool owned_ = true;  // the kernel's state is destroyed with this object
};

// Calls Make and Execute.
CallResult CallKernel(World* world, const Node* node, const KernelDef* kernel, Device* device, const std::vector<Tensor>& inputs,
                      const HeldBy& held = {}, const CallSetting& how = {});

}  // namespace thalweg::conformance
