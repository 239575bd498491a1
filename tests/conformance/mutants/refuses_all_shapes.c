/* Its shape rule refuses everything. This breaks no rule, but nothing of the op can be checked. */
#include "toy.h"

static tw_status* shape(const tw_shape_call* c) { return tw_fail(c->host, TW_INVALID_ARGUMENT, TW_S("no shape will do")); }

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("Half(x: T) -> (y: T); T: {float}"), NULL, shape, toy_half_gradient};
  (void)h, (void)out_instance;
  return toy_register(r, NULL, NULL, &op, NULL);
}
TOY_PLUGIN(init, NULL)
