/* A kernel that writes to standard output. */
#include <stdio.h>

#include "toy.h"

static tw_status* half(const tw_frame* f) {
  printf("half of %llu numbers\n", (unsigned long long)f->in[0]->count);
  return toy_half(f);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_kernel_def k = toy_half_kernel();
  (void)h, (void)out_instance;
  k.execute = half;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
