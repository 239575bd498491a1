/* Accepts an artefact with any tag. */
#include "toy_compiler.h"

static uint32_t usable(const tw_host* h, void* user, void* device, const char* tag, uint64_t len) {
  (void)h, (void)user, (void)device, (void)tag, (void)len;
  return 1;
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_compiler_def d = toy_compiler();
  (void)h, (void)out_instance;
  d.usable = usable;
  return tw_add_compiler(r, &d);
}
TOY_PLUGIN(init, NULL)
