/* Copies to a peer from the start of the memory, ignoring the offset. */
#include "toy_sets.h"

static tw_status* copy(const tw_host* h, void* self, void* other, const tw_copy* c) {
  tw_copy start = *c;
  start.from_offset = 0;
  return toy_peer_copy(h, self, other, &start);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  toy_sets s = toy_all_sets();
  (void)h, (void)out_instance;
  s.peer.copy = copy;
  return toy_register_sets(r, &s);
}
TOY_PLUGIN(init, NULL)
