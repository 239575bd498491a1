// SparseFillEmptyRows, SparseReshape, and SparseCross, which crosses the features of rows.
#include "ops/common/grad.h"
#include "ops/common/sparse.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void FillRule(const tw::Shape& s) {
  WantSparse(s, {0, "indices"}, SparsePart{1, "values"}, {2, "dense_shape"});
  WantScalar(s, 3, "default_value");
  const int64_t rank = s.known(2)   ? s.dim(2, 0)
                       : s.known(0) ? s.dim(0, 1)
                                    : -1,
                n = s.known(1)   ? s.dim(1, 0)
                    : s.known(0) ? s.dim(0, 0)
                                 : -1;
  if (rank == 0) Fail("'dense_shape' is empty; rows need at least one axis");
  std::vector<int64_t> sizes;
  s.out(0, Dims{-1, rank});
  s.out(1, Dims{-1});
  s.out(2, Dims{s.value(2, &sizes) && !sizes.empty() && sizes[0] >= 0 ? sizes[0] : -1});
  s.out(3, Dims{n});
}

void FillGradient(const tw::Grad& g) {
  if (!g.has_dy(1)) return;
  const tw_edge node = g.op("SparseFillEmptyRowsGrad", {g.y(3), g.dy(1)});
  g.dx(1, node);
  g.dx(3, g.out(node, 1));
}

void FillGradRule(const tw::Shape& s) {
  WantVector(s, 0, "reverse_index_map");
  WantVector(s, 1, "grad_values");
  s.out(0, Dims{s.known(0) ? s.dim(0, 0) : -1});
  s.out(1, Dims{});
}

// The values are gathered, and the others added up; the gradients put them back.
void FillGradGradient(const tw::Grad& g) {
  const tw_edge size = g.shape(1), n = g.op("Reshape", {size, Ints(g, {})});
  const tw_edge taken = g.op("UnsortedSegmentSum", {g.dy(0), g.x(0), n});
  const tw_edge ones = g.op("Fill", {g.shape(0), Number(g, 1, g.dy(0))});
  const tw_edge rest = g.op("Sub", {Number(g, 1, g.dy(0)), g.op("UnsortedSegmentSum", {ones, g.x(0), n})});
  g.dx(1, g.op("AddV2", {taken, g.op("Mul", {rest, g.dy(1)})}));
}

void ReshapeRule(const tw::Shape& s) {
  WantVector(s, 2, "new_shape");
  const int64_t n = WantSparse(s, {0, "input_indices"}, nullptr, {1, "input_shape"}).elements, rank = s.known(2) ? s.dim(2, 0) : -1;
  s.out(0, Dims{n, rank});
  s.out(1, Dims{rank});
}

void CrossRule(const tw::Shape& s) {
  const uint32_t n = s.many(0);
  if (s.many(1) != n || s.many(2) != n)
    Fail("there are " + tw::text(int64_t(n)) + " indices, " + tw::text(int64_t(s.many(1))) + " values and " + tw::text(int64_t(s.many(2))) +
         " shapes; every sparse input has one of each");
  if (n + s.many(3) == 0) Fail("there are no inputs to cross");
  for (uint32_t k = 0; k < n; ++k) {
    const std::string which = " " + tw::text(int64_t(k));
    WantSparse(s, {s.first(0) + k, "indices" + which}, SparsePart{s.first(1) + k, "values" + which}, {s.first(2) + k, "shapes" + which});
    const uint32_t i = s.first(2) + k;
    if (s.known(i) && Known(s.dim(i, 0)) && s.dim(i, 0) != 2)
      Fail("shapes" + which + " has " + tw::text(s.dim(i, 0)) + " entries; sparse inputs must be matrices");
  }
  for (uint32_t k = 0; k < s.many(3); ++k) WantRank(s, s.first(3) + k, 2, "dense_inputs");
  s.out(0, Dims{-1, 2});
  s.out(1, Dims{-1});
  s.out(2, Dims{2});
}

#define CROSSED "indices: int64 * N, values: sparse_types, shapes: int64 * N, dense_inputs: dense_types"
#define CROSSED_TYPES "N: int >= 0; sparse_types: list({int64, string}) >= 0; dense_types: list({int64, string}) >= 0; "
#define NO_GRADIENT "no_gradient \"features are whole numbers or text\"; "

}  // namespace

void register_sparse_rows(tw::Plugin& p) {
  p.op<FillGradient, FillRule>(
      "SparseFillEmptyRows(indices: int64, values: T, dense_shape: int64, default_value: T) -> (output_indices: int64, output_values: T, "
      "empty_row_indicator: bool, reverse_index_map: int64); T: type; doc \"a sparse tensor with an element in every row\"");
  p.op<FillGradGradient, FillGradRule>(
      "SparseFillEmptyRowsGrad(reverse_index_map: int64, grad_values: T) -> (d_values: T, d_default_value: T); T: type; "
      "doc \"gradient of SparseFillEmptyRows for the values and the default\"");
  p.op<nullptr, ReshapeRule>(
      "SparseReshape(input_indices: int64, input_shape: int64, new_shape: int64) -> (output_indices: int64, output_shape: int64); "
      "no_gradient \"places are whole numbers\"; doc \"the places of a sparse tensor's elements under another shape\"");
  p.op<nullptr, CrossRule>("SparseCross(" CROSSED
                           ") -> (output_indices: int64, output_values: out_type, output_shape: int64); " CROSSED_TYPES
                           "hashed_output: bool; num_buckets: int >= 0; hash_key: int; out_type: {int64, string}; internal_type: {int64, "
                           "string}; " NO_GRADIENT "doc \"every combination of features of a row, as text or hashed\"");
  p.op<nullptr, CrossRule>(
      "SparseCrossV2(" CROSSED
      ", sep: string) -> (output_indices: int64, output_values: string, output_shape: int64); " CROSSED_TYPES NO_GRADIENT
      "doc \"every combination of features of a row, joined\"");
}

}  // namespace thalweg::ops
