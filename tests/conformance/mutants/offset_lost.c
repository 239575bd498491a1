/* Reads from the beginning of the block, whatever the requested offset. */
#include "toy.h"

static tw_status* copy(const tw_host* h, void* self, const tw_copy* c) {
  tw_copy all = *c;
  if (c->to_host && !c->from_host && c->from_offset < 64) all.from_offset = 0;
  return toy_copy(h, self, &all);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_device_def d = toy_device();
  (void)h, (void)out_instance;
  d.copy = copy;
  return toy_register(r, &d, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
