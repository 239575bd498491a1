/* Waits for a lost member beyond the deadline of the group. */
#include "toy_collective.h"

static tw_status* create(const tw_host* h, void* user, const tw_group_config* c, void** out_group) {
  tw_group_config patient = *c;
  patient.deadline = 0;
  return toy_group_create(h, user, &patient, out_group);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_collective_def d = toy_collective();
  (void)h, (void)out_instance;
  d.create = create;
  return tw_add_collective(r, &d);
}
TOY_PLUGIN(init, NULL)
