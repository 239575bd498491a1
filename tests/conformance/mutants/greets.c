/* Its init writes to standard error. */
#include <stdio.h>

#include "toy.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  fputs("the toy says hello\n", stderr);
  return toy_register(r, NULL, NULL, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
