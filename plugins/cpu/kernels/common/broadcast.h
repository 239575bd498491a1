// Walks N dense inputs that broadcast to one dense output under NumPy's rules. Axes with the same
// layout in all inputs are joined first, so most walks have one or two axes.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_BROADCAST_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_BROADCAST_H_

#include <algorithm>

#include "kernels/common/element.h"

namespace thalweg::cpu {

template <int N>
struct Broadcast {
  int rank = 0;  // at least 1 after construction
  int64_t dims[kMaxRank];
  int64_t step[N][kMaxRank];  // in elements; 0 if the input repeats; 0 or 1 on the last axis

  // REQUIRES: the inputs broadcast to the output. The op's shape rule has checked this.
  Broadcast(const tw_view* out, const tw_view* const (&in)[N]) {
    if (Flat(out, in)) return;
    int64_t dense[N];
    for (int k = 0; k < N; ++k) dense[k] = 1;
    // Axes are collected from the innermost outwards and reversed at the end.
    for (int i = 1; i <= out->rank; ++i) {
      int64_t dim = out->dims[out->rank - i], at[N];
      bool joins = rank > 0;
      for (int k = 0; k < N; ++k) {
        int64_t own = i <= in[k]->rank ? in[k]->dims[in[k]->rank - i] : 1;
        if (own != 1 && own != dim)
          throw tw::Error{TW_INTERNAL, "input " + DimsText(in[k]) + " does not broadcast to the planned output " + DimsText(out)};
        at[k] = own == 1 ? 0 : dense[k];
        dense[k] *= own;
        joins = joins && at[k] == step[k][rank - 1] * dims[rank - 1];
      }
      if (dim == 1) continue;
      if (joins) {
        dims[rank - 1] *= dim;
        continue;
      }
      if (rank == kMaxRank) Invalid("more than " + std::to_string(kMaxRank) + " axes");
      for (int k = 0; k < N; ++k) step[k][rank] = at[k];
      dims[rank++] = dim;
    }
    if (rank == 0) Single(1);
    std::reverse(dims, dims + rank);
    for (int k = 0; k < N; ++k) std::reverse(step[k], step[k] + rank);
  }

  // Calls segment(offsets of the inputs, offset of the output, n) for the elements [begin, end) of
  // the output. In each segment every input stays within one row.
  template <class F>
  void ForSegments(int64_t begin, int64_t end, F&& segment) const {
    int64_t at[kMaxRank], from[N] = {}, rest = begin;
    for (int i = rank; i-- > 0;) {
      at[i] = rest % dims[i];
      rest /= dims[i];
      for (int k = 0; k < N; ++k) from[k] += at[i] * step[k][i];
    }
    const int last = rank - 1;
    while (begin < end) {
      int64_t n = std::min(end - begin, dims[last] - at[last]);
      segment(from, begin, n);
      begin += n;
      for (int k = 0; k < N; ++k) from[k] -= at[last] * step[k][last];  // back to the start of the row
      at[last] = 0;
      for (int i = last; i-- > 0;) {
        for (int k = 0; k < N; ++k) from[k] += step[k][i];
        if (++at[i] < dims[i]) break;
        at[i] = 0;
        for (int k = 0; k < N; ++k) from[k] -= dims[i] * step[k][i];
      }
    }
  }

 private:
  void Single(int64_t n) {
    rank = 1;
    dims[0] = n;
    for (int k = 0; k < N; ++k) step[k][0] = 1;
  }

  // Handles the usual case without a look at the axes: every input is as large as the output, or
  // has one element.
  bool Flat(const tw_view* out, const tw_view* const (&in)[N]) {
    for (int k = 0; k < N; ++k)
      if (in[k]->count != out->count && in[k]->count != 1) return false;
    Single(int64_t(out->count));
    for (int k = 0; k < N; ++k)
      if (in[k]->count != out->count) step[k][0] = 0;
    return true;
  }
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_BROADCAST_H_
