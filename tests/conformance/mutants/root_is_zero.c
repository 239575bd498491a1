/* Broadcasts from member 0, whichever member is the root. */
#include "toy_collective.h"

static tw_status* broadcast(const tw_host* h, void* g, const tw_collective_call* c) {
  tw_collective_call zero = *c;
  zero.root = 0;
  return toy_broadcast(h, g, &zero);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_collective_def d = toy_collective();
  (void)h, (void)out_instance;
  d.broadcast = broadcast;
  return tw_add_collective(r, &d);
}
TOY_PLUGIN(init, NULL)
