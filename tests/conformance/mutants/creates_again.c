/* create truncates an existing file. */
#include "toy_files.h"

static tw_status* create(const tw_host* h, void* user, const tw_file_request* r, void** out_file) {
  h->status->release(toy_remove(h, user, r->path, r->path_len));
  return toy_create(h, user, r, out_file);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_file_system_def d = toy_files();
  (void)h, (void)out_instance;
  d.create = create;
  return tw_add_file_system(r, &d);
}
TOY_PLUGIN(init, NULL)
