// PreparedKernel: a kernel of the plugin, called as the host calls it, but with its records in
// guarded memory and its values between red zones, so that any stray access is noticed.
// Threads: Execute from any, several at once.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/runtime/frame.h"
#include "tools/conformance/held.h"
#include "tools/conformance/sleep_meter.h"

namespace thalweg::conformance {

struct CallResult {
  Status status;                             // what the kernel says
  std::vector<Tensor> outputs;               // in host memory, then what the resources hold; empty after a failure
  std::string breach;                        // what it wrote to that was not its own
  std::string completion;                    // what was wrong about the end of an asynchronous call
  uint32_t shared = 0;                       // outputs that lay where an input did
  std::vector<std::vector<bool>> untouched;  // per output and element: it is as it was before; empty where that cannot be told
  std::optional<Slept> slept;                // how long execute slept, if it was watched
};

// What is unusual about one call.
struct CallSetting {
  const CancelToken* cancel = nullptr;  // of the step
  Around inputs, outputs;               // outputs: and scratch
  bool inplace = false;                 // outputs lie where inputs do, as far as the spec lets them
  bool forget_host = false;  // once execute has returned, and before its stream goes on, inputs in host memory hold something else
  bool watch = false;        // tell how long execute slept
};

class PreparedKernel {
 public:
  // inputs: host tensors, one per flat input; their shapes are known from the beginning. All arguments but `held` must outlive it.
  // Errors: those of the shape rule, create and prepare.
  static StatusOr<std::unique_ptr<PreparedKernel>> Make(World* world, const Node* node, const KernelDef* kernel, Device* device,
                                                        const std::vector<Tensor>& inputs, const HeldBy& held = {});
  // Wraps a state that the caller made and destroys; output_shapes and scratch are known.
  static std::unique_ptr<PreparedKernel> Around(World* world, const Node* node, const KernelDef* kernel, Device* device, void* state,
                                                std::vector<Shape> output_shapes, uint64_t scratch);
  ~PreparedKernel();
  // Resources are new in each call.
  CallResult Execute(const std::vector<Tensor>& inputs, const CallSetting& how = {}) const;
  // On resources that may have been used before.
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
  bool owned_ = true;  // the state
};

// Make and Execute in one.
CallResult CallKernel(World* world, const Node* node, const KernelDef* kernel, Device* device, const std::vector<Tensor>& inputs,
                      const HeldBy& held = {}, const CallSetting& how = {});

}  // namespace thalweg::conformance
