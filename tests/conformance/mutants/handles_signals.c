/* Its init installs a handler for a signal of the process. */
#include <signal.h>

#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  signal(SIGPIPE, SIG_IGN);
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
