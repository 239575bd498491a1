/* Runs work at once that it should record. */
#include "toy_sets.h"

static tw_status* begin(const tw_host* h, const tw_capture_config* c) {
  (void)h, (void)c;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  toy_sets s = toy_all_sets();
  (void)h, (void)out_instance;
  s.capture.begin = begin;
  return toy_register_sets(r, &s);
}
TOY_PLUGIN(init, NULL)
