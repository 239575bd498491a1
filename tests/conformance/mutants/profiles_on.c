/* Continues to profile after stop. */
#include "toy_sets.h"

static void stop(const tw_host* h, void* self) { (void)h, (void)self; }

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  toy_sets s = toy_all_sets();
  (void)h, (void)out_instance;
  s.profile.stop = stop;
  return toy_register_sets(r, &s);
}
TOY_PLUGIN(init, NULL)
