/* Trusts a number in the bytes that it restores. */
#include "toy_state.h"

static tw_status* restore(const tw_host* h, void* user, uint64_t format, tw_source* from, void** out_object) {
  TW_TRY(toy_tally_restore(h, user, format, from, out_object));
  const toy_tally* t = *out_object;
  char* room = malloc(16);
  for (uint64_t i = 0; i < t->numbers; ++i) ((volatile char*)room)[i] = 1;
  free(room);
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_resource_def d = toy_tally_type();
  (void)h, (void)out_instance;
  d.restore = restore;
  return toy_register_tally(r, &d, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
