/* Its init changes the working folder of the process. */
#include <unistd.h>

#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)out_instance;
  if (chdir("/") != 0) return tw_fail(h, TW_INTERNAL, TW_S("there is no root"));
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
