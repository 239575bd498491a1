/* A kernel that sleeps for a moment, and whose spec does not declare `may_block`. */
#include <time.h>

#include "toy.h"

static tw_status* half(const tw_frame* f) {
  const struct timespec moment = {0, 5000000};
  nanosleep(&moment, NULL);
  return toy_half(f);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_kernel_def k = toy_half_kernel();
  (void)h, (void)out_instance;
  k.execute = half;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
