// UnsortedSegmentSum, UnsortedSegmentProd, UnsortedSegmentMax and UnsortedSegmentMin reduce the
// rows with the same segment number to one row. They skip rows with a negative number.
#include "ops/common/segment.h"
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

RowsOfSegments Rows(const tw::Grad& g) { return {g, g.x(1), true}; }
// Each row gets the gradient of its segment; skipped rows get 0.
void SumGradient(const tw::Grad& g) { g.dx(0, Rows(g).Take(g.dy())); }
void ProdGradient(const tw::Grad& g) { g.dx(0, ProductOfRows(Rows(g))); }
void ExtremeGradient(const tw::Grad& g) { g.dx(0, ExtremeOfRows(Rows(g))); }

template <void (*Gradient)(const tw::Grad&)>
void Segment(tw::Plugin& p, const std::string& name, const std::string& types, const std::string& doc) {
  p.op<Gradient, Rule>(name + "(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> (output: T); T: " + types +
                       "; Tindices: " OPS_INDEX_SHORT "; Tnumsegments: " OPS_INDEX " = int32; ?data data; doc \"output[k] is " + doc +
                       " of data[i] with segment_ids[i] == k; negative ids are left out, too large ones refused\"");
}

}  // namespace

void register_segment_sum(tw::Plugin& p) {
  Segment<SumGradient>(p, "UnsortedSegmentSum", OPS_NUMBERS, "the sum");
  Segment<ProdGradient>(p, "UnsortedSegmentProd", OPS_NUMBERS, "the product");
  Segment<ExtremeGradient>(p, "UnsortedSegmentMax", OPS_REALS, "the largest element, or the lowest finite number,");
  Segment<ExtremeGradient>(p, "UnsortedSegmentMin", OPS_REALS, "the smallest element, or the highest finite number,");
}

}  // namespace thalweg::ops
