// Moves slices of consecutive elements by index, for any element type.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_SLICES_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_SLICES_H_

#include <algorithm>
#include <cstring>

#include "kernels/common/copy.h"
#include "kernels/common/parallel.h"
#include "kernels/common/rows.h"

namespace thalweg::cpu {

// Copies n slices of `inner` elements: slice k from offset source(k) to offset k * inner.
template <class Source>
void CopySlices(const tw_frame* f, const tw_view* from, const tw_view* to, int64_t n, int64_t inner, Source&& source) {
  CheckMovable(from->dtype);
  if (n == 0 || inner == 0) return;
  const size_t bytes = ElementBytes(from->dtype), slice = size_t(inner) * bytes;
  if (bytes == 0) {
    for (int64_t k = 0; k < n; ++k) CopyRun(f, from, source(k), to, k * inner, inner);
    return;
  }
  const char* a = Bytes(from);
  char* b = Bytes(to);
  ParallelFor(f, n, int64_t(slice / 4) + 4, [&](int64_t begin, int64_t end) {
    // A constant length lets the compiler copy one element with a move instruction.
    if (slice == 4) {
      for (int64_t k = begin; k < end; ++k) std::memcpy(b + k * 4, a + source(k) * int64_t(bytes), 4);
    } else if (slice == 8) {
      for (int64_t k = begin; k < end; ++k) std::memcpy(b + k * 8, a + source(k) * int64_t(bytes), 8);
    } else {
      for (int64_t k = begin; k < end; ++k) {
        if (k + kAhead < end) Prefetch(a + source(k + kAhead) * int64_t(bytes), slice);
        std::memcpy(b + k * int64_t(slice), a + source(k) * int64_t(bytes), slice);
      }
    }
  });
}

// The reverse of CopySlices: slice k goes to offset target(k). Slices are written in order, so the
// last of several slices for one place wins.
template <class Target>
void PutSlices(const tw_frame* f, const tw_view* from, const tw_view* to, int64_t n, int64_t inner, Target&& target) {
  CheckMovable(from->dtype);
  if (n == 0 || inner == 0) return;
  const int64_t bytes = ElementBytes(from->dtype), slice = inner * bytes;
  if (bytes == 0) {
    for (int64_t k = 0; k < n; ++k) CopyRun(f, from, k * inner, to, target(k), inner);
    return;
  }
  const char* a = Bytes(from);
  char* b = Bytes(to);
  if (slice == 4) {
    for (int64_t k = 0; k < n; ++k) std::memcpy(b + target(k) * bytes, a + k * 4, 4);
  } else if (slice == 8) {
    for (int64_t k = 0; k < n; ++k) std::memcpy(b + target(k) * bytes, a + k * 8, 8);
  } else {
    ForTargets(
        f, n, slice, int64_t(to->bytes), [&](int64_t k) { return target(k) * bytes; },
        [&](int64_t k, int64_t at, int64_t begin, int64_t end) { std::memcpy(b + at + begin, a + k * slice + begin, size_t(end - begin)); },
        [&](int64_t at) { Prefetch(b + at, size_t(slice)); });
  }
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_SLICES_H_
