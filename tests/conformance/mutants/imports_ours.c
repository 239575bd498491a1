/* Calls a function of the application API that it expects in the process. */
#include "toy.h"

__attribute__((weak)) const char* tw_version_text(void);

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  if (tw_version_text) (void)tw_version_text();
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
