/* Ops on variables and on the toy's own resource, with everything that schemas may require: a handle
 * marked as a variable, a handle marked as the tally, dims for the shape of both, and a required
 * attribute of the op that makes the tally. It breaks no rule, and the kit must skip none. */
#include "toy_state.h"

static int same(const tw_view* a, const tw_view* b) { return a->count == b->count && a->dtype == b->dtype; }

static tw_status* decay(const tw_frame* f) {
  if (!same(f->in[0], f->in[2])) return tw_fail(f->host, TW_INVALID_ARGUMENT, TW_S("grad is not as var"));
  const double* g = (const double*)(const void*)((const char*)f->in[2]->data + f->in[2]->offset);
  double* v = (double*)(void*)((char*)f->in[0]->data + f->in[0]->offset);
  toy_tally* t = f->in[1]->data;
  if (f->in[1]->dtype != TW_RESOURCE || !t) return tw_fail(f->host, TW_INVALID_ARGUMENT, TW_S("it is no tally"));
  for (uint64_t i = 0; i < f->in[0]->count; ++i) v[i] -= 0.5 * g[i];
  t->numbers += f->in[0]->count;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_resource_def type = toy_tally_type();
  const tw_op_def tally_op = {TW_SIZED(tw_op_def),
                              TW_S("NamedTally() -> (tally: resource[]); shared_name: string; grain: int >= 2; stateful; once;"
                                   " resource tally " TOY_TALLY "; no_gradient \"no inputs\"")};
  const tw_op_def decay_op = {TW_SIZED(tw_op_def), TW_S("Decay(var: resource, tally: resource, grad: double[n, m]) -> (); stateful;"
                                                        " resource var variable tally " TOY_TALLY "; no_gradient \"no outputs\"")};
  const tw_kernel_def make_kernel = {TW_SIZED(tw_kernel_def), TW_S("NamedTally @CPU"), .create = toy_name_create, .execute = toy_tally_open,
                                     .destroy = toy_name_destroy};
  const tw_kernel_def decay_kernel = {TW_SIZED(tw_kernel_def), TW_S("Decay @CPU; update var tally"), .execute = decay};
  (void)h, (void)out_instance;
  TW_TRY(tw_add_resource(r, &type));
  TW_TRY(tw_add_op(r, &tally_op));
  TW_TRY(tw_add_op(r, &decay_op));
  TW_TRY(tw_add_kernel(r, &make_kernel));
  return tw_add_kernel(r, &decay_kernel);
}
TOY_PLUGIN(init, NULL)
