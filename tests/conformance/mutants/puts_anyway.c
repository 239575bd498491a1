/* Ignores the expected revision. */
#include "toy_membership.h"

static tw_status* put(const tw_host* h, void* member, const tw_put* p, uint64_t* out_revision) {
  tw_put any = *p;
  any.expected = UINT64_MAX;
  return toy_put(h, member, &any, out_revision);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_membership_def d = toy_membership();
  (void)h, (void)out_instance;
  d.put = put;
  return tw_add_membership(r, &d);
}
TOY_PLUGIN(init, NULL)
