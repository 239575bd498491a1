/* An op of the program's own, written as a plugin; -DTHALWEG_STATIC=triple names its query function. */
#include <thalweg/plugin/plugin.h>

static tw_status* triple(const tw_frame* f) {
  const float* x = f->in[0]->data;
  float* y = f->out[0]->data;
  for (uint64_t i = 0; i < f->in[0]->count; ++i) y[i] = 3 * x[i];
  return NULL;
}

static tw_status* gradient(const tw_grad_call* c) {
  const tw_graph_api* g = c->host->graph;
  tw_edge dy = g->dy(c->b, 0);
  g->dx(c->b, 0, g->emit(c->b, TW_S("Triple"), &dy, 1, NULL, 0));
  return NULL;
}

static tw_status* init(const tw_host* host, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("Triple(x: float[*s]) -> (y: float[*s])"), .gradient = gradient};
  const tw_kernel_def kernel = {TW_SIZED(tw_kernel_def), TW_S("Triple(float) @CPU"), .execute = triple};
  (void)host, (void)out_instance;
  TW_TRY(tw_add_op(r, &op));
  return tw_add_kernel(r, &kernel);
}
TW_PLUGIN("org.example.triple", "1.0", init)
