/* Computes a third, although the case file of its author has a half (half.cases.json). Its gradient
 * agrees with its results. */
#include "toy.h"

static tw_status* third(const tw_frame* f) {
  const float* x = toy_in(f, 0);
  float* y = toy_out(f, 0);
  for (uint64_t i = 0; i < f->in[0]->count; ++i) y[i] = x[i] / 3;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_kernel_def k = toy_half_kernel();
  (void)h, (void)out_instance;
  k.execute = third;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
