// SegmentSum, SegmentMean, SegmentProd, SegmentMax and SegmentMin reduce consecutive rows with the
// same segment number to one row.
#include "ops/common/segment.h"

#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The number of segments is the last segment number plus one.
void Rule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "data");
  WantVector(s, 1, "segment_ids");
  const MaybeDims data = In(s, 0), ids = In(s, 1);
  if (!data) return;
  if (ids) MergeSize(s, (*data)[0], (*ids)[0], "the rows of 'data' and of 'segment_ids'");
  Dims numbers;
  int64_t segments = -1;
  if (s.value(1, &numbers)) {
    int64_t before = 0;
    for (int64_t number : numbers) {
      if (number < before) Fail("'segment_ids' is " + Text(numbers) + "; the numbers must not decrease, from 0 on");
      before = number;
    }
    segments = numbers.empty() ? 0 : s.calc('+', before, 1);
  }
  s.out(0, Join({segments}, Sub(*data, 1, data->size())));
}

RowsOfSegments Rows(const tw::Grad& g) { return {g, g.x(1), false}; }
void SumGradient(const tw::Grad& g) { g.dx(0, Rows(g).Take(g.dy())); }
void MeanGradient(const tw::Grad& g) { g.dx(0, Rows(g).Take(Rows(g).Divide(g.dy(), false))); }
void ProdGradient(const tw::Grad& g) { g.dx(0, ProductOfRows(Rows(g))); }
void ExtremeGradient(const tw::Grad& g) { g.dx(0, ExtremeOfRows(Rows(g))); }

template <void (*Gradient)(const tw::Grad&)>
void Segment(tw::Plugin& p, const std::string& name, const std::string& types, const std::string& doc) {
  p.op<Gradient, Rule>(name + "(data: T, segment_ids: Tindices) -> (output: T); T: " + types +
                       "; Tindices: " OPS_INDEX "; ?data data; doc \"output[k] is " + doc +
                       " of the rows i of data with segment_ids[i] == k; the numbers must not decrease\"");
}

}  // namespace

void register_segment(tw::Plugin& p) {
  Segment<SumGradient>(p, "SegmentSum", OPS_NUMBERS, "the sum");
  Segment<MeanGradient>(p, "SegmentMean", OPS_NUMBERS, "the mean, or 0 of none,");
  Segment<ProdGradient>(p, "SegmentProd", OPS_NUMBERS, "the product, or 1 of none,");
  Segment<ExtremeGradient>(p, "SegmentMax", OPS_REALS, "the largest element, or 0 of none,");
  Segment<ExtremeGradient>(p, "SegmentMin", OPS_REALS, "the smallest element, or 0 of none,");
}

}  // namespace thalweg::ops
