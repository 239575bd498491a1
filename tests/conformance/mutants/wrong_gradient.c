/* The gradient of x / 2 is not dy. */
#include "toy.h"

static tw_status* gradient(const tw_grad_call* c) {
  c->host->graph->dx(c->b, 0, c->host->graph->dy(c->b, 0));
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_op_def op = toy_op();
  (void)h, (void)out_instance;
  op.gradient = gradient;
  return toy_register(r, NULL, NULL, &op, NULL);
}
TOY_PLUGIN(init, NULL)
