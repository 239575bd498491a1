/* Ignores abort. */
#include "toy_collective.h"

static void ignore(const tw_host* h, void* group, const tw_status* why) { (void)h, (void)group, (void)why; }

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_collective_def d = toy_collective();
  (void)h, (void)out_instance;
  d.abort = ignore;
  return tw_add_collective(r, &d);
}
TOY_PLUGIN(init, NULL)
