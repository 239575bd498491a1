// Kernel calls outside a step: constants that shape rules need, constant folding, and handles that
// are the same for a whole session. Threads: any.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/graph/shape_inference.h"
#include "framework/runtime/step/frame.h"

namespace thalweg {

// Runs the node's kernel on the host device. `values` may be empty where CanEvaluate allows it.
// budget: is charged for the results; NULL: none. NOT_FOUND if there is no such kernel or device;
// RESOURCE_EXHAUSTED; the kernel's errors.
StatusOr<std::vector<Tensor>> EvaluateOnHost(Runtime& runtime, const Node& node, std::span<const tw_shape> shapes,
                                             std::span<const Tensor> values, MemoryBudget* budget);

// Runs a given kernel on a given device, with a container.
StatusOr<std::vector<Tensor>> CallOnce(Runtime& runtime, const Node& node, const KernelDef& kernel, Device* device,
                                       std::span<const tw_shape> shapes, std::span<const Tensor> values, const std::string& container,
                                       MemoryBudget* budget = nullptr);

// Fills the per-argument fields of a run from its kernel. REQUIRES: node, kernel, device and types
// are set.
void ResolveArguments(NodeRun* run);
// INVALID_ARGUMENT if an output would be computed from handles of an input. Kernels may pass
// handles on unchanged, or not at all.
Status CheckHandles(const NodeRun& run);
// Makes the kernel's state; the caller destroys it with DestroyState. shapes: inputs, then outputs.
// budget: is charged for memory that the plugin counts; NULL: none.
Status CreateState(const NodeRun& run, const std::vector<tw_shape>& shapes, MemoryBudget* budget, void** out_state);
void DestroyState(const KernelDef& kernel, void* state);
// Returns the scratch bytes that the kernel needs for these known shapes.
StatusOr<uint64_t> PrepareScratch(const NodeRun& run, const std::vector<tw_shape>& shapes);

// Runs the shape rule on the values in the frame's input slots. Inputs in host memory are known
// values.
Status InferFrameShapes(const KernelFrame& f, ShapeAnswer* out);

}  // namespace thalweg
