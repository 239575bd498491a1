// What is said where a node has no kernel on the devices that it may run on.
#pragma once
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

class Runtime;

// "float, int32": the types of the node's inputs.
std::string InputTypesText(const Node& node);

// NOT_FOUND: which kinds of devices have a kernel for the node, of which plugins, else which kernels the op has. asked: the devices that it
// may run on; empty: any.
Status MissingKernel(Runtime& runtime, const Node& node, std::string_view asked);

}  // namespace thalweg
