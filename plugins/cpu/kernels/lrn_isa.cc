// Windows along the channels of a pixel. The numbers are padded with zeros, so every channel has
// the same number of neighbours. Each window is summed separately and in order. Sums never subtract
// an element again, so nothing cancels.
#include <math.h>

#include "kernels/lrn.h"
#include "kernels/simd.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

constexpr int L = kLanes<float>;

// sum[c] = v[c] + ... + v[c + 2 * radius]. Reads and writes whole vectors.
void Windows(const float* v, int64_t radius, float* sum, int64_t channels) {
  for (int64_t c = 0; c < channels; c += L) {
    Vec<float> s = Load(v + c);
    for (int64_t k = 1; k <= 2 * radius; ++k) s += Load(v + c + k);
    Store(sum + c, s);
  }
}

void Norms(const LrnWindow& w, const float* x, float* between, float* norms, int64_t channels) {
  float* squares = between + w.radius;
  for (int64_t c = 0; c < channels; ++c) squares[c] = x[c] * x[c];
  Windows(between, w.radius, norms, channels);
  for (int64_t c = 0; c < channels; ++c) norms[c] = w.bias + w.alpha * norms[c];
}

void Powers(float* n, float beta, int64_t channels) {
  if (beta == 0.5f) {
    for (int64_t c = 0; c < channels; ++c) n[c] = 1 / sqrtf(n[c]);
  } else if (beta == 0.75f) {
    for (int64_t c = 0; c < channels; ++c) n[c] = 1 / (sqrtf(n[c]) * sqrtf(sqrtf(n[c])));
  } else if (beta == 1) {
    for (int64_t c = 0; c < channels; ++c) n[c] = 1 / n[c];
  } else {
    for (int64_t c = 0; c < channels; ++c) n[c] = powf(n[c], -beta);
  }
}

int64_t RoomForOne(const LrnWindow& w, int64_t channels) { return channels + 2 * w.radius + 32; }

void Narrow(const LrnWindow& w, const float* x, float* y, int64_t pixels, int64_t channels, float* room) {
  float* norms = room + RoomForOne(w, channels);
  for (; pixels > 0; --pixels, x += channels, y += channels) {
    Norms(w, x, room, norms, channels);
    Powers(norms, w.beta, channels);
    for (int64_t c = 0; c < channels; ++c) y[c] = x[c] * norms[c];
  }
}

void NarrowGrad(const LrnWindow& w, const float* dy, const float* x, const float* y, float* dx, int64_t pixels, int64_t channels,
                float* room) {
  float *norms = room + RoomForOne(w, channels), *sums = norms + RoomForOne(w, channels), *ratios = room + w.radius;
  const float factor = 2 * w.alpha * w.beta;
  for (; pixels > 0; --pixels, dy += channels, x += channels, y += channels, dx += channels) {
    Norms(w, x, room, norms, channels);
    for (int64_t c = 0; c < channels; ++c) ratios[c] = dy[c] * y[c] / norms[c];
    Windows(room, w.radius, sums, channels);
    Powers(norms, w.beta, channels);
    for (int64_t c = 0; c < channels; ++c) dx[c] = dy[c] * norms[c] - factor * x[c] * sums[c];
  }
}

}  // namespace

const LrnTable& Lrn() {
  static constexpr LrnTable table = {Narrow, NarrowGrad, Powers};
  return table;
}

}  // namespace thalweg::cpu::THALWEG_ISA
