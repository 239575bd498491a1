/* A small host: loads a plugin, and runs one of its kernels and its file system. It is compiled once
 * with the headers of a minor and archived as epochN/hostM, so that later plugins run on a host whose
 * tables really end where that minor ended. Behind each table is a page that nobody may read: a
 * plugin that calls a later entry without TW_HAS dies.
 *
 * usage: host PLUGIN OP [NUMBER...]
 * Prints a line for each fact: "agreed minor M"; "left out: ROLE"; "offers ROLE MAJOR.MINOR: 0";
 * "OP: NUMBER..."; "file: CONTENTS". OP is an op whose kernel for float on CPU takes one input and
 * gives one output of the same shape, the first that the plugin registers; "-" runs no kernel. Exit status: 0 done, 1 the plugin was
 * refused or failed, with the reason, 2 wrong arguments. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/mman.h>

#include "thalweg/plugin/plugin.h"

struct tw_status {
  uint32_t code;
  char text[256];
};

static tw_host host;
static tw_kernel_def kernel;
static tw_file_system_def files;
static const char* op;

static void die(const char* what, const char* which) {
  printf("%s%s%s\n", what, *which ? ": " : "", which);
  exit(1);
}

/* Copies a table to the end of a page; the next page may not be read. */
static void* fenced(const void* table, size_t size) {
  const size_t page = 4096;
  char* p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE) != 0) die("no memory", "");
  return memcpy(p + page - size, table, size);
}

/* ---- status ---- */
static tw_status* make(const tw_host* h, uint32_t code, const char* text, uint64_t len, tw_status* cause) {
  tw_status* s = calloc(1, sizeof *s);
  (void)h;
  free(cause);
  if (!s) die("no memory", "");
  s->code = code;
  memcpy(s->text, text, len < sizeof s->text - 1 ? len : sizeof s->text - 1);
  return s;
}
static uint32_t code_of(const tw_status* s) { return s ? s->code : 0; }
static tw_status* text_of(const tw_status* s, tw_sink* to) { return s ? to->put(to, s->text, strlen(s->text)) : NULL; }
static void release(tw_status* s) { free(s); }
static void want(tw_status* s, const char* what) {
  if (s) die(what, s->text);
}

