/* An op that says that its result grows with its input, and whose result gets smaller. */
#include "toy.h"

static tw_status* shape(const tw_shape_call* c) {
  const tw_graph_api* g = c->host->graph;
  const int64_t n = c->in[0].rank == 1 ? c->in[0].dims[0] : -1;
  const int64_t left = n < 0 ? -1 : n > 100 ? 0 : 100 - n;
  g->set_shape(c->b, 0, &left, 1);
  return NULL;
}

static tw_status* fill(const tw_frame* f) {
  float* y = toy_out(f, 0);
  for (uint64_t i = 0; i < f->out[0]->count; ++i) y[i] = 1;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("Left(x: float[_]) -> (y: float[_]); ?grows; no_gradient \"left out\""), NULL, shape,
                        NULL};
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("Left @CPU"), .execute = fill};
  (void)h, (void)out_instance;
  TW_TRY(tw_add_op(r, &op));
  return tw_add_kernel(r, &k);
}
TOY_PLUGIN(init, NULL)
