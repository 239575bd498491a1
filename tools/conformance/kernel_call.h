// PreparedKernel: a kernel of the plugin, called as the host calls it, but with its records in
// guarded memory and its values between red zones, so that any stray access is noticed.
// Threads: Execute from any, several at once.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/runtime/frame.h"
#include "tools/conformance/held.h"

namespace thalweg::conformance {

struct CallResult {
  Status status;                // the kernel's status
  std::vector<Tensor> outputs;  // in host memory, then the contents of the resources; empty after a failure
  std::string breach;           // describes writes outside the kernel's own memory
  std::string completion;       // describes a fault in the end of an asynchronous call
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
  // Resources are new in each call. cancel: may be NULL.
  CallResult Execute(const std::vector<Tensor>& inputs, const CancelToken* cancel = nullptr) const;
  // Runs on resources that may have been used before.
  CallResult ExecuteOn(const State& state, const std::vector<Tensor>& inputs, const CancelToken* cancel = nullptr) const;
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
                      const HeldBy& held = {});

}  // namespace thalweg::conformance
