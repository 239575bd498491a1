// Tensors and sparse tensors as bytes.
#include "ops/common/sparse.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

constexpr int64_t kParts = 3;  // places, values and sizes

int64_t Rank(const tw::Shape& s) { return WantSparse(s, {0, "sparse_indices"}, SparsePart{1, "sparse_values"}, {2, "sparse_shape"}).rank; }

void SerializeRule(const tw::Shape& s) {
  Rank(s);
  s.out(0, Dims{kParts});
}

void SerializeManyRule(const tw::Shape& s) {
  const int64_t rank = Rank(s);
  if (Known(rank) && rank < 2)
    Fail("the sparse tensor has " + tw::text(rank) + (rank == 1 ? " axis" : " axes") +
         "; it needs one for the batch and at least one more");
  const MaybeDims sizes = SparseSizes(s, {2, "sparse_shape"});
  s.out(0, Dims{sizes && !sizes->empty() ? (*sizes)[0] : -1, kParts});
}

void DeserializeRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, 1, "serialized_sparse");
  if (s.known(0)) MergeSize(s, s.dim(0, -1), kParts, "the size of the last axis of 'serialized_sparse' and 3, the number of parts,");
  s.out(0, Dims{-1, -1});
  s.out(1, Dims{-1});
  s.out(2, Dims{-1});
}

void DeserializeManyRule(const tw::Shape& s) {
  WantRank(s, 0, 2, "serialized_sparse");
  DeserializeRule(s);
}

#define NO_GRADIENT "no_gradient \"bytes have no derivative\"; "
#define SPARSE "(sparse_indices: int64, sparse_values: T, sparse_shape: int64) -> (serialized_sparse: out_type); T: type; out_type: " FORM
#define FORM "{string, variant} = string; "
#define SPARSE_OUT " -> (sparse_indices: int64, sparse_values: dtype, sparse_shape: int64); dtype: type; "

}  // namespace

void register_serialize(tw::Plugin& p) {
  p.op("SerializeTensor(tensor: T) -> (serialized: string []); T: type; " NO_GRADIENT "doc \"the bytes of a tensor, as a TensorProto\"");
  p.op("ParseTensor(serialized: string []) -> (output: out_type); out_type: type; " NO_GRADIENT
       "doc \"the tensor in a serialized TensorProto\"");
  p.op<nullptr, SerializeRule>("SerializeSparse" SPARSE NO_GRADIENT "doc \"a sparse tensor as three elements: places, values and sizes\"");
  p.op<nullptr, SerializeManyRule>("SerializeManySparse" SPARSE NO_GRADIENT
                                   "doc \"the rows of a sparse tensor, each as three elements: places, values and sizes\"");
  p.op<nullptr, DeserializeRule>("DeserializeSparse(serialized_sparse: Tserialized)" SPARSE_OUT "Tserialized: " FORM NO_GRADIENT
                                 "doc \"serialized sparse tensors, joined along the axes in which they stand\"");
  p.op<nullptr, DeserializeManyRule>("DeserializeManySparse(serialized_sparse: string)" SPARSE_OUT NO_GRADIENT
                                     "doc \"serialized sparse tensors, joined along a new first axis\"");
}

}  // namespace thalweg::ops
