/* Correct: knows the names of minor 1, of the host table and of the role file_system, and works
 * without them on hosts of minor 0. */
#define THALWEG_TARGET_MINOR 1
#define THALWEG_FLOOR_MINOR 0
#define THALWEG_FILE_SYSTEM_TARGET 1
#include "toy_files.h"

static tw_status* neg(const tw_frame* f) {
  if (TW_HAS(f->host->run, count)) f->host->run->count(f, TW_S("elements"), (int64_t)f->in[0]->count);
  return toy_neg(f);
}

/* The memory of a file stays while the file is open, so its address is no other file's. */
static tw_status* identify(const tw_host* h, void* file, tw_sink* to) {
  (void)h;
  return to->put(to, &file, sizeof file);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  tw_kernel_def k = toy_kernel();
  tw_file_system_def d = toy_files();
  (void)h, (void)out_instance;
  k.execute = neg;
  d.identify = identify;
  TW_TRY(tw_add_file_system(r, &d));
  return toy_register(r, NULL, &k, NULL, NULL);
}
TOY_PLUGIN(init, NULL)
