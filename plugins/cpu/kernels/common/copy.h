// Moving elements between tensors, by their size: what transposing, slicing, joining, tiling and broadcasting have in common.
// Fixed-size types move in parallel; strings one by one through the host.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_COPY_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_COPY_H_

#include "kernels/common/element.h"

namespace thalweg::cpu {

// A box of elements: its sizes, and how far apart neighbours along each axis are on both sides, in elements. Outermost axis first.
// Strides may be negative and, on the side that is read, 0 (repeat).
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

// Copies the box: element (i, j, ...) at from_at + i * from[0] + j * from[1] ... to to_at + i * to[0] + ...
// REQUIRES: every element that is touched lies inside its tensor, no element is written twice, the types agree.
// The box is used up. Throws UNIMPLEMENTED for resources.
void CopyBox(const tw_frame* f, Box& box, const tw_view* from, int64_t from_at, const tw_view* to, int64_t to_at);

// The box of flat input i is all of the output, which is dense. Same rules, but that elements of any type may be a run: then the output may
// share the input's memory.
void CutBox(const tw_frame* f, Box& box, uint32_t i, int64_t from_at, const tw::Out<tw::Any>& output);

// Copies n consecutive elements. Same rules.
void CopyRun(const tw_frame* f, const tw_view* from, int64_t from_at, const tw_view* to, int64_t to_at, int64_t n);

// Sets n elements from to_at on to element 0 of `value`. Same rules.
void FillRun(const tw_frame* f, const tw_view* value, const tw_view* to, int64_t to_at, int64_t n);

// All bits of a fixed-size tensor, or all strings of a string tensor, to zero or empty; variants of a new tensor stay empty.
void FillZero(const tw_frame* f, const tw_view* to);

// Throws UNIMPLEMENTED unless elements of the type can be copied.
void CheckMovable(uint32_t dtype);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_COPY_H_
