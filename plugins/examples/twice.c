/* A whole op in one file: Twice, with its shape rule, gradient and CPU kernels. Needs only the public headers:
 *
 *     cc -shared -fPIC -I<prefix>/include twice.c -o libtwice.so
 *
 * With the folder of libtwice.so in THALWEG_PLUGIN_PATH, every graph may use Twice. scale.cc is an op like it in C++. */
#include "thalweg/plugin/plugin.h"

/* The output has memory already: the shape rule said how much. An error would be returned as
 * tw_fail(f->host, code, TW_S("why")). */
#define KERNEL(T)                                                   \
  static tw_status* twice_##T(const tw_frame* f) {                  \
    const T* x = f->in[0]->data;                                    \
    T* y = f->out[0]->data;                                         \
    for (uint64_t i = 0; i < f->in[0]->count; ++i) y[i] = 2 * x[i]; \
    return NULL;                                                    \
  }                                                                 \
  static const tw_kernel_def kernel_##T = {TW_SIZED(tw_kernel_def), TW_S("Twice(" #T ") @CPU; inplace y=x"), .execute = twice_##T};
KERNEL(float)
KERNEL(double)

/* Builds the graph that leads dy, the gradient of y, back to x: one more Twice, so that it has a
 * gradient of its own. */
static tw_status* twice_gradient(const tw_grad_call* c) {
  const tw_graph_api* g = c->host->graph;
  tw_edge dy = g->dy(c->b, 0);
  g->dx(c->b, 0, g->emit(c->b, TW_S("Twice"), &dy, 1, NULL, 0));
  return NULL;
}

/* [*s] on both sides is the shape rule: y has the shape of x. */
static tw_status* init(const tw_host* host, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("Twice(x: T[*s]) -> (y: T[*s]); T: {float, double}"), .gradient = twice_gradient};
  (void)host, (void)out_instance;
  TW_TRY(tw_add_op(r, &op));
  TW_TRY(tw_add_kernel(r, &kernel_float));
  return tw_add_kernel(r, &kernel_double);
}
TW_PLUGIN("org.example.twice", "1.0", init)
