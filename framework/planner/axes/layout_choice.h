// LayoutChoice: the nodes of a work graph that are to run in another order of axes than the graph
// gives. A node may be turned if its schema says how (`?axes`, `?elementwise`) and its shapes are
// known. The choice begins with the nodes whose kernel prefers the other order; others join if that
// leaves fewer bytes to transpose.
// The rule: a set of nodes that pass turned values to each other is turned if the bytes to
// transpose around the set are worth less than the gain of its kernels. The gain counts as one byte
// per kWorkPerByte multiply-adds of the nodes whose kernel prefers the order.
// Threads: one.
#pragma once
#include <string>
#include <vector>

#include "framework/planner/axes/axis_order.h"
#include "framework/planner/work_graph.h"

namespace thalweg {

// About the multiply-adds that a core does while it transposes a byte, times the share that kernels
// gain.
constexpr double kWorkPerByte = 8;

// How a turned node uses an input.
enum class AxisUse : uint8_t {
  kCannot,   // the node cannot be turned with such an input
  kAsItIs,   // the input does not depend on axes
  kTurned,   // the node takes the turned value
  kWidened,  // the input has fewer axes: the node takes it widened to as many axes as the others, and turned
  kRows,     // the input has one entry per axis
  kNumbers   // the input holds axis numbers
};

struct LayoutChoice {
  struct Form {
    bool turned = false;
    const KernelDef* kernel = nullptr;
    std::vector<AttrValue> attrs;  // empty if the node keeps its own
    std::vector<AxisUse> in;
  };
  std::string to;  // such as "NHWC"
  AxisOrder order;
  const OpSchema* transpose = nullptr;
  std::vector<Form> forms;  // per node
  bool any = false;         // some node is turned
};

// Returns a value that is the same in every step for any feeds and that needs no waiting; NULL if
// the edge has none.
const Tensor* SureValue(const WorkGraph& w, const WorkEdge& e);
// Returns the order of axes that the node gives its input, if the node does nothing else; empty if
// it does more, or if that is not known.
AxisOrder OrderGiven(const WorkGraph& w, const WorkNode& n);
// Returns whether output o of a turned node is turned.
bool TurnsOutput(const WorkNode& n, int32_t o, size_t rank);

// The pairs (from, to) such that kernels of the work graph prefer axis order `to` where their nodes
// have `from`.
std::vector<std::pair<std::string, std::string>> PreferredOrders(const WorkGraph& w);

// REQUIRES: kernels are chosen; OrderBetween(from, to) is not empty.
LayoutChoice ChooseLayout(const WorkGraph& w, const std::string& from, const std::string& to, const OpSchema& transpose);

}  // namespace thalweg
