/* Has one profile: it ends when any session ends. */
#include "toy_profiler.h"

static int running;

static tw_status* start(const tw_host* h, void* user, const char* argument, uint64_t len, void** out_self) {
  running = 1;
  return toy_start(h, user, argument, len, out_self);
}

static tw_status* step(const tw_host* h, void* self, const tw_profiled_step* s) {
  if (!running) return tw_fail(h, TW_FAILED_PRECONDITION, TW_S("the profile is over"));
  return toy_step(h, self, s);
}

static tw_status* stop(const tw_host* h, void* self) {
  running = 0;
  return toy_stop(h, self);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_profiler_def d = toy_profiler();
  (void)h, (void)out_instance;
  d.start = start;
  d.step = step;
  d.stop = stop;
  return tw_add_profiler(r, &d);
}
TOY_PLUGIN(init, NULL)
