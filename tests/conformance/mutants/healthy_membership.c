/* A correct membership: the kit must report no fault. */
#include "toy_membership.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_membership_def d = toy_membership();
  (void)h, (void)out_instance;
  return tw_add_membership(r, &d);
}
TOY_PLUGIN(init, NULL)
