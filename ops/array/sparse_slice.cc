// Parts of sparse tensors and their composition: SparseConcat, SparseSplit, SparseSlice with its
// gradient.
#include "ops/common/grad.h"
#include "ops/common/sparse.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// ---- SparseConcat ----

// Refuses sizes that differ elsewhere than along the axis. Returns the sizes of the result.
MaybeDims ConcatSizes(const tw::Shape& s, uint32_t n, size_t axis) {
  MaybeDims out;
  for (uint32_t k = 0; k < n; ++k) {
    const MaybeDims sizes = SparseSizes(s, {s.first(2) + k, "shapes " + tw::text(int64_t(k))});
    if (!sizes || (out && out->size() != sizes->size())) return std::nullopt;
    if (!out) {
      out = sizes;
      continue;
    }
    for (size_t i = 0; i < sizes->size(); ++i)
      if (i != axis && (*sizes)[i] != (*out)[i])
        Fail("shapes 0 and " + tw::text(int64_t(k)) + " differ along axis " + tw::text(int64_t(i)) + ": " + tw::text((*out)[i]) + " and " +
             tw::text((*sizes)[i]) + "; only sizes along 'concat_dim' may differ");
    if (__builtin_add_overflow((*out)[axis], (*sizes)[axis], &(*out)[axis]))
      Fail("the sizes along axis " + tw::text(int64_t(axis)) + " add up to more than 2^63-1");
  }
  return out;
}

void ConcatRule(const tw::Shape& s) {
  const uint32_t n = s.many(0);
  if (s.many(1) != n || s.many(2) != n)
    Fail("there are " + tw::text(int64_t(n)) + " indices, " + tw::text(int64_t(s.many(1))) + " values and " + tw::text(int64_t(s.many(2))) +
         " shapes; every sparse tensor has one of each");
  int64_t total = 0, rank = -1;
  for (uint32_t k = 0; k < n; ++k) {
    const std::string which = " " + tw::text(int64_t(k));
    const SparseCounts counts = WantSparse(s, {s.first(0) + k, "indices" + which}, SparsePart{s.first(1) + k, "values" + which},
                                           {s.first(2) + k, "shapes" + which});
    total = s.calc('+', total, counts.elements);
    rank = MergeSize(s, rank, counts.rank, "the ranks of the sparse tensors before number" + which + ", and its own,");
  }
  if (Known(rank)) ConcatSizes(s, n, size_t(Axis(s.i("concat_dim"), rank, "concat_dim")));
  s.out(0, Dims{total, rank});
  s.out(1, Dims{total});
  s.out(2, Dims{rank});
}

// The numbers of all elements pass through the op; the inverse of the permutation that comes out
// brings each gradient back.
void ConcatGradient(const tw::Grad& g) {
  if (!g.has_dy(1)) return;
  const uint32_t n = g.inputs() / 3;
  std::vector<tw_edge> in, numbers;
  tw_edge end = Int(g, 0);
  for (uint32_t k = 0; k < n; ++k) in.push_back(g.x(k));
  for (uint32_t k = 0; k < n; ++k) {
    const tw_edge begin = end;
    end = g.op("AddV2", {begin, g.op("Reshape", {g.shape(n + k), Ints(g, {})})});
    numbers.push_back(g.op("Range", {begin, end, Int(g, 1)}));
  }
  in.insert(in.end(), numbers.begin(), numbers.end());
  for (uint32_t k = 0; k < n; ++k) in.push_back(g.x(2 * n + k));
  const tw_edge node = g.op("SparseConcat", in, {{"concat_dim", g.i("concat_dim")}});
  const tw_edge inverse = g.op("InvertPermutation", {g.out(node, 1)});
  for (uint32_t k = 0; k < n; ++k) g.dx(n + k, g.op("GatherV2", {g.dy(1), g.op("GatherV2", {inverse, numbers[k], Int(g, 0)}), Int(g, 0)}));
}

// ---- SparseSplit ----

enum : uint32_t { kSplitDim, kSplitIndices, kSplitValues, kSplitShape };

void SplitRule(const tw::Shape& s) {
  const SparsePart shape{kSplitShape, "shape"};
  const int64_t rank = WantSparse(s, {kSplitIndices, "indices"}, SparsePart{kSplitValues, "values"}, shape).rank;
  const std::optional<int64_t> axis = ScalarValue(s, kSplitDim, "split_dim");
  const int64_t parts = s.i("num_split");
  const MaybeDims sizes = SparseSizes(s, shape);
  if (axis && Known(rank)) {
    const int64_t k = Axis(*axis, rank, "split_dim");
    if (sizes && parts > (*sizes)[size_t(k)])
      Fail("'num_split' is " + tw::text(parts) + ", but axis " + tw::text(k) + " has only " + tw::text((*sizes)[size_t(k)]) + " places");
  }
  for (int64_t k = 0; k < parts; ++k) {
    s.out(uint32_t(k), Dims{-1, rank});
    s.out(uint32_t(parts + k), Dims{-1});
    s.out(uint32_t(2 * parts + k), Dims{rank});
  }
}

