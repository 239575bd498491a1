/* Ignores the registrar's status. */
#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_op_def op = toy_op();
  const tw_device_def device = toy_device();
  (void)out_instance;
  h->status->release(tw_add_device(r, &device));
  h->status->release(tw_add_op(r, &op));
  return NULL;
}
TOY_PLUGIN(init, NULL)
