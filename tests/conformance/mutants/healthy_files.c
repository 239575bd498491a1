/* Breaks nothing: a file system that the kit must not find fault with. */
#include "toy_files.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_file_system_def d = toy_files();
  (void)h, (void)out_instance;
  return r->file_system(r, &d);
}
TOY_PLUGIN(init, NULL)
