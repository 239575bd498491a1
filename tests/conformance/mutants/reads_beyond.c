/* Reads the element behind the last one of its input. */
#include "toy.h"

static tw_status* half(const tw_frame* f) {
  toy_half(f);
  if (f->in[0]->count && toy_in(f, 0)[f->in[0]->count] > 1e38f) toy_out(f, 0)[0] += 1;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_kernel_def k = toy_half_kernel();
  (void)h, (void)out_instance;
  k.execute = half;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
