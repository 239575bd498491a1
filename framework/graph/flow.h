// The ops by which a graph decides while it runs what of it runs: branches (Switch, Merge) and loops in frames (Enter, Exit,
// NextIteration, LoopCond). They have no kernels: the executor runs them itself (runtime/frame_run.h). An op is one by its role.
#pragma once
#include <cstdint>
#include <iterator>
#include <string_view>

#include "framework/graph/graph.h"
#include "framework/graph/op_schema.h"

namespace thalweg {

enum class Flow : uint8_t { kNone, kSwitch, kMerge, kEnter, kExit, kNextIteration, kLoopCond, kControlTrigger };

// An attribute of nodes of role `recv`: what comes from the other process may be dead, so a plan with such a node has control flow.
inline constexpr const char* kMayBeDead = "_may_be_dead";

inline Flow FlowOf(const OpSchema& op) {
  if (op.role.empty()) return Flow::kNone;
  static constexpr std::string_view kRoles[] = {"", "switch", "merge", "enter", "exit", "next_iteration", "loop_cond", "control_trigger"};
  for (uint8_t k = 1; k < std::size(kRoles); ++k) {
    if (op.role == kRoles[k]) return Flow{k};
  }
  return Flow::kNone;
}

// Of a node that works on references: as what runs in its place.
inline Flow FlowOf(const Node& n) { return FlowOf(n.runs_as() ? n.runs_as()->op() : n.op()); }

}  // namespace thalweg
