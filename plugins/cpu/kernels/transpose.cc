// Transpose, and InvertPermutation, which gradients of Transpose need.
#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void Transpose(tw::Frame f, tw::In<tw::Any> x, tw::In<tw::Any> perm, tw::Out<tw::Any> y) {
  if (perm.size() != uint64_t(x.rank()))
    throw tw::Error{TW_INTERNAL, "perm has " + std::to_string(perm.size()) + " entries for x of shape " + DimsText(x.v)};
  const Ints from = DenseStrides(x.dims(), x.rank()), to = DenseStrides(y.dims(), y.rank());
  Box box;
  bool seen[kMaxRank] = {};
  for (int32_t i = 0; i < x.rank(); ++i) {
    int axis = Axis(IndexAt(perm.v, uint64_t(i)), x.rank(), "perm entry");
    if (seen[axis]) throw tw::Error{TW_INTERNAL, "perm names axis " + std::to_string(axis) + " twice"};
    seen[axis] = true;
    box.Add(x.dim(axis), from[axis], to[i]);
  }
  CopyBox(f.f, box, x.v, 0, y.v(), 0);
}

template <class T>
void InvertPermutation(tw::In<T> x, tw::Out<T> y) {
  const int64_t n = int64_t(x.size());
  for (int64_t i = 0; i < n; ++i) y[uint64_t(i)] = T(-1);
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = int64_t(x[uint64_t(i)]);
    if (at < 0 || at >= n) Invalid("x[" + std::to_string(i) + "] = " + std::to_string(at) + " is not in [0, " + std::to_string(n) + ")");
    if (y[uint64_t(at)] != T(-1)) Invalid("x holds " + std::to_string(at) + " twice, so it is no permutation");
    y[uint64_t(at)] = T(i);
  }
}

}  // namespace

void register_transpose(tw::Plugin& p) {
  p.kernel<Transpose>("Transpose @CPU");
  p.kernel<InvertPermutation<int32_t>, InvertPermutation<int64_t>>("InvertPermutation @CPU; cheap");
}

}  // namespace thalweg::cpu
