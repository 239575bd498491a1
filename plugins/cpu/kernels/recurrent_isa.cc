// Rows of recurrent cells, compiled once per instruction set: plain loops in runs that stay in the
// first-level cache. Sigmoid and tanh come from the element-wise table of the same set.
#include <stddef.h>

#include "kernels/elementwise.h"
#include "kernels/recurrent.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

constexpr int64_t kRun = 256;

template <class F>
inline void ForRuns(int64_t n, F&& part) {
  for (int64_t at = 0; at < n; at += kRun) part(at, n - at < kRun ? n - at : kRun);
}

inline void Load(const GateInput& g, int64_t at, int64_t n, float* to) {
  if (g.more) {
    for (int64_t k = 0; k < n; ++k) to[k] = g.product[at + k] + g.more[at + k] + g.bias[at + k];
  } else {
    for (int64_t k = 0; k < n; ++k) to[k] = g.product[at + k] + g.bias[at + k];
  }
}
inline void AddProduct(const float* a, const float* b, int64_t at, int64_t n, float* to) {
  for (int64_t k = 0; k < n; ++k) to[k] += a[at + k] * b[at + k];
}

void Lstm(const LstmRow& row, int64_t cell) {
  const UnaryKernels& math = ElementwiseTable().unary_float;
  alignas(64) float i[kRun], ci[kRun], f[kRun], o[kRun], cs[kRun], co[kRun];
  ForRuns(cell, [&](int64_t at, int64_t n) {
    Load(row.i, at, n, i);
    Load(row.ci, at, n, ci);
    Load(row.f, at, n, f);
    Load(row.o, at, n, o);
    for (int64_t k = 0; k < n; ++k) f[k] += row.forget_bias;
    if (row.wci) AddProduct(row.cs_prev, row.wci, at, n, i);
    if (row.wci) AddProduct(row.cs_prev, row.wcf, at, n, f);
    math.sigmoid.loop(i, i, n);
    math.tanh.loop(ci, ci, n);
    math.sigmoid.loop(f, f, n);
    for (int64_t k = 0; k < n; ++k) cs[k] = ci[k] * i[k] + f[k] * row.cs_prev[at + k];
    if (row.clip > 0)
      for (int64_t k = 0; k < n; ++k) cs[k] = cs[k] < -row.clip ? -row.clip : cs[k] > row.clip ? row.clip : cs[k];
    if (row.wco)
      for (int64_t k = 0; k < n; ++k) o[k] += cs[k] * row.wco[at + k];
    math.sigmoid.loop(o, o, n);
    math.tanh.loop(cs, co, n);
    for (int64_t k = 0; k < n; ++k) row.out_i[at + k] = i[k];
    for (int64_t k = 0; k < n; ++k) row.out_cs[at + k] = cs[k];
    for (int64_t k = 0; k < n; ++k) row.out_f[at + k] = f[k];
    for (int64_t k = 0; k < n; ++k) row.out_o[at + k] = o[k];
    for (int64_t k = 0; k < n; ++k) row.out_ci[at + k] = ci[k];
    for (int64_t k = 0; k < n; ++k) row.out_co[at + k] = co[k];
    for (int64_t k = 0; k < n; ++k) row.out_h[at + k] = o[k] * co[k];
  });
}

void LstmGrad(const LstmGradRow& row, int64_t cell) {
  alignas(64) float dh[kRun], dcs[kRun], di[kRun], dci[kRun], df[kRun], dout[kRun], back[kRun];
  ForRuns(cell, [&](int64_t at, int64_t n) {
    const float *i = row.i + at, *f = row.f + at, *o = row.o + at, *ci = row.ci + at, *co = row.co + at, *cs_prev = row.cs_prev + at;
    for (int64_t k = 0; k < n; ++k) dh[k] = row.h_grad[at + k];
    for (int64_t k = 0; k < n; ++k) dcs[k] = row.cs_grad[at + k];
    if (row.more_h_grad)
      for (int64_t k = 0; k < n; ++k) dh[k] += row.more_h_grad[at + k];
    if (row.more_cs_grad)
      for (int64_t k = 0; k < n; ++k) dcs[k] += row.more_cs_grad[at + k];
    for (int64_t k = 0; k < n; ++k) dout[k] = o[k] * (1 - o[k]) * dh[k] * co[k];
    for (int64_t k = 0; k < n; ++k) dcs[k] += (1 - co[k] * co[k]) * dh[k] * o[k];
    if (row.wco)
      for (int64_t k = 0; k < n; ++k) dcs[k] += dout[k] * row.wco[at + k];
    for (int64_t k = 0; k < n; ++k) dci[k] = (1 - ci[k] * ci[k]) * dcs[k] * i[k];
    for (int64_t k = 0; k < n; ++k) df[k] = f[k] * (1 - f[k]) * dcs[k] * cs_prev[k];
    for (int64_t k = 0; k < n; ++k) di[k] = i[k] * (1 - i[k]) * dcs[k] * ci[k];
    for (int64_t k = 0; k < n; ++k) back[k] = dcs[k] * f[k];
    if (row.wci)
      for (int64_t k = 0; k < n; ++k) back[k] += di[k] * row.wci[at + k] + df[k] * row.wcf[at + k];
    for (int64_t k = 0; k < n; ++k) row.di[at + k] = di[k];
    for (int64_t k = 0; k < n; ++k) row.dci[at + k] = dci[k];
    for (int64_t k = 0; k < n; ++k) row.df[at + k] = df[k];
    for (int64_t k = 0; k < n; ++k) row.dout[at + k] = dout[k];
    for (int64_t k = 0; k < n; ++k) row.cs_prev_grad[at + k] = back[k];
  });
}

