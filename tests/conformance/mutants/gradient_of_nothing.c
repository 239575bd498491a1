/* The gradient names an op that does not exist. */
#include "toy.h"

static tw_status* gradient(const tw_grad_call* c) {
  const tw_graph_api* g = c->host->graph;
  const tw_edge dy = g->dy(c->b, 0);
  g->dx(c->b, 0, g->emit(c->b, TW_S("HalfOfNothing"), &dy, 1, NULL, 0));
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  return toy_register_gradient(r, gradient);
}
TOY_PLUGIN(init, NULL)
