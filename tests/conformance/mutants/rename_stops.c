/* rename does not replace an existing file. */
#include "toy_files.h"

static tw_status* rename_new(const tw_host* h, void* user, const char* from, uint64_t from_len, const char* to, uint64_t to_len) {
  void* file = NULL;
  uint64_t bytes = 0;
  const tw_file_request request = {TW_SIZED(tw_file_request), to, to_len};
  tw_status* there = toy_open(h, user, &request, &file, &bytes);
  if (there) {
    h->status->release(there);
    return toy_rename(h, user, from, from_len, to, to_len);
  }
  toy_release_file(h, file);
  return tw_fail(h, TW_ALREADY_EXISTS, TW_S("the name is taken"));
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_file_system_def d = toy_files();
  (void)h, (void)out_instance;
  d.rename = rename_new;
  return tw_add_file_system(r, &d);
}
TOY_PLUGIN(init, NULL)
