/* Correct streams: the kit must report no fault. */
#include "toy_stream.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_stream_set set = toy_streams();
  (void)h, (void)out_instance;
  return toy_register_streams(r, &set);
}
TOY_PLUGIN(init, NULL)
