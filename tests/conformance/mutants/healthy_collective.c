/* Correct collectives: the kit must report no fault. */
#include "toy_collective.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_collective_def d = toy_collective();
  (void)h, (void)out_instance;
  return tw_add_collective(r, &d);
}
TOY_PLUGIN(init, NULL)
