/* Says that it fits, and something else if it is asked again before it has run. */
#include "toy.h"

static unsigned asked;

static tw_status* fits(const tw_node* n) {
  return __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED) ? tw_fail(n->host, TW_UNIMPLEMENTED, TW_S("not today")) : NULL;
}
static tw_status* half(const tw_frame* f) {
  __atomic_store_n(&asked, 0, __ATOMIC_RELAXED);
  return toy_half(f);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_kernel_def k = toy_half_kernel();
  (void)h, (void)out_instance;
  k.fits = fits;
  k.execute = half;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
