/* A plugin for hosts of minor 1 that also runs on hosts of minor 0: an op whose kernel reports a
 * counter, and a file system of one file that identifies it. minors_test.py builds it for several
 * targets and floors; with UNGUARDED it does not look whether the host has the entry. */
#include <string.h>

#include "thalweg/plugin/plugin.h"

static tw_status* triple(const tw_frame* f) {
  const float* x = f->in[0]->data;
  float* y = f->out[0]->data;
  for (uint64_t i = 0; i < f->in[0]->count; ++i) y[i] = 3 * x[i];
#ifdef UNGUARDED
  f->host->run->count(f, TW_S("elements"), (int64_t)f->in[0]->count);
#elif THALWEG_TARGET_MINOR >= 1
  if (TW_HAS(f->host->run, count)) f->host->run->count(f, TW_S("elements"), (int64_t)f->in[0]->count);
#endif
  return NULL;
}

static char contents[64];
static uint64_t size;

static tw_status* create(const tw_host* h, void* user, const tw_file_request* r, void** out_file) {
  (void)h, (void)user, (void)r;
  size = 0;
  *out_file = contents;
  return NULL;
}
static tw_status* append(const tw_host* h, void* file, const void* bytes, uint64_t n) {
  if (n > sizeof contents - size) return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("the file is full"));
  memcpy((char*)file + size, bytes, n);
  size += n;
  return NULL;
}
static tw_status* done(const tw_host* h, void* file) { return (void)h, (void)file, NULL; }
static tw_status* open_file(const tw_host* h, void* user, const tw_file_request* r, void** out_file, uint64_t* out_bytes) {
  (void)h, (void)user, (void)r;
  *out_file = contents;
  *out_bytes = size;
  return NULL;
}
static tw_status* read_file(const tw_host* h, void* file, uint64_t offset, void* to, uint64_t n) {
  if (offset > size || n > size - offset) return tw_fail(h, TW_OUT_OF_RANGE, TW_S("the file ends before"));
  memcpy(to, (char*)file + offset, n);
  return NULL;
}
static void release_file(const tw_host* h, void* file) { (void)h, (void)file; }
static tw_status* rename_file(const tw_host* h, void* user, const char* from, uint64_t from_len, const char* to, uint64_t to_len) {
  (void)h, (void)user, (void)from, (void)from_len, (void)to, (void)to_len;
  return NULL;
}
static tw_status* remove_file(const tw_host* h, void* user, const char* path, uint64_t len) {
  (void)h, (void)user, (void)path, (void)len;
  return NULL;
}
static tw_status* list(const tw_host* h, void* user, const char* folder, uint64_t len, tw_sink* to) {
  (void)h, (void)user, (void)folder, (void)len;
  return to->put(to, "file", 5);
}
#if THALWEG_FILE_SYSTEM_TARGET >= 1
static tw_status* identify(const tw_host* h, void* file, tw_sink* to) {
  (void)h, (void)file;
  return to->put(to, "1", 1);
}
#endif

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("TripleOfMinors(x: float[*s]) -> (y: float[*s])"), .gradient = NULL};
  const tw_kernel_def kernel = {TW_SIZED(tw_kernel_def), TW_S("TripleOfMinors(float) @CPU"), .execute = triple};
  tw_file_system_def files = {
      TW_SIZED(tw_file_system_def), TW_S("minors"), .create = create, .append = append, .sync = done, .close = done};
  (void)h, (void)out_instance;
  files.open = open_file;
  files.read = read_file;
  files.release = release_file;
  files.rename = rename_file;
  files.remove = remove_file;
  files.list = list;
#if THALWEG_FILE_SYSTEM_TARGET >= 1
  files.identify = identify;
#endif
  TW_TRY(tw_add_op(r, &op));
  TW_TRY(tw_add_kernel(r, &kernel));
  return tw_add_file_system(r, &files);
}
TW_PLUGIN("org.test.minors", "1.0", init)
