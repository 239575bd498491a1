/* Its locks do not exclude other holders. */
#include "toy_files.h"

static tw_status* lock(const tw_host* h, void* user, const char* path, uint64_t len, void** out_lock) {
  (void)h, (void)user, (void)path, (void)len;
  *out_lock = &disk;
  return NULL;
}
static void unlock(const tw_host* h, void* held) { (void)h, (void)held; }

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_file_system_def d = toy_files();
  (void)h, (void)out_instance;
  d.lock_folder_of = lock;
  d.unlock = unlock;
  return tw_add_file_system(r, &d);
}
TOY_PLUGIN(init, NULL)
