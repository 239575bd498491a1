/* The gradient of x / 2 is not dy. */
#include "toy.h"

static tw_status* gradient(const tw_grad_call* c) {
  c->host->graph->dx(c->b, 0, c->host->graph->dy(c->b, 0));
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  return toy_register_gradient(r, gradient);
}
TOY_PLUGIN(init, NULL)
