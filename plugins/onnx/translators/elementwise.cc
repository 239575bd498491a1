// Arithmetic, element by element. Before opset 7, the second input was aligned at `axis` if the attribute `broadcast` was set.
#include <iterator>

#include "table.h"

namespace thalweg::onnx {
namespace {

Value AlignedOperand(Builder& b, Node& n) {
  Value second = n.in(1);
  if (n.opset >= 7 || n.i("broadcast", 0) == 0 || !n.has_attr("axis")) return second;
  const int rank = n.in(0).rank(), own = second.rank();
  if (rank < 0 || own < 0) n.unsupported("the ranks of both operands must be known to align them at 'axis'");
  int64_t axis = n.i("axis");
  if (axis < 0) axis += rank;
  if (axis < 0 || axis + own > rank) n.fail("'axis' is " + std::to_string(axis) + ", but the operands have ranks " + std::to_string(rank) +
                                            " and " + std::to_string(own));
  std::vector<int64_t> added;
  for (int64_t i = own; i < rank - axis; ++i) added.push_back(i);
  return b.unsqueeze(second, added);
}

void Add(Builder& b, Node& n) { n.out(b.op("AddV2", {n.in(0), AlignedOperand(b, n)})); }

constexpr Entry kEntries[] = {
    {"Add", 1, kLatest, &Add},
};

}  // namespace

Family ElementwiseTranslators() { return {std::begin(kEntries), std::end(kEntries)}; }

}  // namespace thalweg::onnx
