/* A stream that waited for a failed timeline stops for good. */
#include "toy_stream.h"

static void ignore(void* arg, const tw_status* why) {
  if (!why) toy_gate_opens(arg, why);
}

static tw_status* wait(const tw_host* h, void* stream, tw_timeline* other, uint64_t value) {
  h->timeline->when(other, value, ignore, stream);
  return toy_enqueue(h, stream, (toy_job){.work = TOY_WAIT});
}

/* Releases the stream at the end, so that the kit can end, too. */
static void destroy(const tw_host* h, void* stream) {
  toy_stream* s = stream;
  pthread_mutex_lock(&s->mu);
  s->open_gates = 1000;
  pthread_mutex_unlock(&s->mu);
  toy_stream_destroy(h, s);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_stream_set set = toy_streams();
  (void)h, (void)out_instance;
  set.wait = wait;
  set.destroy = destroy;
  return toy_register_streams(r, &set);
}
TOY_PLUGIN(init, NULL)
