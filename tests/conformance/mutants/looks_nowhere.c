/* Calls an entry of minor 1 without looking whether the host has it, although it accepts hosts of
 * minor 0. */
#define THALWEG_TARGET_MINOR 1
#define THALWEG_FLOOR_MINOR 0
#include "toy.h"

static tw_status* neg(const tw_frame* f) {
  f->host->run->count(f, TW_S("elements"), (int64_t)f->in[0]->count);
  return toy_neg(f);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_kernel_def k = toy_kernel();
  (void)h, (void)out_instance;
  k.execute = neg;
  return toy_register(r, NULL, &k, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
