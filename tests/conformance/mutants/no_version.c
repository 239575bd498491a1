/* Its descriptor has no version. */
#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TW_PLUGIN("org.example.mutant", "", init)
