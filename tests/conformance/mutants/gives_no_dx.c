/* The gradient function succeeds but never gives dx. */
#include "toy.h"

static tw_status* gradient(const tw_grad_call* c) {
  (void)c;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  return toy_register_gradient(r, gradient);
}
TOY_PLUGIN(init, NULL)
