/* Correct, with its own resource. */
#include "toy_state.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_resource_def d = toy_tally_type();
  (void)h, (void)out_instance;
  return toy_register_tally(r, &d, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
