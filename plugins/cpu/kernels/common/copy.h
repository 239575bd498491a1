// Moves elements between tensors by their size. Transposing, slicing, joining, tiling and
// broadcasting share these functions. Fixed-size types move in parallel; strings move one by one
// through the host.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_COPY_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_COPY_H_

#include "kernels/common/element.h"

namespace thalweg::cpu {

// A box of elements: its sizes, and the strides in elements along each axis on both sides. The
// outermost axis comes first. Strides may be negative. A source stride may be 0 (repeat).
struct Box {
  int rank = 0;
  int64_t dims[kMaxRank], from[kMaxRank], to[kMaxRank];
  void Add(int64_t dim, int64_t from_stride, int64_t to_stride) {
    if (rank == kMaxRank) Invalid("a copy over more than " + std::to_string(kMaxRank) + " axes");
    dims[rank] = dim;
    from[rank] = from_stride;
    to[rank++] = to_stride;
  }
};

// Copies the box: element (i, j, ...) moves from from_at + i * from[0] + j * from[1] ... to to_at +
// i * to[0] + ...
// REQUIRES: every element that is touched lies inside its tensor, no element is written twice, the
// types agree.
// The call modifies the box; do not use it again. Throws UNIMPLEMENTED for resources.
void CopyBox(const tw_frame* f, Box& box, const tw_view* from, int64_t from_at, const tw_view* to, int64_t to_at);

// Copies a box of flat input i to the whole output, which is dense. CopyBox's rules apply, with one
// exception: if the box is one run, the output may share the input's memory, and elements may be of
// any type.
void CutBox(const tw_frame* f, Box& box, uint32_t i, int64_t from_at, const tw::Out<tw::Any>& output);

// Copies n consecutive elements. CopyBox's rules apply.
void CopyRun(const tw_frame* f, const tw_view* from, int64_t from_at, const tw_view* to, int64_t to_at, int64_t n);

// Sets n elements, starting at to_at, to element 0 of `value`. CopyBox's rules apply.
void FillRun(const tw_frame* f, const tw_view* value, const tw_view* to, int64_t to_at, int64_t n);

// Sets all bits of a fixed-size tensor to zero, or all strings of a string tensor to empty. The
// variants of a new tensor stay empty.
void FillZero(const tw_frame* f, const tw_view* to);

// Throws UNIMPLEMENTED unless elements of the type can be copied.
void CheckMovable(uint32_t dtype);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_COPY_H_
