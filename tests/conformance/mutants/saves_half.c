/* Saves the numbers without their sum. */
#include "toy_state.h"

static tw_status* save(const tw_host* h, const void* object, tw_sink* to) {
  toy_tally t = *(const toy_tally*)object;
  t.sum = (double)t.numbers;
  return toy_tally_save(h, &t, to);
}
static tw_status* restore(const tw_host* h, void* user, uint64_t format, tw_source* from, void** out_object) {
  TW_TRY(toy_tally_restore(h, user, format, from, out_object));
  ((toy_tally*)*out_object)->numbers = 0;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_resource_def d = toy_tally_type();
  (void)h, (void)out_instance;
  d.save = save;
  d.restore = restore;
  return toy_register_tally(r, &d, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
