/* Takes a node twice in one set. */
#include "toy_compiler.h"

static tw_status* claim(const tw_host* h, void* user, void* device, const tw_part* part, tw_claims* to) {
  const uint32_t nodes[2] = {0, 0};
  (void)user, (void)device, (void)part;
  h->status->release(to->take(to, nodes, 2, 1));
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_compiler_def d = toy_compiler();
  (void)h, (void)out_instance;
  d.claim = claim;
  return tw_add_compiler(r, &d);
}
TOY_PLUGIN(init, NULL)
