/* Writes to a resource that it has opened for reading. */
#include "toy_state.h"

static tw_status* sum(const tw_frame* f) {
  TW_TRY(toy_tally_sum(f));
  ++((toy_tally*)f->in[0]->data)->sum;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_resource_def d = toy_tally_type();
  (void)h, (void)out_instance;
  return toy_register_tally(r, &d, NULL, sum);
}
TOY_PLUGIN(init, NULL)
