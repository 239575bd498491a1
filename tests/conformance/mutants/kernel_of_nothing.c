/* Registers a kernel for an op that does not exist. */
#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_kernel_def k = toy_half_kernel();
  (void)h, (void)out_instance;
  k.spec = "Third(float) @CPU";
  k.spec_len = 17;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
