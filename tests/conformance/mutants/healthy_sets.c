/* Correct, with all optional sets. */
#include "toy_sets.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  toy_sets s = toy_all_sets();
  (void)h, (void)out_instance;
  return toy_register_sets(r, &s);
}
TOY_PLUGIN(init, NULL)
