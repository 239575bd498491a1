// UnsortedSegmentSum: sums of the rows that share a segment number. Rows with a negative number are left out.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  const MaybeDims data = In(s, 0), ids = In(s, 1);
  const std::optional<int64_t> segments = ScalarValue(s, 2, "num_segments");
  if (segments && *segments < 0) Fail("'num_segments' is " + tw::text(*segments) + "; it must not be negative");
  if (!data || !ids) return;
  if (ids->size() > data->size())
    Fail("'segment_ids' is " + Text(ids) + ", which is no prefix of the shape of 'data', " + Text(data) + "; give one number per row");
  Merge(s, Sub(*data, 0, ids->size()), ids, "the leading axes of 'data' and the shape of 'segment_ids'");
  s.out(0, Join({segments.value_or(-1)}, Sub(*data, ids->size(), data->size())));
}

// Rows gather the gradient of their segment; those left out get 0.
void Gradient(const tw::Grad& g) {
  const tw_edge dy = g.dy(), ids = g.x(1), zero = g.scalar(0, g.type_in(1));
  const tw_edge rows = g.op("GatherV2", {dy, g.op("Maximum", {ids, zero}), Int(g, 0)});
  const tw_edge counted = g.op("GreaterEqual", {ids, zero});
  const tw_edge inner = Ones(g, g.op("Size", {Tail(g, ShapeOf(g, dy), 1)}));
  const tw_edge mask = g.op("Reshape", {counted, Concat(g, {g.shape(1), inner})});
  g.dx(0, g.op("SelectV2", {mask, rows, Number(g, 0, dy)}));
}

}  // namespace

void register_segment_sum(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "UnsortedSegmentSum(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> (output: T); T: " OPS_NUMBERS
      "; Tindices: " OPS_INDEX_SHORT "; Tnumsegments: " OPS_INDEX
      " = int32; "
      "doc \"output[k] is the sum of data[i] with segment_ids[i] == k; negative ids are left out, too large ones refused\"");
}

}  // namespace thalweg::ops
