// One kernel call outside a step: constants that shape rules want, folding, and handles that are the same for a whole session.
// Threads: any.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/graph/shape_inference.h"
#include "framework/runtime/frame.h"

namespace thalweg {

// Every input is a known constant, or of an argument whose shape alone is read and known.
bool CanEvaluate(const OpSchema& op, const std::vector<uint32_t>& in_at, std::span<const tw_shape> shapes, std::span<const Tensor> values);

// Runs the node's kernel on the host device. values may be empty where CanEvaluate allows it. budget: pays for the results; NULL: nobody.
// Errors: NOT_FOUND without such a kernel or device; RESOURCE_EXHAUSTED; whatever the kernel says.
StatusOr<std::vector<Tensor>> EvaluateOnHost(Runtime& runtime, const Node& node, std::span<const tw_shape> shapes,
                                             std::span<const Tensor> values, MemoryBudget* budget);

// The same with a chosen kernel, device and container.
StatusOr<std::vector<Tensor>> CallOnce(Runtime& runtime, const Node& node, const KernelDef& kernel, Device* device,
                                       std::span<const tw_shape> shapes, std::span<const Tensor> values, const std::string& container,
                                       MemoryBudget* budget = nullptr);

// Fills the flags of a run from its kernel. REQUIRES: node, kernel, device and types are set.
void ResolveArguments(NodeRun* run);
// INVALID_ARGUMENT where an output would have to be made of handles in an input: kernels pass them on as they are, or not at all.
Status CheckHandles(const NodeRun& run);
// Makes the kernel's state; destroy it with DestroyState. shapes: inputs, then outputs. budget: pays for what the plugin counts; NULL:
// nobody.
Status CreateState(const NodeRun& run, const std::vector<tw_shape>& shapes, MemoryBudget* budget, void** out_state);
void DestroyState(const KernelDef& kernel, void* state);
// How many bytes of scratch the kernel wants for these known shapes.
StatusOr<uint64_t> PrepareScratch(const NodeRun& run, const std::vector<tw_shape>& shapes);

// Runs the shape rule on what is in the frame's input slots. Host-memory inputs count as known values.
Status InferFrameShapes(const KernelFrame& f, ShapeAnswer* out);

}  // namespace thalweg
