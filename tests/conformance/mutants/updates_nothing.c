/* An update of a recording leaves the recorded work as it was. */
#include "toy_sets.h"

static tw_status* updated(const tw_host* h, void* stream, void* recorded, uint64_t part) {
  return toy_updated(h, stream, NULL, part + (recorded ? 0 : 1));
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  toy_sets s = toy_all_sets();
  (void)h, (void)out_instance;
  s.capture.updated = updated;
  return toy_register_sets(r, &s);
}
TOY_PLUGIN(init, NULL)
