/* A correct profiler: the kit must report no fault. */
#include "toy_profiler.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_profiler_def d = toy_profiler();
  (void)h, (void)out_instance;
  return tw_add_profiler(r, &d);
}
TOY_PLUGIN(init, NULL)
