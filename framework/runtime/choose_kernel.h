// Chooses the kernel of a node on a device: the best of those whose types and attributes fit and
// that do not decline the node (`fits` in plugin/kernel.h).
// Threads: any.
#pragma once
#include <span>
#include <string>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/registry/kernel_spec.h"
#include "framework/registry/registry.h"
#include "framework/runtime/devices/device.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

// The facts about a node on which kernels may base their answer.
struct NodeFacts {
  const Node& node;
  std::span<const tw_shape> shapes;  // of the inputs, then of the outputs, as far as known; those that are missing are the graph's
  std::span<const Tensor> values;    // per input: its value, if it is known, in host memory; empty: none is
};

// OK if the kernel can compute the node; UNIMPLEMENTED if it declines, with its reason; another code
// refuses the node.
Status KernelFits(const KernelDef& kernel, const Device& device, const NodeFacts& facts);

// Returns NULL if no kernel fits. *declined: the kernels that declined, with their reasons; NULL is
// fine. Errors: those with which a kernel refuses the node.
StatusOr<const KernelDef*> ChooseKernel(const Registry& registry, const Device& device, const NodeFacts& facts,
                                        std::string* declined = nullptr);

}  // namespace thalweg
