// LayoutChoice: which nodes of a work graph are to run in another order of axes than the graph says. A node may where its schema says what
// becomes of it then (`?axes`, `?elementwise`) and the shapes are known. It begins with the nodes whose kernel there prefers the order;
// others join them where that leaves fewer bytes to transpose.
// The rule: a set of nodes that hand each other turned values is turned if the bytes that have to be transposed around it are worth less
// than what its kernels gain, taken as one byte for every kWorkPerByte multiply-adds of a node whose kernel prefers the order.
// Threads: one.
#pragma once
#include <string>
#include <vector>

#include "framework/plan/axis_order.h"
#include "framework/plan/work_graph.h"

namespace thalweg {

// About what a core multiplies while it transposes a byte, times the share that kernels gain.
constexpr double kWorkPerByte = 8;

// What a node that is turned does with an input.
enum class AxisUse : uint8_t {
  kCannot,   // it cannot be turned with such an input
  kAsItIs,   // nothing of it goes by axes
  kTurned,   // it takes the turned value
  kWidened,  // of fewer axes: it takes it with as many, and turned
  kRows,     // an entry for each axis
  kNumbers   // numbers of axes
};

struct LayoutChoice {
  struct Form {
    bool turned = false;
    const KernelDef* kernel = nullptr;
    std::vector<AttrValue> attrs;  // empty: as the node has them
    std::vector<AxisUse> in;
  };
  std::string to;  // such as "NHWC"
  AxisOrder order;
  const OpSchema* transpose = nullptr;
  std::vector<Form> forms;  // per node
  bool any = false;         // some node is turned
};

// A value that is the same in every step for any feeds, and that nobody has to wait for; NULL: none.
const Tensor* SureValue(const WorkGraph& w, const WorkEdge& e);
// The order of axes that the node gives its input, if it does nothing else; empty: it does not, or that is not known.
AxisOrder OrderGiven(const WorkGraph& w, const WorkNode& n);
// Whether output o of a node that is turned is.
bool TurnsOutput(const WorkNode& n, int32_t o, size_t rank);

// The orders of axes that kernels of the work graph prefer to those that their nodes say: from, to.
std::vector<std::pair<std::string, std::string>> PreferredOrders(const WorkGraph& w);

// REQUIRES: kernels are chosen; OrderBetween(from, to) is one.
LayoutChoice ChooseLayout(const WorkGraph& w, const std::string& from, const std::string& to, const OpSchema& transpose);

}  // namespace thalweg
