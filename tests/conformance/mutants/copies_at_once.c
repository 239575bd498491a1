/* Copies at once, even if it is told to enqueue the copy on a stream. */
#include "toy_stream.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_stream_set set = toy_streams();
  tw_device_def d = toy_device();
  (void)h, (void)out_instance;
  d.copy = toy_copy;
  d.streams = &set;
  return tw_add_device(r, &d);
}
TOY_PLUGIN(init, NULL)
