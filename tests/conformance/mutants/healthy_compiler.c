/* A correct compiler: the kit must report no fault. */
#include "toy_compiler.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_compiler_def d = toy_compiler();
  (void)h, (void)out_instance;
  return tw_add_compiler(r, &d);
}
TOY_PLUGIN(init, NULL)
