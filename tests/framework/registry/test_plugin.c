/* A minimal plugin, in variants that the tests of this folder select by a macro. GOOD; TWIN,
 * a newer version of GOOD; OTHER, with GOOD's op for other types; RIVAL, with GOOD's
 * op; KERNELS, with a kernel for that op, a device and a graph compiler for the device;
 * NO_ENTRY, a library that is not a plugin; UNRESOLVED, with a symbol that the loading program
 * lacks; INIT_FAILS, CRASH_... and HANG_INIT, as their names say; CLOSE_INIT, which closes all
 * descriptors and hangs; TALK_INIT and FLOOD_INIT, which write to the helper's socket for ever,
 * line by line or as fast as they can; FORK_INIT, GOOD with a child that keeps the helper's
 * descriptors open; FLUSH_OPEN, which flushes denormal numbers to zero when it is opened, as a
 * library linked with -ffast-math does; LATER, GOOD with a definition of a role that no host knows;
 * ROUND_INIT, which sets rounding to upward in init. The variants that crash, hang or fork open the
 * file that TW_TEST_ALIVE names, if any, for writing, and never close it: its reader sees end of file when the last of them is gone. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <fenv.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "thalweg/plugin/plugin.h"

#ifdef TEST_PLUGIN_NO_ENTRY
int tw_test_plugin_without_entry(void);
__attribute__((visibility("default"))) int tw_test_plugin_without_entry(void) { return 1; }
#else

static void say(const tw_host* h, const char* text) { h->run->log(h, 1, text, strlen(text)); }

static tw_status* execute(const tw_frame* f) {
  (void)f;
  return NULL;
}

static tw_status* enumerate(const tw_host* h, void* user, tw_device_list* to) {
  (void)h, (void)user, (void)to;
#ifdef TEST_PLUGIN_KERNELS
  const tw_device_info device = {TW_SIZED(tw_device_info), TW_S("test-0"), TW_S("a device with memory"), NULL, 0, 0};
  return to->add(to, &device);
#else
  return NULL;
#endif
}
static tw_status* allocate(const tw_host* h, void* self, const tw_allocation* a, void** out_memory) {
  (void)self;
  *out_memory = aligned_alloc(a->align, (a->bytes + a->align - 1) / a->align * a->align);
  return *out_memory ? NULL : tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("no memory"));
}
static void release(const tw_host* h, void* self, void* memory, uint64_t bytes) {
  (void)self, (void)bytes;
  free(memory);
  say(h, "released");
}
static tw_status* copy(const tw_host* h, void* self, const tw_copy* c) {
  (void)self, (void)c;
  return tw_fail(h, TW_UNIMPLEMENTED, TW_S("no copies here"));
}

#ifdef TEST_PLUGIN_KERNELS
static tw_status* claim(const tw_host* h, void* user, void* device, const tw_part* part, tw_claims* to) {
  (void)h, (void)user, (void)device, (void)part, (void)to;
  return NULL;
}
static tw_status* compile(const tw_compile_call* c, void** out_state) {
  (void)out_state;
  return tw_fail(c->host, TW_UNIMPLEMENTED, TW_S("nothing was taken"));
}
static void destroy(const tw_host* h, void* state) { (void)h, (void)state; }
#endif

#if defined(TEST_PLUGIN_RIVAL)
#define ID "org.test.rival"
#elif defined(TEST_PLUGIN_KERNELS)
#define ID "org.test.kernels"
#else
#define ID "org.test.plugin"
#endif

#ifdef TEST_PLUGIN_TWIN
#define VERSION "1.10"
#else
#define VERSION "1.2"
#endif

#define HELPERS_DESCRIPTOR 3 /* kProbeDescriptor of plugin_probe.h */
#if defined(TEST_PLUGIN_CLOSE_INIT) || defined(TEST_PLUGIN_TALK_INIT) || defined(TEST_PLUGIN_FLOOD_INIT) || defined(TEST_PLUGIN_FORK_INIT)
static void hold_alive(int at) {
  const char* path = getenv("TW_TEST_ALIVE");
  if (path) fcntl(open(path, O_WRONLY), F_DUPFD, at);
}
#endif

/* Crashes without abort, which a sanitizer turns into an exit. */
#if defined(TEST_PLUGIN_CRASH_OPEN)
__attribute__((constructor)) static void crash_open(void) { kill(getpid(), SIGKILL); }
#endif

