// The error for a node that has no kernel on the devices that it may run on.
#pragma once
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

class Runtime;

// The types of the node's inputs, such as "float, int32".
std::string InputTypesText(const Node& node);

// NOT_FOUND; the message lists the kinds of devices, with their plugins, that have a kernel for the
// node, or else the kernels of the op. asked: the devices that the node may run on; empty means
// any. declined: the kernels there that decline the node, with their reasons.
Status MissingKernel(Runtime& runtime, const Node& node, std::string_view asked, std::string_view declined = {});

}  // namespace thalweg
