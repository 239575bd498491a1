/* Broadcasts along the first axes, and treats all other broadcasts in the same way. */
#include "toy.h"

static tw_status* add(const tw_frame* f) {
  const uint64_t a = f->in[0]->count, b = f->in[1]->count;
  for (uint64_t i = 0; i < f->out[0]->count; ++i) toy_out(f, 0)[i] = toy_in(f, 0)[i % a] + toy_in(f, 1)[i % b];
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("Add(float, float) @TOY"), .execute = add};
  (void)h, (void)out_instance;
  return toy_register(r, NULL, &k, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
