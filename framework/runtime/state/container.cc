#include "framework/runtime/state/container.h"

#include <atomic>
#include <cstdint>

#include "framework/base/shown.h"
#include "framework/base/strings.h"
#include "framework/graph/graph.h"
#include "framework/runtime/step/frame.h"
#include "thalweg/plugin/resource.h"

namespace thalweg {
namespace {

// Returns true if the program wants other graphs to find the resource. A variable's shared_name is
// its name, in our graphs and in TensorFlow's, so it does not count. The author of an imported
// graph knew nothing of the other graphs here. Operations that make no handle (Stage, Unstage) have
// no other way to find each other in their graph.
bool AsksToShare(const Node& node, std::string_view type, std::string_view name) {
  if (type == TW_VARIABLE_TYPE || node.imported()) return false;
  const AttrValue* shared = node.FindAttr("shared_name");
  if (!shared || shared->is_list() || shared->kind() != TW_ATTR_STRING || shared->strings()[0] != name) return false;
  bool makes_handle = false;
  for (int32_t o = 0; o < node.n_out(); ++o) makes_handle = makes_handle || node.out_type(o) == TW_RESOURCE;
  return makes_handle && !node.extra_attrs().contains(kOfGraph);
}

}  // namespace

std::string NewGraphContainer() {
  static std::atomic<uint64_t> count{0};
  return StrCat("<graph ", count.fetch_add(1, std::memory_order_relaxed) + 1, ">");
}

Status CheckContainerName(std::string_view name) {
  if (!IsGraphContainer(name)) return Status();
  return InvalidArgument("container '", Shown(name), "': names that begin with '<' are of graphs; choose another");
}

StatusOr<std::string_view> ContainerOf(const KernelFrame& f, std::string_view named, std::string_view type, std::string_view name) {
  if (!named.empty()) {
    RETURN_IF_ERROR(CheckContainerName(named));
    return named;
  }
  if (!f.step->container) return named;
  const std::string_view session = *f.step->container;
  return IsGraphContainer(session) && f.run->node && AsksToShare(*f.run->node, type, name) ? kSharedContainer : session;
}

}  // namespace thalweg
