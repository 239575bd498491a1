/* Lists every name twice. */
#include "toy_files.h"

static tw_status* list(const tw_host* h, void* user, const char* folder, uint64_t len, tw_sink* to) {
  TW_TRY(toy_list(h, user, folder, len, to));
  return toy_list(h, user, folder, len, to);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_file_system_def d = toy_files();
  (void)h, (void)out_instance;
  d.list = list;
  return tw_add_file_system(r, &d);
}
TOY_PLUGIN(init, NULL)
