// Nodes of a piece: what a node of the client's graph becomes in a message, and those that are ours (`_Send`, `_Recv`, values for those who
// only wait). Threads: functions without state.
#pragma once
#include <cstdint>
#include <string>

#include "distributed/piece.h"
#include "framework/registry/registry.h"
#include "framework/runtime/device.h"

namespace thalweg::distributed {

// A value's way from one task to another.
struct Meeting {
  std::string key;
  uint32_t type = 0;
  std::string from, to;  // tasks
};

// Where on its task n is to run: what it says itself, and `wish` where it says nothing.
Status SetDevice(const Node& n, const DeviceSpec& wish, PieceNode* out);
// As messages; those that stand for one of its attributes in full take its place.
Status SetAttrs(const Node& n, PieceNode* out);

StatusOr<PieceNode> SendNode(std::string name, std::string value, const Meeting& meeting);
StatusOr<PieceNode> ReceiveNode(std::string name, const Meeting& meeting);
// A constant without elements.
StatusOr<PieceNode> NothingNode(std::string name, const Registry& registry);

}  // namespace thalweg::distributed
