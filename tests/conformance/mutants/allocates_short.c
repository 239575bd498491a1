/* Allocates its output for the positive numbers, and writes one number behind them. */
#include "toy.h"

static tw_status* positives(const tw_frame* f) {
  const float* x = toy_in(f, 0);
  int64_t n = 0;
  for (uint64_t i = 0; i < f->in[0]->count; ++i) n += x[i] > 0;
  TW_TRY(f->host->tensor->allocate(f, 0, &n, 1));
  float* y = toy_out(f, 0);
  for (uint64_t i = 0; i < f->in[0]->count; ++i) {
    if (x[i] > 0) *y++ = x[i];
  }
  if (n > 0) *y = 0;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("Positives(x: float) -> (y: float[_]); no_gradient \"left out\"")};
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("Positives @CPU"), .execute = positives};
  (void)h, (void)out_instance;
  TW_TRY(tw_add_op(r, &op));
  return tw_add_kernel(r, &k);
}
TOY_PLUGIN(init, NULL)
