/* Scatters the minimum instead of the sum. */
#include "toy_collective.h"

static tw_status* scatter(const tw_host* h, void* g, const tw_collective_call* c) {
  tw_collective_call least = *c;
  least.reduce = TW_REDUCE_MIN;
  return toy_scatter(h, g, &least);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_collective_def d = toy_collective();
  (void)h, (void)out_instance;
  d.reduce_scatter = scatter;
  return tw_add_collective(r, &d);
}
TOY_PLUGIN(init, NULL)
