/* create truncates an existing file. */
#include "toy_files.h"

static tw_status* create(const tw_host* h, void* user, const char* path, uint64_t len, void** out_file) {
  h->status->release(toy_remove(h, user, path, len));
  return toy_create(h, user, path, len, out_file);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_file_system_def d = toy_files();
  (void)h, (void)out_instance;
  d.create = create;
  return r->file_system(r, &d);
}
TOY_PLUGIN(init, NULL)