void GruGates(const GruGateRow& row, int64_t cell) {
  const UnaryKernels& math = ElementwiseTable().unary_float;
  alignas(64) float r[kRun], u[kRun];
  ForRuns(cell, [&](int64_t at, int64_t n) {
    Load(row.r, at, n, r);
    Load(row.u, at, n, u);
    math.sigmoid.loop(r, r, n);
    math.sigmoid.loop(u, u, n);
    for (int64_t k = 0; k < n; ++k) row.out_r[at + k] = r[k];
    for (int64_t k = 0; k < n; ++k) row.out_u[at + k] = u[k];
    for (int64_t k = 0; k < n; ++k) row.reset[at + k] = r[k] * row.h_prev[at + k];
  });
}

void Gru(const GruRow& row, int64_t cell) {
  const UnaryKernels& math = ElementwiseTable().unary_float;
  alignas(64) float c[kRun];
  ForRuns(cell, [&](int64_t at, int64_t n) {
    Load(row.c, at, n, c);
    math.tanh.loop(c, c, n);
    for (int64_t k = 0; k < n; ++k) row.out_c[at + k] = c[k];
    for (int64_t k = 0; k < n; ++k) row.out_h[at + k] = row.u[at + k] * row.h_prev[at + k] + (1 - row.u[at + k]) * c[k];
  });
}

void GruGrad(const GruGradRow& row, int64_t cell) {
  for (int64_t k = 0; k < cell; ++k) row.dc_bar[k] = row.dh[k] * (1 - row.u[k]) * (1 - row.c[k] * row.c[k]);
  for (int64_t k = 0; k < cell; ++k) row.du_bar[k] = row.dh[k] * (row.h_prev[k] - row.c[k]) * row.u[k] * (1 - row.u[k]);
}

void GruResetGrad(const float* through_c, const float* h_prev, const float* r, float* dr_bar, int64_t cell) {
  for (int64_t k = 0; k < cell; ++k) dr_bar[k] = through_c[k] * h_prev[k] * r[k] * (1 - r[k]);
}

void GruStateGrad(const GruStateGradRow& row, int64_t cell) {
  for (int64_t k = 0; k < cell; ++k) row.dh_prev[k] = row.through_ru[k] + row.through_c[k] * row.r[k] + row.dh[k] * row.u[k];
}

void SumProducts(const float* a, int64_t a_step, const float* b, int64_t b_step, float* __restrict sums, int64_t rows, int64_t columns) {
  for (int64_t k = 0; k < columns; ++k) sums[k] = 0;
  for (int64_t row = 0; row < rows; ++row, a += a_step, b = b ? b + b_step : b) {
    if (b) {
      for (int64_t k = 0; k < columns; ++k) sums[k] += a[k] * b[k];
    } else {
      for (int64_t k = 0; k < columns; ++k) sums[k] += a[k];
    }
  }
}

}  // namespace

const RecurrentTable& Recurrent() {
  static constexpr RecurrentTable table = {
      .lstm = Lstm,
      .lstm_grad = LstmGrad,
      .gru_gates = GruGates,
      .gru = Gru,
      .gru_grad = GruGrad,
      .gru_reset_grad = GruResetGrad,
      .gru_state_grad = GruStateGrad,
      .sum_products = SumProducts,
  };
  return table;
}

}  // namespace thalweg::cpu::THALWEG_ISA
