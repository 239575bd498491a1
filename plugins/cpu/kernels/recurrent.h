// One row of a recurrent cell apart from its products: gates, states and their gradients, built
// once per instruction set in recurrent_isa.cc. The per-set source includes this header, so it
// holds plain declarations only. Every pointer points to `cell` floats. The value of an element
// depends only on its column.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_RECURRENT_H_
#define THALWEG_PLUGINS_CPU_KERNELS_RECURRENT_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// The input of a gate's sigmoid or tanh: product + more + bias; `more` may be NULL.
struct GateInput {
  const float *product, *more, *bias;
};

struct LstmRow {
  GateInput i, ci, f, o;
  const float *cs_prev, *wci, *wcf, *wco;  // the last three are NULL without peepholes
  float forget_bias, clip;                 // no clipping unless clip is above 0
  float *out_i, *out_cs, *out_f, *out_o, *out_ci, *out_co, *out_h;
};

struct LstmGradRow {
  const float *cs_prev, *wci, *wcf, *wco;
  const float *i, *f, *o, *ci, *co;
  const float *cs_grad, *h_grad;               // the gradients that enter at this step
  const float *more_cs_grad, *more_h_grad;     // the gradients from the next step; may be NULL
  float *di, *dci, *df, *dout, *cs_prev_grad;  // cs_prev_grad may be more_cs_grad
};

struct GruGateRow {
  GateInput r, u;
  const float* h_prev;
  float *out_r, *out_u, *reset;  // reset = r h_prev
};
struct GruRow {
  GateInput c;
  const float *h_prev, *u;
  float *out_c, *out_h;
};
struct GruGradRow {
  const float *h_prev, *u, *c, *dh;
  float *dc_bar, *du_bar;
};
struct GruStateGradRow {
  const float *h_prev, *r, *u, *dh, *through_c, *through_ru;  // the last two: the gradients of r h_prev and h_prev from the products
  float* dh_prev;
};

struct RecurrentTable {
  void (*lstm)(const LstmRow& row, int64_t cell);
  void (*lstm_grad)(const LstmGradRow& row, int64_t cell);
  void (*gru_gates)(const GruGateRow& row, int64_t cell);
  void (*gru)(const GruRow& row, int64_t cell);
  void (*gru_grad)(const GruGradRow& row, int64_t cell);
  // dr_bar = through_c h_prev r (1 - r)
  void (*gru_reset_grad)(const float* through_c, const float* h_prev, const float* r, float* dr_bar, int64_t cell);
  void (*gru_state_grad)(const GruStateGradRow& row, int64_t cell);
  // sums[k] = sum over rows of a[row, k] b[row, k], rows in order. Consecutive rows are a_step and
  // b_step elements apart. If b is NULL, of a alone.
  void (*sum_products)(const float* a, int64_t a_step, const float* b, int64_t b_step, float* sums, int64_t rows, int64_t columns);
};
TW_CPU_DECLARE_ISA(RecurrentTable, Recurrent)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_RECURRENT_H_
