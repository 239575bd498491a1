/* Accepts hosts of minor 0, but its init fails on one whose role file_system is of minor 0. */
#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)out_instance;
  if (!r->offers(r, TW_S("file_system"), TW_FILE_SYSTEM_MAJOR, 1)) return tw_fail(h, TW_FAILED_PRECONDITION, TW_S("the host is too old"));
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
