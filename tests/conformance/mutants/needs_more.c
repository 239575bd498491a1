/* Needs a function that no library defines, so that it cannot be loaded. */
#include "toy.h"

extern void mutant_function_of_nobody(void);

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  mutant_function_of_nobody();
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
