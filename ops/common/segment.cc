#include "ops/common/segment.h"

namespace thalweg::ops {

// Rows without a segment read an extra row of zeros at the end.
tw_edge RowsOfSegments::Take(tw_edge e) const {
  if (!negative) return g.op("GatherV2", {e, ids, Int(g, 0)});
  const tw_edge shape = ShapeOf(g, e), none = g.op("Fill", {Concat(g, {Ints(g, {1}), Tail(g, shape, 1)}), Number(g, 0, e)});
  const tw_edge last = CastTo(g, Count(e), TypeOf(g, ids));
  const tw_edge row = g.op("SelectV2", {g.op("Less", {ids, g.scalar(0, TypeOf(g, ids))}), last, ids});
  return g.op("GatherV2", {g.op("ConcatV2", {e, none, Int(g, 0)}), row, Int(g, 0)});
}

tw_edge RowsOfSegments::Count(tw_edge e) const { return g.op("GatherV2", {ShapeOf(g, e), Int(g, 0), Int(g, 0)}); }

tw_edge RowsOfSegments::Sum(tw_edge rows, tw_edge e) const { return g.op("UnsortedSegmentSum", {rows, ids, Count(e)}); }

tw_edge RowsOfSegments::Divide(tw_edge e, bool root) const {
  const tw_edge sizes = g.op("Maximum", {Sum(g.op("OnesLike", {ids}), e), g.scalar(1, TypeOf(g, ids))});
  // Counted in integers, because half and bfloat16 are exact only up to 2048 and 256.
  tw_edge by = CastTo(g, sizes, TypeOf(g, e));
  if (root) by = g.op("Sqrt", {by});
  const tw_edge ones = Ones(g, g.op("Size", {Tail(g, ShapeOf(g, e), 1)}));
  return g.op("RealDiv", {e, g.op("Reshape", {by, Concat(g, {Ints(g, {-1}), ones})})});
}

tw_edge ExtremeOfRows(const RowsOfSegments& rows) {
  const tw::Grad& g = rows.g;
  const tw_edge x = g.x(0), y = g.y(), dy = g.dy();
  const tw_edge hit = g.op("Equal", {x, rows.Take(y)});
  const tw_edge hits = rows.Sum(CastTo(g, hit, TypeOf(g, x)), y);
  return g.op("SelectV2", {hit, rows.Take(g.op("DivNoNan", {dy, hits})), Number(g, 0, x)});
}

// As the gradient of Prod: y / x. For an x of 0 it is the product of the rows that are not 0; if
// the segment has a second 0, times that 0, which keeps the result differentiable.
tw_edge ProductOfRows(const RowsOfSegments& rows) {
  const tw::Grad& g = rows.g;
  const tw_edge x = g.x(0), y = g.y(), zero = Number(g, 0, x), one = Number(g, 1, x);
  const tw_edge is_zero = g.op("Equal", {x, zero});
  const tw_edge filled = g.op("SelectV2", {is_zero, one, x});
  const tw_edge zeros = rows.Sum(CastTo(g, is_zero, TypeOf(g, x)), y);
  const tw_edge rest = g.op("UnsortedSegmentProd", {filled, rows.ids, rows.Count(y)});
  const tw_edge only_zeros = g.op("SelectV2", {is_zero, x, zero});
  const tw_edge other = g.op("Sub", {rows.Take(rows.Sum(only_zeros, y)), only_zeros});
  const tw_edge alone = rows.Take(g.op("SelectV2", {g.op("Equal", {zeros, one}), rest, zero}));
  const tw_edge of_two = rows.Take(g.op("SelectV2", {g.op("Equal", {zeros, Number(g, 2, x)}), rest, zero}));
  const tw_edge at_zero = g.op("AddV2", {alone, g.op("Mul", {other, of_two})});
  const tw_edge others = g.op("SelectV2", {is_zero, at_zero, g.op("RealDiv", {rows.Take(y), filled})});
  return g.op("Mul", {rows.Take(g.dy()), Conj(g, others)});
}

}  // namespace thalweg::ops
