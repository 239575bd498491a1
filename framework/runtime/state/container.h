// Containers: named stores of the state that outlives a step, and the rule that selects one for an
// operation's state. State is in the container that its operation names, else in the one that the
// session names, else in its graph's own. Exception: a queue, table or other resource that the
// program gave a `shared_name` is then in the runtime's default container, where every graph finds
// it. Threads: any.
#pragma once
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace thalweg {

struct KernelFrame;

// The runtime's default container: a worker's sessions use it, and local graphs share resources by
// name in it.
inline constexpr std::string_view kSharedContainer = "localhost";

// A bool attribute that any node may have: its `shared_name` is private to its graph. Libraries set
// it on nodes that they add. See thalweg/op.h.
inline constexpr char kOfGraph[] = "_of_graph";

// Returns a name for a graph's own container that no container of this process had. Programs cannot
// name it, see CheckContainerName.
std::string NewGraphContainer();
inline bool IsGraphContainer(std::string_view name) { return name.starts_with('<'); }
// INVALID_ARGUMENT if the name is that of a graph's own container.
Status CheckContainerName(std::string_view name);

// Returns the container of the resource that the kernel call opens. named: the container that the
// operation names; "" if none. The result lives as long as `named` and the call. Errors: as
// CheckContainerName.
StatusOr<std::string_view> ContainerOf(const KernelFrame& f, std::string_view named, std::string_view type, std::string_view name);

}  // namespace thalweg
