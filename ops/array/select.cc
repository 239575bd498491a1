// SelectV2 selects element by element, and all three inputs broadcast. Select, the older op, does
// not broadcast, but accepts a vector that selects whole rows.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void SelectRule(const tw::Shape& s) {
  const MaybeDims condition = In(s, 0);
  MaybeDims data = Merge(s, In(s, 1), In(s, 2), "the shapes of 't' and 'e'");
  if (condition && condition->size() == 1 && data && !data->empty())
    (*data)[0] = MergeSize(s, (*condition)[0], (*data)[0], "the size of 'condition' and the number of rows");
  else if (condition && !condition->empty() && data)
    data = Merge(s, condition, data,
                 "'condition' must be a scalar, a vector with one entry per row, or have the shape of the data, but the shapes");
  Set(s, 0, data);
}

void SelectGradient(const tw::Grad& g) {
  const tw_edge zeros = g.op("ZerosLike", {g.dy()});
  g.dx(1, g.op("Select", {g.x(0), g.dy(), zeros}));
  g.dx(2, g.op("Select", {g.x(0), zeros, g.dy()}));
}

void SelectV2Rule(const tw::Shape& s) { Set(s, 0, Broadcast(Broadcast(In(s, 1), In(s, 2)), In(s, 0))); }

void SelectV2Gradient(const tw::Grad& g) {
  const tw_edge zero = Number(g, 0, g.dy());
  const MaybeDims condition = ShapeIn(g, 0), t = ShapeIn(g, 1), e = ShapeIn(g, 2);
  g.dx(1, SumTo(g, g.op("SelectV2", {g.x(0), g.dy(), zero}), 1, Broadcast(condition, e)));
  g.dx(2, SumTo(g, g.op("SelectV2", {g.x(0), zero, g.dy()}), 2, Broadcast(condition, t)));
}

}  // namespace

void register_select(tw::Plugin& p) {
  p.op<SelectGradient, SelectRule>(
      R"(Select(condition: bool, t: T, e: T) -> (output: T); T: type; chooses condition t e; ?data condition t e;
      doc "t where the condition is true, else e; no broadcasting")");
  p.op<SelectV2Gradient, SelectV2Rule>(
      R"(SelectV2(condition: bool, t: T, e: T) -> (output: T); T: type; chooses condition t e; ?elementwise; ?data condition t e;
      doc "t where the condition is true, else e; all broadcast")");
}

}  // namespace thalweg::ops
