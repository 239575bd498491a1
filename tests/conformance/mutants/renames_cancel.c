/* Returns its own error for a cancelled step. */
#include "toy.h"

static tw_status* half(const tw_frame* f) {
  tw_status* s = f->host->run->cancelled(f);
  if (!s) return toy_half(f);
  f->host->status->release(s);
  return tw_fail(f->host, TW_INTERNAL, TW_S("something came between"));
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_kernel_def k = toy_half_kernel();
  (void)h, (void)out_instance;
  k.execute = half;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
