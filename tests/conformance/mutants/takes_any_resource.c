/* Treats the target of any handle as a tally. */
#include "toy_state.h"

static tw_status* add(const tw_frame* f) {
  toy_tally* t = f->in[0]->data;
  t->sum += (double)f->in[1]->count;
  t->numbers += f->in[1]->count;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_resource_def d = toy_tally_type();
  (void)h, (void)out_instance;
  return toy_register_tally(r, &d, add, NULL);
}
TOY_PLUGIN(init, NULL)
