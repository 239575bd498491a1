// Control flow ops: a graph uses them to decide at run time which nodes run: branches (Switch,
// Merge) and loops in frames (Enter, Exit, NextIteration, LoopCond). They have no kernels; the
// executor runs them itself (runtime/flow/frame_run.h). An op is recognised by its role. Threads: any.
#pragma once
#include <cstdint>
#include <iterator>
#include <string_view>

#include "framework/graph/graph.h"
#include "framework/graph/op_schema.h"

namespace thalweg {

enum class Flow : uint8_t { kNone, kSwitch, kMerge, kEnter, kExit, kNextIteration, kLoopCond, kControlTrigger };

// An attribute of nodes of role `recv`: the received value may be dead, so a plan with such a node
// has control flow.
inline constexpr const char* kMayBeDead = "_may_be_dead";

inline Flow FlowOf(const OpSchema& op) {
  if (op.role.empty()) return Flow::kNone;
  static constexpr std::string_view kRoles[] = {"", "switch", "merge", "enter", "exit", "next_iteration", "loop_cond", "control_trigger"};
  for (uint8_t k = 1; k < std::size(kRoles); ++k) {
    if (op.role == kRoles[k]) return Flow{k};
  }
  return Flow::kNone;
}

// For a node that works on references: the flow of the node that runs in its place.
inline Flow FlowOf(const Node& n) { return FlowOf(n.runs_as() ? n.runs_as()->op() : n.op()); }

}  // namespace thalweg
