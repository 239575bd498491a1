/* Correct: the op allows a type for which no kernel exists yet. */
#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("Half(x: T[*s]) -> (y: T[*s]); T: {double, float}"), .gradient = toy_half_gradient};
  (void)h, (void)out_instance;
  return toy_register(r, NULL, NULL, &op, NULL);
}
TOY_PLUGIN(init, NULL)
