/* Keeps its state per process, so that a second runtime finds the state in use. */
#include "toy.h"

static int taken;

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)out_instance;
  if (taken) return tw_fail(h, TW_FAILED_PRECONDITION, TW_S("the plugin is in use"));
  TW_TRY(toy_register(r, NULL, NULL, NULL, NULL));
  taken = 1;
  return NULL;
}
static void shutdown(const tw_host* h, void* instance) {
  (void)h, (void)instance;
  taken = 0;
}
TOY_PLUGIN(init, shutdown)
