/* Computes in memory that all calls share. */
#include <sched.h>

#include "toy.h"

static int busy;

static tw_status* half(const tw_frame* f) {
  const int before = __atomic_fetch_add(&busy, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 200; ++i) sched_yield();
  toy_half(f);
  if ((before || __atomic_load_n(&busy, __ATOMIC_SEQ_CST) > 1) && f->out[0]->count) toy_out(f, 0)[0] = 1234;
  __atomic_fetch_sub(&busy, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_kernel_def k = toy_half_kernel();
  (void)h, (void)out_instance;
  k.execute = half;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
