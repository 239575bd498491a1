// Ragged tensors: rows of different lengths, as values and row splits. Row i of a vector of splits
// is values[splits[i]] to values[splits[i + 1] - 1].
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Merges the sizes of three inputs that are scalars or vectors; -1 if none is known to be a vector.
int64_t CommonSize(const tw::Shape& s) {
  static const char* const kNames[] = {"starts", "limits", "deltas"};
  int64_t n = -1;
  for (uint32_t i = 0; i < 3; ++i) {
    if (!s.known(i)) continue;
    if (s.rank(i) > 1) Fail("'" + std::string(kNames[i]) + "' is " + tw::text(s.in(i)) + "; it must be a scalar or a vector");
    if (s.rank(i) == 1) n = MergeSize(s, n, s.dim(i, 0), "the sizes of 'starts', 'limits' and 'deltas'");
  }
  const bool scalars = s.rank(0) == 0 && s.rank(1) == 0 && s.rank(2) == 0;
  return scalars ? 1 : n;
}

void RangeRule(const tw::Shape& s) {
  s.out(0, Dims{s.calc('+', CommonSize(s), 1)});
  s.out(1, Dims{-1});
}

// Checks that each entry of an argument is a vector of splits.
void WantSplits(const tw::Shape& s, uint32_t argument, const char* name) {
  for (uint32_t k = 0; k < s.many(argument); ++k) {
    const uint32_t i = s.first(argument) + k;
    WantVector(s, i, name);
    if (s.known(i) && s.dim(i, 0) == 0)
      Fail("'" + std::string(name) + "' " + tw::text(int64_t(k)) + " is empty; it needs at least one entry");
  }
}

void GatherRule(const tw::Shape& s) {
  const uint32_t values = s.first(1), indices = s.first(2);
  WantSplits(s, 0, "params_nested_splits");
  WantRankAtLeast(s, values, 1, "params_dense_values");
  const int64_t rank = s.i("OUTPUT_RAGGED_RANK"), params = s.i("PARAMS_RAGGED_RANK");
  if (s.known(indices) && s.rank(indices) + params - 1 != rank)
    Fail("'indices' of rank " + tw::text(s.rank(indices)) + " and params of ragged rank " + tw::text(params) + " give ragged rank " +
         tw::text(s.rank(indices) + params - 1) + "; OUTPUT_RAGGED_RANK is " + tw::text(rank));
  for (int64_t k = 0; k < rank; ++k) {
    const bool first = k == 0 && s.known(indices) && s.rank(indices) > 0;
    s.out(uint32_t(k), Dims{first ? s.calc('+', s.dim(indices, 0), 1) : -1});
  }
  if (MaybeDims out = In(s, values)) {
    (*out)[0] = -1;
    s.out(uint32_t(rank), *out);
  }
}

// The same gather of the numbers of values says where each value of the result comes from.
void GatherGradient(const tw::Grad& g) {
  const auto params = uint32_t(g.i("PARAMS_RAGGED_RANK")), rank = uint32_t(g.i("OUTPUT_RAGGED_RANK"));
  if (!g.has_dy(rank)) return;
  const tw_edge shape = g.shape(params), count = g.op("Reshape", {Head(g, shape, 1), Ints(g, {})});
  std::vector<tw_edge> in;
  for (uint32_t k = 0; k < params; ++k) in.push_back(g.x(k));
  in.push_back(g.op("Range", {Int(g, 0), count, Int(g, 1)}));
  in.push_back(g.x(params + 1));
  const tw_edge node = g.op("RaggedGather", in, {{"PARAMS_RAGGED_RANK", int64_t(params)}, {"OUTPUT_RAGGED_RANK", int64_t(rank)}});
  g.dx(params, g.op("UnsortedSegmentSum", {g.dy(rank), g.out(node, rank), count}));
}