void SplitGradient(const tw::Grad& g) {
  const auto parts = uint32_t(g.i("num_split"));
  const tw_edge count = g.op("Reshape", {g.shape(kSplitValues), Ints(g, {})}), all = g.op("Range", {Int(g, 0), count, Int(g, 1)});
  const tw_edge node = g.op("SparseSplit", {g.x(kSplitDim), g.x(kSplitIndices), all, g.x(kSplitShape)}, {{"num_split", int64_t(parts)}});
  std::vector<tw_edge> arriving, numbers;
  for (uint32_t k = 0; k < parts; ++k) {
    arriving.push_back(g.dy(parts + k));
    numbers.push_back(g.out(node, parts + k));
  }
  const auto joined = [&](std::vector<tw_edge> all_parts) {
    if (parts == 1) return all_parts[0];  // ConcatV2 takes at least two values
    all_parts.push_back(Int(g, 0));
    return g.op("ConcatV2", all_parts);
  };
  g.dx(kSplitValues, g.op("UnsortedSegmentSum", {joined(std::move(arriving)), joined(std::move(numbers)), count}));
}

// ---- SparseSlice ----

enum : uint32_t { kSliceIndices, kSliceValues, kSliceShape, kStart, kSize };

void WantOffsets(const tw::Shape& s, uint32_t i, const char* name, int64_t rank) {
  WantVector(s, i, name);
  if (s.known(i)) MergeSize(s, rank, s.dim(i, 0), "the rank and the entries of '" + std::string(name) + "'");
  Dims values;
  if (!s.value(i, &values)) return;
  for (int64_t v : values)
    if (v < 0) Fail("'" + std::string(name) + "' is " + Text(values) + "; its entries must not be negative");
}

void SliceRule(const tw::Shape& s) {
  const int64_t rank = WantSparse(s, {kSliceIndices, "indices"}, SparsePart{kSliceValues, "values"}, {kSliceShape, "shape"}).rank;
  WantOffsets(s, kStart, "start", rank);
  WantOffsets(s, kSize, "size", rank);
  s.out(0, Dims{-1, rank});
  s.out(1, Dims{-1});
  s.out(2, Dims{rank});
}

void SliceGradient(const tw::Grad& g) {
  if (g.has_dy(1)) g.dx(kSliceValues, g.op("SparseSliceGrad", {g.dy(1), g.x(kSliceIndices), g.x(kStart), g.y(0)}));
}

void SliceGradRule(const tw::Shape& s) {
  const auto size = [&](uint32_t i, int32_t axis) { return s.known(i) ? s.dim(i, axis) : -1; };
  WantVector(s, 0, "backprop_val_grad");
  WantRank(s, 1, 2, "input_indices");
  WantVector(s, 2, "input_start");
  WantRank(s, 3, 2, "output_indices");
  MergeSize(s, size(0, 0), size(3, 0), "the entries of 'backprop_val_grad' and the rows of 'output_indices'");
  MergeSize(s, size(1, 1), size(3, 1), "the columns of 'input_indices' and 'output_indices'");
  MergeSize(s, size(1, 1), size(2, 0), "the columns of 'input_indices' and the entries of 'input_start'");
  s.out(0, Dims{size(1, 0)});
}

// As AddGradGradient in sparse_add.cc.
void SliceGradGradient(const tw::Grad& g) {
  const tw_edge count = g.op("Reshape", {g.shape(0), Ints(g, {})});
  const tw_edge numbers = g.op("Range", {Int(g, 1), g.op("AddV2", {count, Int(g, 1)}), Int(g, 1)});
  const tw_edge segments = g.op("Sub", {g.op("SparseSliceGrad", {numbers, g.x(1), g.x(2), g.x(3)}), Int(g, 1)});
  g.dx(0, g.op("UnsortedSegmentSum", {g.dy(), segments, count}));
}

}  // namespace

void register_sparse_slice(tw::Plugin& p) {
  p.op<ConcatGradient, ConcatRule>(
      "SparseConcat(indices: int64 * N, values: T * N, shapes: int64 * N) -> (output_indices: int64, output_values: T, output_shape: "
      "int64); "
      "concat_dim: int; N: int >= 2; T: type; ?data values; doc \"joins sparse tensors along an axis, and sorts the elements by place\"");
  p.op<SplitGradient, SplitRule>(
      "SparseSplit(split_dim: int64, indices: int64, values: T, shape: int64) -> (output_indices: int64 * num_split, output_values: T * "
      "num_split, output_shape: int64 * num_split); num_split: int >= 1; T: type; ?data values; doc \"cuts a sparse tensor along an "
      "axis\"");
  p.op<SliceGradient, SliceRule>(
      "SparseSlice(indices: int64, values: T, shape: int64, start: int64, size: int64) -> (output_indices: int64, output_values: T, "
      "output_shape: int64); T: type; ?data values; doc \"a box of a sparse tensor\"");
  p.op<SliceGradGradient, SliceGradRule>(
      "SparseSliceGrad(backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64) -> (val_grad: T); "
      "T: " OPS_NUMBERS "; ?data backprop_val_grad; doc \"gradient of SparseSlice for the values\"");
}

}  // namespace thalweg::ops
