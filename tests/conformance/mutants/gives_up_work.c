/* destroy discards pending work. */
#include "toy_stream.h"

static void destroy(const tw_host* h, void* stream) {
  toy_stream* s = stream;
  pthread_mutex_lock(&s->mu);
  while (s->first) {
    toy_job* j = s->first;
    s->first = j->next;
    free(j);
  }
  s->end = &s->first;
  pthread_mutex_unlock(&s->mu);
  toy_stream_destroy(h, s);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_stream_set set = toy_streams();
  (void)h, (void)out_instance;
  set.destroy = destroy;
  return toy_register_streams(r, &set);
}
TOY_PLUGIN(init, NULL)
