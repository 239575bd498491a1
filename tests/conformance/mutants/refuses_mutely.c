/* Leaves nodes unclaimed without a reason. */
#include "toy_compiler.h"

static tw_status* claim(const tw_host* h, void* user, void* device, const tw_part* part, tw_claims* to) {
  (void)h, (void)user, (void)device;
  for (uint32_t i = 0; i < part->n_nodes; ++i) TW_TRY(to->refuse(to, i, NULL, 0));
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_compiler_def d = toy_compiler();
  (void)h, (void)out_instance;
  d.claim = claim;
  return tw_add_compiler(r, &d);
}
TOY_PLUGIN(init, NULL)
