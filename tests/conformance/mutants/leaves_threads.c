/* Every stream leaves an idle thread behind. */
#include <unistd.h>

#include "toy_stream.h"

static tw_status* create(const tw_host* h, void* self, const tw_stream_config* c, void** out_stream) {
  pthread_t helper;
  pthread_create(&helper, NULL, (void* (*)(void*))(void*)sleep, (void*)(uintptr_t)1000);
  pthread_detach(helper);
  return toy_stream_create(h, self, c, out_stream);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_stream_set set = toy_streams();
  (void)h, (void)out_instance;
  set.create = create;
  return toy_register_streams(r, &set);
}
TOY_PLUGIN(init, NULL)
