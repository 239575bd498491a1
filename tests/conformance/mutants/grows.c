/* Never frees the memory that init allocates. */
#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h;
  *out_instance = calloc(1, 5000);
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
