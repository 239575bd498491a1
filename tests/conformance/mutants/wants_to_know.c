/* Declines a node whose shapes are not known yet. */
#include "toy.h"

static tw_status* fits(const tw_node* n) {
  return n->shapes[0].rank < 0 ? tw_fail(n->host, TW_UNIMPLEMENTED, TW_S("the shape is not known")) : NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_kernel_def k = toy_half_kernel();
  (void)h, (void)out_instance;
  k.fits = fits;
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
