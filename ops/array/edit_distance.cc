// EditDistance: the Levenshtein distances of sequences, which are the last axis of sparse tensors.
#include <algorithm>

#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Checks the sparse tensor at inputs i, i + 1 and i + 2, and returns its rank, or -1.
int64_t SparseRank(const tw::Shape& s, uint32_t i, const std::string& name) {
  WantRank(s, i, 2, (name + "_indices").c_str());
  WantVector(s, i + 1, (name + "_values").c_str());
  WantVector(s, i + 2, (name + "_shape").c_str());
  int64_t rank = s.known(i + 2) ? s.dim(i + 2, 0) : -1;
  if (!s.known(i)) return rank;
  if (s.known(i + 1))
    MergeSize(s, s.dim(i, 0), s.dim(i + 1, 0), "the rows of '" + name + "_indices' and the entries of '" + name + "_values'");
  return MergeSize(s, s.dim(i, 1), rank, "the columns of '" + name + "_indices' and the entries of '" + name + "_shape'");
}

void Rule(const tw::Shape& s) {
  const int64_t rank =
      MergeSize(s, SparseRank(s, 0, "hypothesis"), SparseRank(s, 3, "truth"), "the ranks of the hypotheses and of the truths");
  if (!Known(rank)) return s.unknown(0);
  if (rank < 2) Fail("the sparse tensors have " + tw::text(rank) + " axes; they need one for the sequences and at least one before it");
  const MaybeDims a = ShapeValue(s, 2, "hypothesis_shape"), b = ShapeValue(s, 5, "truth_shape");
  Dims out(size_t(rank - 1), -1);
  for (size_t k = 0; a && b && k < out.size(); ++k)
    if (Known((*a)[k]) && Known((*b)[k])) out[k] = std::max((*a)[k], (*b)[k]);
  s.out(0, out);
}

}  // namespace

void register_edit_distance(tw::Plugin& p) {
  p.op<nullptr, Rule>(
      "EditDistance(hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, truth_indices: int64, truth_values: T, "
      "truth_shape: int64) -> (output: float); normalize: bool = true; T: type; no_gradient \"it counts\"; "
      "doc \"insertions, deletions and replacements that turn each hypothesis into its truth\"");
}

}  // namespace thalweg::ops
