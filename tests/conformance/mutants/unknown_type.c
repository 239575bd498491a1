/* An op of an element type that no host knows, as a misspelt type is. */
#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("Thirds(x: flaot) -> (y: flaot)"), NULL, NULL, NULL};
  tw_kernel_def k = toy_half_kernel();
  (void)h, (void)out_instance;
  TW_TRY(tw_add_op(r, &op));
  return toy_register(r, NULL, NULL, NULL, &k);
}
TOY_PLUGIN(init, NULL)
