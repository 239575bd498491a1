/* Breaks nothing: a membership that the kit must not find fault with. */
#include "toy_membership.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_membership_def d = toy_membership();
  (void)h, (void)out_instance;
  return r->membership(r, &d);
}
TOY_PLUGIN(init, NULL)
