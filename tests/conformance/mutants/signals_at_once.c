/* Signals at the call, not at the end of the work. */
#include "toy_stream.h"

static tw_status* signal(const tw_host* h, void* stream, uint64_t value) {
  toy_stream* s = stream;
  h->timeline->signal(s->line, value);
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_stream_set set = toy_streams();
  (void)h, (void)out_instance;
  set.signal = signal;
  return toy_register_streams(r, &set);
}
TOY_PLUGIN(init, NULL)