void SparseRule(const tw::Shape& s) {
  WantSplits(s, 0, "rt_nested_splits");
  const uint32_t values = s.first(1);
  WantRankAtLeast(s, values, 1, "rt_dense_values");
  const MaybeDims in = In(s, values);
  const int64_t n = in ? Product(s, *in) : -1, rank = in ? int64_t(in->size()) + s.i("RAGGED_RANK") : -1;
  s.out(0, Dims{n, rank});
  s.out(1, Dims{n});
  s.out(2, Dims{rank});
}

void SparseGradient(const tw::Grad& g) {
  const auto values = uint32_t(g.i("RAGGED_RANK"));
  if (g.has_dy(1)) g.dx(values, g.op("Reshape", {g.dy(1), g.shape(values)}));
}

// The number of axes that partitions describe: the first may be given by its size alone.
int64_t RaggedAxes(const tw::Shape& s) {
  const tw_attr& types = s.at("row_partition_types");
  const auto* names = static_cast<const tw_string*>(types.data);
  const int64_t n = types.count;
  if (n != int64_t(s.many(3)))
    Fail("there are " + tw::text(int64_t(s.many(3))) + " row partitions but " + tw::text(n) + " row_partition_types");
  if (n == 0) Fail("there are no row partitions; the first is ROW_SPLITS, or FIRST_DIM_SIZE followed by VALUE_ROWIDS");
  for (int64_t k = 0; k < n; ++k) {
    const std::string_view name(names[k].data, names[k].size);
    const bool sized = k == 0 ? name == "FIRST_DIM_SIZE" : name == "VALUE_ROWIDS";
    if (name != "ROW_SPLITS" && !sized)
      Fail("row_partition_types[" + tw::text(k) + "] is '" + std::string(name) + "'; " +
           (k == 0 ? "the first must be ROW_SPLITS or FIRST_DIM_SIZE" : "it must be ROW_SPLITS or VALUE_ROWIDS"));
    const uint32_t i = s.first(3) + uint32_t(k);
    WantRank(s, i, k == 0 && sized ? 0 : 1, "row_partition_tensors");
    if (!sized && s.known(i) && s.dim(i, 0) == 0) Fail("row splits are empty; they need at least one entry");
  }
  const bool sized = std::string_view(names[0].data, names[0].size) == "FIRST_DIM_SIZE";
  if (sized && n == 1) Fail("FIRST_DIM_SIZE must be followed by VALUE_ROWIDS or ROW_SPLITS");
  return sized ? n : n + 1;
}

void DenseRule(const tw::Shape& s) {
  const int64_t axes = RaggedAxes(s);
  WantRankAtLeast(s, 1, 1, "values");
  if (!s.known(1)) return;
  const int64_t rank = axes + s.rank(1) - 1;
  Dims out(size_t(rank), -1);
  const Dims inner = Sub(*In(s, 1), 1, size_t(s.rank(1)));
  if (s.known(0) && s.rank(0) > 1) Fail("'shape' is " + tw::text(s.in(0)) + "; it must be a vector, or a scalar -1");
  if (s.known(0) && s.rank(0) == 1 && Known(s.dim(0, 0)) && s.dim(0, 0) != rank)
    Fail("'shape' has " + tw::text(s.dim(0, 0)) + " entries, but the result has " + tw::text(rank) + " axes");
  if (std::vector<int64_t> wanted; s.known(0) && s.rank(0) == 1 && s.value(0, &wanted)) {
    for (size_t k = 0; k < wanted.size(); ++k) {
      if (wanted[k] < -1) Fail("'shape' has the entry " + tw::text(wanted[k]) + "; it must be a size, or -1 for one that fits");
      if (wanted[k] >= 0) out[k] = wanted[k];
    }
  }
  for (size_t k = 0; k < inner.size(); ++k)
    out[size_t(axes) + k] = MergeSize(s, out[size_t(axes) + k], inner[k], "the sizes in 'shape' and of 'values'");
  if (s.known(2) && !Broadcastable(inner, In(s, 2)))
    Fail("'default_value' " + tw::text(s.in(2)) + " does not broadcast to the shape of a value, " + Text(inner));
  if (s.known(2) && s.rank(2) > int32_t(inner.size()))
    Fail("'default_value' " + tw::text(s.in(2)) + " has more axes than a value, which is " + Text(inner));
  s.out(0, out);
}

