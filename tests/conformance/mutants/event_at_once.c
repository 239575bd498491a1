/* Its events complete before the work in front of them. */
#include "toy_sets.h"

static tw_status* record(const tw_host* h, void* stream, void** out_event) {
  toy_event* e = toy_event_make();
  (void)h, (void)stream;
  toy_event_reach(e);
  *out_event = e;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  toy_sets s = toy_all_sets();
  (void)h, (void)out_instance;
  s.events.record = record;
  return toy_register_sets(r, &s);
}
TOY_PLUGIN(init, NULL)
