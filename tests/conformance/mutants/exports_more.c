/* Exports a function that should be static. */
#include "toy.h"

__attribute__((visibility("default"))) int mutant_helper(void);
int mutant_helper(void) { return 1; }

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
