// SparseSegmentSum, SparseSegmentMean and SparseSegmentSqrtN, with and without a number of
// segments, and their gradients. They reduce rows, chosen by index, by segment.
#include "ops/common/segment.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void WantPairs(const tw::Shape& s) {
  WantVector(s, 1, "indices");
  WantVector(s, 2, "segment_ids");
  if (s.known(1) && s.known(2)) MergeSize(s, s.dim(1, 0), s.dim(2, 0), "the sizes of 'indices' and 'segment_ids'");
}

// The output has `rows` rows of the size of those of input 0.
void SetRows(const tw::Shape& s, int64_t rows) {
  const MaybeDims data = In(s, 0);
  if (data) s.out(0, Join({rows}, Sub(*data, 1, data->size())));
}

void Rule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "data");
  WantPairs(s);
  Dims numbers;
  SetRows(s, !s.value(2, &numbers) ? -1 : numbers.empty() ? 0 : numbers.back() < 0 ? -1 : s.calc('+', numbers.back(), 1));
}

int64_t Size(const tw::Shape& s, const char* name) {
  const std::optional<int64_t> size = ScalarValue(s, 3, name);
  if (size && *size < 0) Fail("'" + std::string(name) + "' is " + tw::text(*size) + "; it must not be negative");
  return size.value_or(-1);
}

void NumberedRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "data");
  WantPairs(s);
  SetRows(s, Size(s, "num_segments"));
}

void GradRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "grad");
  WantPairs(s);
  SetRows(s, Size(s, "output_dim0"));
}

tw_edge FirstSize(const tw::Grad& g, uint32_t i) { return g.op("GatherV2", {g.shape(i), Int(g, 0), Int(g, 0)}); }

enum class By { kNone, kCount, kRoot };

// A chosen row gets the gradient of its segment. With `sparse_gradient` the result is sparse.
template <By kBy>
void Gradient(const tw::Grad& g) {
  const tw_edge indices = g.x(1), ids = g.x(2);
  if (g.b("sparse_gradient")) {
    const RowsOfSegments rows{g, ids, false};
    const tw_edge dy = g.dy();
    return g.dx_sparse(0, indices, rows.Take(kBy == By::kNone ? dy : rows.Divide(dy, kBy == By::kRoot)));
  }
  const char* op = kBy == By::kNone ? "SparseSegmentSumGrad" : kBy == By::kCount ? "SparseSegmentMeanGrad" : "SparseSegmentSqrtNGrad";
  g.dx(0, g.op(op, {g.dy(), indices, ids, FirstSize(g, 0)}));
}

template <By kBy>
void GradGradient(const tw::Grad& g) {
  const std::string op = kBy == By::kNone ? "SparseSegmentSum" : kBy == By::kCount ? "SparseSegmentMean" : "SparseSegmentSqrtN";
  g.dx(0, g.op(op + "WithNumSegments", {g.dy(), g.x(1), g.x(2), FirstSize(g, 0)}));
}

#define INDICES "Tidx: " OPS_INDEX " = int32; "
#define NUMBERS "Tsegmentids: " OPS_INDEX " = int32; "

template <By kBy>
void Ops(tw::Plugin& p, const std::string& name, const std::string& types, const std::string& doc) {
  const std::string in = "(data: T, indices: Tidx, segment_ids: Tsegmentids";
  const std::string told =
      "doc \"output[k] is " + doc + " of the rows indices[i] of data with segment_ids[i] == k, which must not decrease; 0 of none";
  const std::string sparse = "sparse_gradient: bool = false; ";
  p.op<Gradient<kBy>, Rule>(name + in + ") -> (output: T); T: " + types + "; " INDICES NUMBERS + sparse + told + "\"");
  p.op<Gradient<kBy>, NumberedRule>(name + "WithNumSegments" + in + ", num_segments: Tnumsegments) -> (output: T); T: " + types +
                                    "; " INDICES "Tnumsegments: " OPS_INDEX " = int32; " NUMBERS + sparse + told +
                                    "; as many rows as num_segments says\"");
  p.op<GradGradient<kBy>, GradRule>(
      name +
      "Grad(grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32) -> (output: T); T: " OPS_FLOATS "; " INDICES NUMBERS
      "doc \"gradient of " +
      name + " for data of output_dim0 rows\"");
}

}  // namespace

void register_sparse_segment(tw::Plugin& p) {
  Ops<By::kNone>(p, "SparseSegmentSum", OPS_REALS, "the sum");
  Ops<By::kCount>(p, "SparseSegmentMean", OPS_FLOATS, "the mean");
  Ops<By::kRoot>(p, "SparseSegmentSqrtN", OPS_FLOATS, "the sum, over the root of their number,");
}

}  // namespace thalweg::ops
