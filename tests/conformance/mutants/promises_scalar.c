/* Its shape rule treats an unknown rank as a scalar. */
#include "toy.h"

static tw_status* shape(const tw_shape_call* c) {
  c->host->graph->set_shape(c->b, 0, c->in[0].dims, c->in[0].rank < 0 ? 0 : c->in[0].rank);
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("Half(x: T) -> (y: T); T: {float}"), NULL, shape, toy_half_gradient};
  (void)h, (void)out_instance;
  return toy_register(r, NULL, NULL, &op, NULL);
}
TOY_PLUGIN(init, NULL)
