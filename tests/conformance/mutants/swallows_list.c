/* enumerate ignores the list's status. */
#include "toy.h"

static tw_status* enumerate(const tw_host* h, void* user, tw_device_list* to) {
  h->status->release(toy_enumerate(h, user, to));
  return NULL;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_device_def d = toy_device();
  (void)h, (void)out_instance;
  d.enumerate = enumerate;
  return toy_register(r, &d, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
