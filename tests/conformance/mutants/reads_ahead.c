/* Reads bytes behind its input, and does not use them. */
#include "toy.h"

static tw_status* half(const tw_frame* f) {
  const volatile float* ahead = toy_in(f, 0) + f->in[0]->count + 16;
  if (f->in[0]->count) (void)*ahead;
  return toy_half(f);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_kernel_def k = toy_half_kernel();
  (void)h, (void)out_instance;
  k.execute = half;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
