// LRN and its gradient over narrow windows, built once per instruction set. The per-set sources
// include this header, so it holds plain declarations only.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_LRN_H_
#define THALWEG_PLUGINS_CPU_KERNELS_LRN_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

struct LrnWindow {
  int64_t radius;
  float bias, alpha, beta;
};

struct LrnTable {
  // y = x n^-beta, n = bias + alpha * the squares around each channel, for pixels of `channels`
  // channels.
  void (*narrow)(const LrnWindow& w, const float* x, float* y, int64_t pixels, int64_t channels, float* room);
  // dx = dy n^-beta - 2 alpha beta x W(dy y / n), W the sum over neighbours.
  void (*narrow_grad)(const LrnWindow& w, const float* dy, const float* x, const float* y, float* dx, int64_t pixels, int64_t channels,
                      float* room);
  // n[c] = n[c]^-beta
  void (*powers)(float* n, float beta, int64_t channels);
};

// The floats of `room` for narrow and narrow_grad. REQUIRES: they are 0 before the call.
inline int64_t LrnRoom(const LrnWindow& w, int64_t channels) { return 3 * (channels + 2 * w.radius + 32); }

TW_CPU_DECLARE_ISA(LrnTable, Lrn)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_LRN_H_
