// Batch normalisation of strips, compiled once per instruction set: plain loops for the compiler to vectorise.
#include "kernels/batch_norm.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

void Sum(const NormStrip& s, const float* x, float* __restrict sums) {
  for (int64_t r = 0; r < s.rows; ++r, x += s.step)
    for (int64_t c = 0; c < s.columns; ++c) sums[c] += x[c];
}

void Squares(const NormStrip& s, const float* x, const float* mean, float* __restrict sums) {
  for (int64_t r = 0; r < s.rows; ++r, x += s.step)
    for (int64_t c = 0; c < s.columns; ++c) sums[c] += (x[c] - mean[c]) * (x[c] - mean[c]);
}

void Products(const NormStrip& s, const float* dy, const float* x, const float* mean, float* __restrict sums) {
  for (int64_t r = 0; r < s.rows; ++r, x += s.step, dy += s.step)
    for (int64_t c = 0; c < s.columns; ++c) sums[c] += dy[c] * (x[c] - mean[c]);
}

void Normalise(const NormStrip& s, const float* x, const float* mean, const float* scale, const float* offset, float* y) {
  for (int64_t r = 0; r < s.rows; ++r, x += s.step, y += s.step)
    for (int64_t c = 0; c < s.columns; ++c) y[c] = (x[c] - mean[c]) * scale[c] + offset[c];
}

void Gradient(const NormStrip& s, const float* dy, const float* x, const float* mean, const float* shift, const float* slope,
              const float* scale, float* dx) {
  for (int64_t r = 0; r < s.rows; ++r, x += s.step, dy += s.step, dx += s.step)
    for (int64_t c = 0; c < s.columns; ++c) dx[c] = (dy[c] - shift[c] - (x[c] - mean[c]) * slope[c]) * scale[c];
}

}  // namespace

const BatchNormTable& BatchNorm() {
  static constexpr BatchNormTable table = {Sum, Squares, Products, Normalise, Gradient};
  return table;
}

}  // namespace thalweg::cpu::THALWEG_ISA
