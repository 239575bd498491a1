// Nodes of a piece: converts nodes of the client's graph to messages, and makes the nodes that
// partitioning adds (`_Send`, `_Recv`, values for nodes that only wait). Threads: functions without
// state.
#pragma once
#include <cstdint>
#include <string>

#include "distributed/piece.h"
#include "framework/registry/registry.h"
#include "framework/runtime/devices/device.h"

namespace thalweg::distributed {

// The route of a value from one task to another.
struct Meeting {
  std::string key;
  uint32_t type = 0;
  std::string from, to;  // tasks
};

// Sets the device of n on its task: the node's own, completed from `wish`.
Status SetDevice(const Node& n, const DeviceSpec& wish, PieceNode* out);
// Adds the attributes as messages; an extra attribute that holds the full form of an attribute
// replaces it.
Status SetAttrs(const Node& n, PieceNode* out);

StatusOr<PieceNode> SendNode(std::string name, std::string value, const Meeting& meeting);
StatusOr<PieceNode> ReceiveNode(std::string name, const Meeting& meeting);
// Makes a constant without elements.
StatusOr<PieceNode> NothingNode(std::string name, const Registry& registry);

}  // namespace thalweg::distributed
