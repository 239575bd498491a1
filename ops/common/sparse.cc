#include "ops/common/sparse.h"

namespace thalweg::ops {
namespace {

int64_t SizeOf(const tw::Shape& s, const SparsePart& part, uint32_t axis) {
  return s.known(part.input) ? s.dim(part.input, int32_t(axis)) : -1;
}

}  // namespace

SparseCounts WantSparse(const tw::Shape& s, const SparsePart& indices, const SparsePart* values, const SparsePart& shape) {
  WantRank(s, indices.input, 2, indices.name.c_str());
  SparseSizes(s, shape);
  const int64_t rank = MergeSize(s, SizeOf(s, indices, 1), SizeOf(s, shape, 0),
                                 "the columns of '" + indices.name + "' and the entries of '" + shape.name + "'");
  const int64_t n = SizeOf(s, indices, 0);
  if (!values) return {n, rank};
  WantVector(s, values->input, values->name.c_str());
  return {MergeSize(s, n, SizeOf(s, *values, 0), "the rows of '" + indices.name + "' and the entries of '" + values->name + "'"), rank};
}

MaybeDims SparseSizes(const tw::Shape& s, const SparsePart& shape) {
  WantVector(s, shape.input, shape.name.c_str());
  Dims sizes;
  if (!s.value(shape.input, &sizes)) return std::nullopt;
  for (int64_t size : sizes)
    if (size < 0) Fail("'" + shape.name + "' is " + Text(sizes) + "; sizes must not be negative");
  return sizes;
}

}  // namespace thalweg::ops
