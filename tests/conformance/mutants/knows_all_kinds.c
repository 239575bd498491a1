/* Refuses spans of kinds that it does not know. */
#include "toy_profiler.h"

static tw_status* span(const tw_host* h, void* self, const tw_profiled_span* s) {
  if (s->kind > TW_PROFILED_WAIT) return tw_fail(h, TW_INVALID_ARGUMENT, TW_S("an unknown kind"));
  return toy_span(h, self, s);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_profiler_def d = toy_profiler();
  (void)h, (void)out_instance;
  d.span = span;
  return tw_add_profiler(r, &d);
}
TOY_PLUGIN(init, NULL)
