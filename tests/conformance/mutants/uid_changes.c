/* Its uid changes with each call. */
#include <stdio.h>

#include "toy.h"

static tw_status* enumerate(const tw_host* h, void* user, tw_device_list* to) {
  static int asked;
  char uid[32];
  tw_device_info d = {TW_SIZED(tw_device_info), TW_S(""), TW_S("a device"), user, 0, 0};
  (void)h;
  d.uid_len = (uint64_t)snprintf(uid, sizeof uid, "toy-%d", asked++);
  d.uid = uid;
  return to->add(to, &d);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_device_def d = toy_device();
  (void)h, (void)out_instance;
  d.enumerate = enumerate;
  return toy_register(r, &d, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