#if defined(TEST_PLUGIN_FLUSH_OPEN) && defined(__x86_64__)
__attribute__((constructor)) static void flush_open(void) { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); }
#elif defined(TEST_PLUGIN_FLUSH_OPEN)
__attribute__((constructor)) static void flush_open(void) { fesetround(FE_TOWARDZERO); }
#endif

#ifdef TEST_PLUGIN_UNRESOLVED
void tw_symbol_that_nobody_has(void);
#endif

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
#ifdef TEST_PLUGIN_OTHER
#define TYPE "int32"
#else
#define TYPE "float"
#endif
  tw_op_def op = {TW_SIZED(tw_op_def), TW_S("TestPluginOp(x: " TYPE ") -> (y: " TYPE ")"), NULL, NULL, NULL};
#ifdef TEST_PLUGIN_KERNELS
  tw_kernel_def kernel = {TW_SIZED(tw_kernel_def), TW_S("TestPluginOp(float) @TEST2"), NULL, NULL, execute, NULL, NULL};
  tw_device_def device = {TW_SIZED(tw_device_def), TW_S("TEST2"), NULL, enumerate, allocate, release, copy, NULL};
#else
  tw_kernel_def kernel = {TW_SIZED(tw_kernel_def), TW_S("TestPluginOp(" TYPE ") @TEST"), NULL, NULL, execute, NULL, NULL};
  tw_device_def device = {TW_SIZED(tw_device_def), TW_S("TEST"), NULL, enumerate, allocate, release, copy, NULL};
#endif
#ifdef TEST_PLUGIN_UNRESOLVED
  tw_symbol_that_nobody_has();
#endif
#if defined(TEST_PLUGIN_CRASH_INIT)
  kill(getpid(), SIGKILL);
#elif defined(TEST_PLUGIN_HANG_INIT)
  sleep(60);
#elif defined(TEST_PLUGIN_CLOSE_INIT)
  hold_alive(100);
  for (int fd = 0; fd < 100; ++fd) close(fd);
  for (;;) sleep(60);
#elif defined(TEST_PLUGIN_TALK_INIT)
  const struct timespec pause = {0, 100 * 1000 * 1000};
  hold_alive(100);
  while (write(HELPERS_DESCRIPTOR, "stage init\n", 11) == 11) nanosleep(&pause, NULL);
#elif defined(TEST_PLUGIN_FLOOD_INIT)
  static char block[1 << 16];
  hold_alive(100);
  while (write(HELPERS_DESCRIPTOR, block, sizeof block) > 0) continue;
#elif defined(TEST_PLUGIN_FORK_INIT)
  hold_alive(100);
  if (fork() == 0) {
    for (;;) sleep(60);
  }
#elif defined(TEST_PLUGIN_ROUND_INIT)
  fesetround(FE_UPWARD);
#elif defined(TEST_PLUGIN_INIT_FAILS)
  return tw_fail(h, TW_UNAVAILABLE, TW_S("the driver is asleep"));
#endif
#ifdef TEST_PLUGIN_KERNELS
  (void)op;
  const tw_compiler_def compiler = {TW_SIZED(tw_compiler_def), TW_S("chains"), TW_S("TEST2"), NULL, claim, compile, execute, destroy};
  TW_TRY(tw_add_compiler(r, &compiler));
#else
  TW_TRY(tw_add_op(r, &op));
#endif
#ifdef TEST_PLUGIN_LATER
  TW_TRY(tw_add_role(r, TW_S("teleport"), 1, 0, 0, &op));
#endif
  TW_TRY(tw_add_kernel(r, &kernel));
  TW_TRY(tw_add_device(r, &device));
  *out_instance = (void*)h;
  say(h, "init");
  return NULL;
}
static void shutdown_plugin(const tw_host* h, void* instance) {
#ifdef TEST_PLUGIN_CRASH_SHUTDOWN
  kill(getpid(), SIGKILL);
#endif
  say(h, instance == h ? "shutdown" : "shutdown of something else");
}

#ifdef TEST_PLUGIN_CRASH_QUERY
#define tw_plugin_query_v0 tw_hidden_query
#endif
TW_PLUGIN_WITH(ID, VERSION, init, shutdown_plugin)
#ifdef TEST_PLUGIN_CRASH_QUERY
#undef tw_plugin_query_v0
TW_ENTRY tw_plugin_query_v0(const tw_host_info* host);
TW_ENTRY tw_plugin_query_v0(const tw_host_info* host) {
  kill(getpid(), SIGKILL);
  return tw_hidden_query(host);
}
#endif
#endif
