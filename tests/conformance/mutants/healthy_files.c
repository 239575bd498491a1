/* A correct file system: the kit must report no fault. */
#include "toy_files.h"

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_file_system_def d = toy_files();
  (void)h, (void)out_instance;
  return tw_add_file_system(r, &d);
}
TOY_PLUGIN(init, NULL)
