/* An op whose result is twice as large as its schema says. */
#include "toy.h"

/* Gives each number that is not 0 twice. */
static tw_status* some(const tw_frame* f) {
  const float* x = toy_in(f, 0);
  const int64_t times = 2;
  int64_t n = 0;
  for (uint64_t i = 0; i < f->in[0]->count; ++i) n += x[i] != 0 ? times : 0;
  TW_TRY(f->host->tensor->allocate(f, 0, &n, 1));
  float* y = toy_out(f, 0);
  for (uint64_t i = 0; i < f->in[0]->count; ++i) {
    for (int64_t k = 0; k < times && x[i] != 0; ++k) *y++ = x[i];
  }
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("Some(x: float) -> (y: float[_]); ?limits y 0 elements x; no_gradient \"left out\"")};
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("Some @CPU"), .execute = some};
  (void)h, (void)out_instance;
  TW_TRY(tw_add_op(r, &op));
  return tw_add_kernel(r, &k);
}
TOY_PLUGIN(init, NULL)