/* ---- run ---- */
static void complete(const tw_host* h, tw_token t, tw_status* s) { (void)h, (void)t, want(s, "completed"); }
static tw_status* cancelled(const tw_frame* f) { return (void)f, NULL; }
static void parallel(const tw_frame* f, uint64_t n, uint64_t grain, void (*part)(void*, uint64_t, uint64_t), void* arg) {
  (void)f, (void)grain;
  part(arg, 0, n);
}
static uint32_t threads(const tw_frame* f) { return (void)f, 1; }
static void say(const tw_host* h, uint32_t level, const char* text, uint64_t len) {
  (void)h, (void)level, printf("log: %.*s\n", (int)len, text);
}
static int64_t now(const tw_host* h) {
  struct timespec t;
  (void)h;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static const void* query(const tw_host* h, const char* set, uint64_t len, uint32_t version) {
  return (void)h, (void)set, (void)len, (void)version, NULL;
}
static tw_status* setting(const tw_host* h, const char* key, uint64_t len, tw_sink* to) {
  (void)key, (void)len, (void)to;
  return make(h, TW_NOT_FOUND, TW_S("not set"), NULL);
}

/* ---- registrations ---- */
static int has_role(const char* name, uint64_t len, uint32_t major, uint32_t minor) {
  static const struct {
    const char* name;
    uint32_t major, minor;
  } roles[] = {{"op", TW_OP_MAJOR, TW_OP_MINOR},
               {"kernel", TW_KERNEL_MAJOR, TW_KERNEL_MINOR},
               {"resource", TW_RESOURCE_MAJOR, TW_RESOURCE_MINOR},
               {"device", TW_DEVICE_MAJOR, TW_DEVICE_MINOR},
               {"compiler", TW_COMPILER_MAJOR, TW_COMPILER_MINOR},
               {"file_system", TW_FILE_SYSTEM_MAJOR, TW_FILE_SYSTEM_MINOR},
               {"transport", TW_TRANSPORT_MAJOR, TW_TRANSPORT_MINOR},
               {"collective", TW_COLLECTIVE_MAJOR, TW_COLLECTIVE_MINOR},
               {"membership", TW_MEMBERSHIP_MAJOR, TW_MEMBERSHIP_MINOR},
               {"importer", TW_IMPORTER_MAJOR, TW_IMPORTER_MINOR}};
  for (size_t i = 0; i < sizeof roles / sizeof *roles; ++i) {
    if (strlen(roles[i].name) == len && memcmp(roles[i].name, name, len) == 0) return major == roles[i].major && minor <= roles[i].minor;
  }
  return 0;
}
static uint32_t offers(tw_registrar* r, const char* name, uint64_t len, uint32_t major, uint32_t minor) {
  (void)r;
  const int has = has_role(name, len, major, minor);
  printf("offers %.*s %u.%u: %d\n", (int)len, name, major, minor, has);
  return (uint32_t)has;
}
static void copy(void* to, size_t size, const void* from) { /* a definition: cut, or extended by zeros */
  uint32_t given;
  memcpy(&given, from, sizeof given);
  memset(to, 0, size);
  memcpy(to, from, given / 8 * 8 < size ? given / 8 * 8 : size);
}
static tw_status* add(tw_registrar* r, const tw_role* d) {
  const size_t n = strlen(op);
  tw_kernel_def k;
  (void)r;
  if (!has_role(d->name, d->name_len, d->major, d->floor)) {
    printf("left out: %.*s\n", (int)d->name_len, d->name);
  } else if (d->name_len == 6 && memcmp(d->name, "kernel", 6) == 0) {
    copy(&k, sizeof k, d->definition);
    if (!kernel.execute && k.spec_len > n && memcmp(k.spec, op, n) == 0 && (k.spec[n] == '(' || k.spec[n] == ' ')) kernel = k;
  } else if (d->name_len == 11 && memcmp(d->name, "file_system", 11) == 0) {
    copy(&files, sizeof files, d->definition);
  }
  return NULL;
}

/* ---- what it runs ---- */
static void run_kernel(int n, char** numbers) {
  float *x = calloc((size_t)n + 1, sizeof *x), *y = calloc((size_t)n + 1, sizeof *y);
  const int64_t dims[1] = {n};
  tw_view in, out;
  const tw_view *ins[1] = {&in}, *outs[1] = {&out};
  const uint32_t at[2] = {0, 1};
  if (!kernel.execute) die("no kernel", op);
  if (!x || !y) die("no memory", "");
  for (int i = 0; i < n; ++i) x[i] = strtof(numbers[i], NULL);
  memset(&in, 0, sizeof in);
  in.size = sizeof in, in.data = x, in.dims = dims, in.rank = 1, in.dtype = TW_FLOAT, in.count = (uint64_t)n, in.bytes = 4 * (uint64_t)n;
  out = in;
  out.data = y;
  tw_frame f;
  memset(&f, 0, sizeof f);
  f.size = sizeof f, f.host = &host, f.state = kernel.user, f.in = ins, f.out = outs, f.in_at = at, f.out_at = at, f.n_in = f.n_out = 1,
  f.step = 1;
  want(kernel.execute(fenced(&f, sizeof f)), "the kernel failed");
  printf("%s:", op);
  for (int i = 0; i < n; ++i) printf(" %g", y[i]);
  printf("\n");
}
static void run_files(void) {
  char path[80], got[6] = "";
  uint64_t bytes = 0;
  void* file = NULL;
  if (!files.create) return;
  snprintf(path, sizeof path, "%.*s://file", (int)files.scheme_len, files.scheme);
  const tw_file_request r = {TW_SIZED(tw_file_request), path, strlen(path)};
  want(files.create(&host, files.user, &r, &file), "create");
  want(files.append(&host, file, "hello", 5), "append");
  want(files.close(&host, file), "close");
  want(files.open(&host, files.user, &r, &file, &bytes), "open");
  if (bytes != 5) die("the file has another size", "");
  want(files.read(&host, file, 0, got, 5), "read");
  files.release(&host, file);
  printf("file: %s\n", got);
}

int main(int argc, char** argv) {
  static const tw_status_api status = {TW_SIZED(tw_status_api), make, code_of, text_of, release};
  static const tw_run_api run = {TW_SIZED(tw_run_api), complete, cancelled, parallel, threads, say, now};
  static tw_registrar registrar = {TW_SIZED(tw_registrar), add, offers};
  const tw_host_info info = {TW_SIZED(tw_host_info), TW_EPOCH, TW_MINOR, TW_S("the archived host")};
  void *library, *instance = NULL;
  tw_query_fn ask;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc < 3) return fprintf(stderr, "usage: host PLUGIN OP [NUMBER...]\n"), 2;
  op = argv[2];
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) die("cannot load it", dlerror());
  *(void**)&ask = dlsym(library, "tw_plugin_query_v0");
  if (!ask) die("it is no plugin", argv[1]);
  const tw_plugin* p = ask(&info);
  if (p->epoch != TW_EPOCH || p->floor > TW_MINOR || p->floor > p->target) {
    printf("it needs ABI epoch %u, minors %u to %u (%.*s), this host offers epoch %u, minor %u\n", p->epoch, p->floor, p->target,
           (int)p->floor_adds_len, p->floor_adds, TW_EPOCH, TW_MINOR);
    return 1;
  }
  host.size = sizeof host;
  host.epoch = TW_EPOCH;
  host.minor = p->target < TW_MINOR ? p->target : TW_MINOR;
  host.status = fenced(&status, sizeof status);
  host.run = fenced(&run, sizeof run);
  host.query = query;
  host.setting = setting;
  printf("agreed minor %u\n", host.minor);
  want(p->init(&host, fenced(&registrar, sizeof registrar), &instance), "init failed");
  if (strcmp(op, "-") != 0) run_kernel(argc - 3, argv + 3);
  run_files();
  if (p->shutdown) p->shutdown(&host, instance);
  return 0;
}
