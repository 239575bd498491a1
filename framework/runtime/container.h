// Containers: named stores of the state that outlives a step, and which of them an operation's state is in. The rule: state lives in the
// container that its operation names, else in the one that the session names, else in its graph's own; but a queue, table or other resource
// to which the program gave a `shared_name` is then in the runtime's default container, where every graph finds it.
// Threads: any.
#pragma once
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace thalweg {

struct KernelFrame;

// The runtime's default container: a worker's sessions are in it, and what local graphs share by name.
inline constexpr std::string_view kSharedContainer = "localhost";

// Bool attribute that any node may have: its `shared_name` is only its graph's, as of what libraries add to graphs. See thalweg/op.h.
inline constexpr char kOfGraph[] = "_of_graph";

// A name that no container had in this process, for a graph's own. Programs cannot name it, see CheckContainerName.
std::string NewGraphContainer();
inline bool IsGraphContainer(std::string_view name) { return name.starts_with('<'); }
// INVALID_ARGUMENT for a name of a graph's own container.
Status CheckContainerName(std::string_view name);

// The container of the resource that the call of a kernel opens. named: what the operation says; empty: nothing. The answer lives as long
// as `named` and the call. Errors: those of CheckContainerName.
StatusOr<std::string_view> ContainerOf(const KernelFrame& f, std::string_view named, std::string_view type, std::string_view name);

}  // namespace thalweg
