/* Has a kernel for a type that the op does not allow, so that no node ever uses it. */
#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_kernel_def k = {TW_SIZED(tw_kernel_def), TW_S("Half(int32) @CPU"), .execute = toy_half};
  (void)h, (void)out_instance;
  TW_TRY(toy_register(r, NULL, NULL, NULL, NULL));
  return tw_add_kernel(r, &k);
}
TOY_PLUGIN(init, NULL)
