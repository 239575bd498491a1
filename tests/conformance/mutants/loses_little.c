/* Its init allocates a few bytes that its shutdown does not free. */
#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  char* little = malloc(40);
  (void)h, (void)out_instance;
  if (little) memset(little, 1, 40);
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
