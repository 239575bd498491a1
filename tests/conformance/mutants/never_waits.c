/* Its wait returns at once. */
#include "toy_stream.h"

static tw_status* wait(const tw_host* h, void* stream, tw_timeline* other, uint64_t value) {
  (void)h, (void)stream, (void)other, (void)value;
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_stream_set set = toy_streams();
  (void)h, (void)out_instance;
  set.wait = wait;
  return toy_register_streams(r, &set);
}
TOY_PLUGIN(init, NULL)