// The same op on the numbers of values, counted from 1, says which value each place holds; 0 is the
// default.
void DenseGradient(const tw::Grad& g) {
  const tw_edge shape = g.shape(1), end = g.op("AddV2", {g.op("Reshape", {Head(g, shape, 1), Ints(g, {})}), Int(g, 1)});
  const tw_edge sizes = g.op("Shape", {g.dy()}), inner = Tail(g, shape, 1);
  const tw_edge outer = g.op("Slice", {sizes, Ints(g, {0}), g.op("Sub", {g.op("Shape", {sizes}), g.op("Shape", {inner})})});
  std::vector<tw_edge> in = {outer, g.op("Range", {Int(g, 1), end, Int(g, 1)}), Int(g, 0)};
  const tw_attr& types = g.at("row_partition_types");
  for (uint32_t k = 0; k < types.count; ++k) in.push_back(g.x(3 + k));
  tw::Attr names("row_partition_types", "");
  names.list = types.data;
  names.count = types.count;
  const tw_edge numbers = g.op("RaggedTensorToTensor", in, {names});
  const tw_edge sums = g.op("UnsortedSegmentSum", {g.dy(), numbers, end});
  g.dx(1, g.op("StridedSlice", {sums, Ints(g, {1}), Ints(g, {0}), Ints(g, {1})}, {{"end_mask", 1}}));
  const tw_edge rest = g.op("GatherV2", {sums, Int(g, 0), Int(g, 0)});
  const MaybeDims values = ShapeIn(g, 1);
  g.dx(2, SumTo(g, rest, 2, values ? MaybeDims(Sub(*values, 1, values->size())) : std::nullopt));
}

}  // namespace

void register_ragged(tw::Plugin& p) {
  p.op<nullptr, RangeRule>(
      "RaggedRange(starts: T, limits: T, deltas: T) -> (rt_nested_splits: Tsplits, rt_dense_values: T); "
      "T: {bfloat16, float, double, int32, int64} = int32; Tsplits: " OPS_INDEX
      " = int64; no_gradient \"the numbers of elements jump\"; doc \"a row of equally spaced numbers for each start, limit and step\"");
  p.op<GatherGradient, GatherRule>(
      "RaggedGather(params_nested_splits: Tsplits * PARAMS_RAGGED_RANK, params_dense_values: Tvalues, indices: Tindices) -> "
      "(output_nested_splits: Tsplits * OUTPUT_RAGGED_RANK, output_dense_values: Tvalues); Tvalues: type; Tindices: " OPS_INDEX
      "; Tsplits: " OPS_INDEX
      " = int64; PARAMS_RAGGED_RANK: int >= 1; OUTPUT_RAGGED_RANK: int >= 0; "
      "doc \"rows of a ragged tensor by their numbers\"");
  p.op<SparseGradient, SparseRule>(
      "RaggedTensorToSparse(rt_nested_splits: Tsplits * RAGGED_RANK, rt_dense_values: T) -> (sparse_indices: int64, sparse_values: T, "
      "sparse_dense_shape: int64); RAGGED_RANK: int >= 1; T: type; Tsplits: " OPS_INDEX
      " = int64; ?data rt_dense_values; "
      "doc \"a ragged tensor as a sparse tensor\"");
  p.op<DenseGradient, DenseRule>(
      "RaggedTensorToTensor(shape: Tshape, values: T, default_value: T, row_partition_tensors: Tindex * num_row_partition_tensors) -> "
      "(result: T); T: type; Tindex: " OPS_INDEX "; Tshape: " OPS_INDEX
      "; num_row_partition_tensors: int >= 1; row_partition_types: list(string); ?data values default_value; "
      "doc \"a ragged tensor as a dense one, rows filled up or cut\"");
}

}  // namespace thalweg::ops
