// Ops on two sparse tensors of one shape, place by place: SparseAdd with its gradient,
// SparseSparseMaximum and SparseSparseMinimum.
#include "ops/common/grad.h"
#include "ops/common/sparse.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

enum : uint32_t { kAIndices, kAValues, kAShape, kBIndices, kBValues, kBShape, kThresh };

// Checks both operands. Returns their rank.
int64_t PairRank(const tw::Shape& s) {
  const SparseCounts a = WantSparse(s, {kAIndices, "a_indices"}, SparsePart{kAValues, "a_values"}, {kAShape, "a_shape"});
  const SparseCounts b = WantSparse(s, {kBIndices, "b_indices"}, SparsePart{kBValues, "b_values"}, {kBShape, "b_shape"});
  const MaybeDims sizes = SparseSizes(s, {kAShape, "a_shape"}), others = SparseSizes(s, {kBShape, "b_shape"});
  if (sizes && others && *sizes != *others)
    Fail("'a_shape' is " + Text(sizes) + " and 'b_shape' is " + Text(others) +
         "; both must be equal, sparse tensors do not broadcast here");
  return MergeSize(s, a.rank, b.rank, "the ranks of 'a_shape' and 'b_shape'");
}

void AddRule(const tw::Shape& s) {
  const int64_t rank = PairRank(s);
  WantScalar(s, kThresh, "thresh");
  s.out(0, Dims{-1, rank});
  s.out(1, Dims{-1});
  s.out(2, Dims{rank});
}

void ExtremeRule(const tw::Shape& s) {
  s.out(0, Dims{-1, PairRank(s)});
  s.out(1, Dims{-1});
}

// An element gets what arrives at the place of its sum; nothing if the sum was below the threshold.
void AddGradient(const tw::Grad& g) {
  if (!g.has_dy(1)) return;
  const tw_edge node = g.op("SparseAddGrad", {g.dy(1), g.x(kAIndices), g.x(kBIndices), g.y(0)});
  g.dx(kAValues, node);
  g.dx(kBValues, g.out(node, 1));
}

void AddGradRule(const tw::Shape& s) {
  WantVector(s, 0, "backprop_val_grad");
  const auto size = [&](uint32_t i, int32_t axis) { return s.known(i) ? s.dim(i, axis) : -1; };
  WantRank(s, 1, 2, "a_indices");
  WantRank(s, 2, 2, "b_indices");
  WantRank(s, 3, 2, "sum_indices");
  MergeSize(s, size(0, 0), size(3, 0), "the entries of 'backprop_val_grad' and the rows of 'sum_indices'");
  MergeSize(s, size(1, 1), size(2, 1), "the columns of 'a_indices' and 'b_indices'");
  MergeSize(s, size(1, 1), size(3, 1), "the columns of 'a_indices' and 'sum_indices'");
  s.out(0, Dims{size(1, 0)});
  s.out(1, Dims{size(2, 0)});
}

// The op picks entries of its first input. The numbers of the entries, from 1 on, pass through it,
// and 0 stands for none.
void AddGradGradient(const tw::Grad& g) {
  const tw_edge count = g.op("Reshape", {g.shape(0), Ints(g, {})});
  const tw_edge numbers = CastTo(g, g.op("Range", {Int(g, 1), g.op("AddV2", {count, Int(g, 1)}), Int(g, 1)}), TW_INT32);
  const tw_edge picked = g.op("SparseAddGrad", {numbers, g.x(1), g.x(2), g.x(3)});
  const auto back = [&](uint32_t o) {
    const tw_edge segments = g.op("Sub", {g.out(picked, o), Int(g, 1)});  // negative: in no segment
    return g.op("UnsortedSegmentSum", {g.dy(o), segments, count});
  };
  g.dx(0, g.op("AddV2", {back(0), back(1)}));
}

#define PAIR "(a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64"
#define EXTREME(name, types, which)                                                                                          \
  name PAIR ") -> (output_indices: int64, output_values: T); T: " types                                                      \
            "; ?data a_values b_values; no_gradient \"the outputs do not tell which operand an element comes from\"; doc \"" \
            "of two sparse tensors the " which " element of each place; an element that is not stored counts as 0\""

}  // namespace

void register_sparse_add(tw::Plugin& p) {
  p.op<AddGradient, AddRule>("SparseAdd" PAIR ", thresh: Treal) -> (sum_indices: int64, sum_values: T, sum_shape: int64); T: " OPS_NUMBERS
                             "; Treal: " OPS_REALS
                             "; doc \"the sum of two sparse tensors, without the elements whose magnitude is below thresh\"");
  p.op<AddGradGradient, AddGradRule>(
      "SparseAddGrad(backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64) -> (a_val_grad: T, b_val_grad: T); "
      "T: " OPS_NUMBERS "; ?data backprop_val_grad; doc \"gradient of SparseAdd for the values of both operands\"");
  p.op<nullptr, ExtremeRule>(EXTREME("SparseSparseMaximum", OPS_REALS, "larger"));
  p.op<nullptr, ExtremeRule>(EXTREME("SparseSparseMinimum", OPS_NUMBERS, "smaller"));
}

}  // namespace thalweg::ops
