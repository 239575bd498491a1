/* Loads more than twenty bad plugins. Each ends in a status that names its file, the cause and
 * the cure; afterwards the same runtime still multiplies matrices. argv: the folder of the
 * plugins. */
#define _DEFAULT_SOURCE
#include <unistd.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

static const char* folder;
static tw_runtime* runtime;

static const char* file(const char* name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s.so", folder, name);
  return path;
}

static void the_host_works(void) {
  const int64_t dims[] = {2, 2};
  const float a[] = {1, 2, 3, 4};
  tw_graph* g = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(runtime, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2), y = tw_scope_op2(s, "MatMul", x, x);
  OK(tw_scope_finish(s));
  OK(tw_session_create(g, NULL, 0, &session));
  tw_tensor* in = floats(dims, 2, a);
  tw_tensor* out = fetch(session, x, in, y);
  CHECK(out && ((const float*)tw_tensor_data(out))[3] == 22);
  tw_tensor_release(in);
  tw_tensor_release(out);
  tw_session_destroy(session);
  tw_graph_destroy(g);
}

/* Checks that the plugin is refused with this code, that the message has the file, `cause` and
 * `cure`, that nothing of the plugin is registered, and that the host works. */
static void refused(const char* name, uint32_t code, const char* cause, const char* cure) {
  tw_status* s = tw_plugin_load(runtime, file(name));
  const char* text = tw_status_message(s);
  const int good =
      tw_status_code(s) == code && strstr(text, file(name)) && strstr(text, cause) && strstr(text, cure) && !strchr(text, '\n');
  if (!good) printf("  '%s': %s: %s\n", name, tw_status_code_name(tw_status_code(s)), text);
  CHECK(good);
  tw_status_release(s);
  tw_graph* g = NULL;
  OK(tw_graph_create(runtime, &g));
  tw_scope* scope = tw_scope_create(g, NULL);
  tw_scope_op1(scope, "BadOp", tw_scope_placeholder(scope, "x", TW_FLOAT, NULL, 0));
  FAILS(tw_scope_finish(scope), TW_NOT_FOUND, "BadOp");
  tw_graph_destroy(g);
  the_host_works();
}

static tw_status* run_bad_op(const char* device) {
  tw_graph* g = NULL;
  tw_session* session = NULL;
  const int64_t three = 3;
  const float values[] = {1, 2, 3};
  OK(tw_graph_create(runtime, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, &three, 1);
  tw_op* op = tw_scope_begin(s, "BadOp", "bad");
  tw_op_add_input(op, x);
  if (device) tw_op_set_device(op, device);
  const tw_output y = tw_scope_end(s, op);
  OK(tw_scope_finish(s));
  OK(tw_session_create(g, NULL, 0, &session));
  const tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
  tw_tensor *in = floats(&three, 1, values), *out = NULL;
  tw_status* status = tw_session_run(session, &what, &in, NULL, &out);
  if (!status) CHECK(((const float*)tw_tensor_data(out))[2] == 6);
  tw_tensor_release(in);
  tw_tensor_release(out);
  tw_session_destroy(session);
  tw_graph_destroy(g);
  return status;
}

static void unload(void) { OK(tw_plugin_unload(runtime, "org.test.bad")); }

/* ---- Files ---- */

static void copy_with(const char* from, const char* to, long offset, const char* bytes, size_t n) {
  static char contents[1 << 22];
  FILE* in = fopen(file(from), "rb");
  const size_t size = in ? fread(contents, 1, sizeof contents, in) : 0;
  if (in) fclose(in);
  CHECK(size > 0 && size < sizeof contents);
  memcpy(contents + offset, bytes, n);
  FILE* out = fopen(file(to), "wb");
  CHECK(out && fwrite(contents, 1, size, out) == size);
  if (out) fclose(out);
}

static void WithoutAnEntry(void) {
  refused("no_entry", TW_INVALID_ARGUMENT, "it does not export tw_plugin_query_v0", "export the symbol with TW_PLUGIN");
}
static void WithAnUnresolvedSymbol(void) {
  refused("unresolved", TW_FAILED_PRECONDITION, "tw_symbol_that_nobody_has", "what the host table offers");
}
static void LinkedToTheRuntime(void) {
  refused("needs_thalweg", TW_FAILED_PRECONDITION, "libthalweg.so.99", "link it without -lthalweg; a plugin gets everything");
}
static void ThatNeedsAMissingLibrary(void) {
  refused("needs_nobody", TW_FAILED_PRECONDITION, "libnobody.so.99", "install the library that it names, or put it beside the plugin");
}
static void NoSharedLibrary(void) {
  FILE* out = fopen(file("text"), "w");
  CHECK(out && fputs("hello, I am no library, whatever my name says, and long enough to hold a header\n", out) >= 0);
  if (out) fclose(out);
  refused("text", TW_INVALID_ARGUMENT, "no ELF header", "take it out of the folder");
}
static void OfAnotherMachine(void) {
  copy_with("init_fails", "foreign", 18, "\x08\x00", 2); /* e_machine: MIPS */
  refused("foreign", TW_INVALID_ARGUMENT, "it is built for ELF machine 8", "rebuild it for this machine");
}

/* ---- ABI and records ---- */

static void OfALaterEpoch(void) { refused("too_new", TW_FAILED_PRECONDITION, "it needs ABI epoch", "upgrade the runtime"); }
static void OfAnEarlierEpoch(void) { refused("too_old", TW_FAILED_PRECONDITION, "it needs ABI epoch", "rebuild the plugin against"); }
static void WithAShortDescriptor(void) {
  refused("descriptor_short", TW_INVALID_ARGUMENT, "its descriptor has 40 bytes", "fill it with TW_PLUGIN");
}
static void WithARecordOfSizeZero(void) { refused("size_zero", TW_INVALID_ARGUMENT, "op definition: size is 0", "fill it with TW_SIZED"); }
static void WithARecordThatIsTooSmall(void) {
  refused("size_smaller", TW_INVALID_ARGUMENT, "kernel definition: spec is missing", "plugin's author");
}
static void WithARequiredCallbackMissing(void) {
  refused("null_callback", TW_INVALID_ARGUMENT, "kernel 'BadOp(float) @CPU': required entry 'execute' is missing", "plugin's author");
}
/* The good one: of a later runtime's larger record, only the known part is read. */
static void WithALargerRecordItLoads(void) {
  OK(tw_plugin_load(runtime, file("size_larger")));
  OK(run_bad_op(NULL));
  unload();
  the_host_works();
}

/* ---- Twice ---- */

static void TheSameFileByASecondPathDoesNothing(void) {
  char link[4096];
  snprintf(link, sizeof link, "%s", file("link"));
  unlink(link);
  CHECK(symlink(file("size_larger"), link) == 0);
  OK(tw_plugin_load(runtime, file("size_larger")));
  OK(tw_plugin_load(runtime, link));
  copy_with("size_larger", "copy", 0, "\x7f", 1);
  OK(tw_plugin_load(runtime, file("copy")));
  OK(run_bad_op(NULL));
  unload();
  unlink(link);
}
static void AnotherFileWithTheSameId(void) {
  OK(tw_plugin_load(runtime, file("size_larger")));
  FAILS(tw_plugin_load(runtime, file("unloaded_in_use")), TW_ALREADY_EXISTS, "remove one of the two");
  FAILS(tw_plugin_load(runtime, file("same_op")), TW_ALREADY_EXISTS, "op 'BadOp' of plugin 'org.test.same_op'");
  FAILS(tw_plugin_load(runtime, file("same_op")), TW_ALREADY_EXISTS, "org.test.bad");
  OK(run_bad_op(NULL));
  unload();
  the_host_works();
}
static void WithAKernelTwice(void) {
  refused("kernel_twice", TW_ALREADY_EXISTS, "kernel 'BadOp(float) @CPU' is registered twice", "plugin's author");
}

/* ---- Meaning ---- */

static void WithAKernelOfNoOp(void) {
  refused("kernel_of_nothing", TW_NOT_FOUND, "no op 'NoSuchOp' is registered", "load the plugin that defines it first");
}
/* The type costs the op and its kernel, which is all that the plugin has. */
static void WithATypeThatIsNone(void) {
  refused("type", TW_FAILED_PRECONDITION, "this runtime can use nothing of it: op 'BadOp': ",
          "'floaty' is no element type; upgrade the runtime to one that has the element type");
}

/* ---- Init ---- */

static void WhoseInitFails(void) { refused("init_fails", TW_UNAVAILABLE, "its init failed: the licence has ended", "put that right"); }
static void WhoseInitThrows(void) { refused("init_throws", TW_INTERNAL, "its init threw a C++ exception: surprise", "author"); }
static void WhoseInitBlocks(void) {
  refused("init_blocks", TW_DEADLINE_EXCEEDED, "it was not done after 5000 ms in its init", "when its contents have changed");
  FAILS(tw_plugin_load(runtime, file("init_blocks")), TW_ABORTED, "5000 ms"); /* at once, since it is quarantined */
}
static void WhoseInitEndsTheProcess(void) {
  refused("init_exits", TW_ABORTED, "it ended the process with exit status 0 in its init", "repair it");
}
static void WhoFreesTheHostsMemory(void) { refused("frees_the_host", TW_ABORTED, "in its init", "repair it"); }

/* ---- Running ---- */

static void WhoseKernelSetsNoOutput(void) {
  OK(tw_plugin_load(runtime, file("kernel_sets_no_output")));
  FAILS(run_bad_op(NULL), TW_INTERNAL, "BadOp 'bad'");
  unload();
  the_host_works();
}
static void WhoseDeviceAnswersNoMemory(void) {
  OK(tw_plugin_load(runtime, file("allocate_answers_nothing")));
  FAILS(run_bad_op("BAD:0"), TW_INTERNAL, "BAD");
  unload();
  the_host_works();
}
/* The kernel crashes a worker process, not the host. */
static void WhoseKernelCrashesAWorker(void) {
  OK(tw_plugin_load(runtime, file("kernel_crashes")));
  fflush(stdout);
  const pid_t worker = fork();
  if (worker == 0) {
    tw_status_release(run_bad_op(NULL));
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(worker, &status, 0) == worker && WIFSIGNALED(status));
  unload();
  the_host_works();
}
static void UnloadedWithLiveTensors(void) {
  tw_graph* g = NULL;
  tw_session* session = NULL;
  const int64_t three = 3;
  OK(tw_plugin_load(runtime, file("unloaded_in_use")));
  OK(tw_graph_create(runtime, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, &three, 1);
  const tw_output y = tw_scope_op1(s, "BadOp", x);
  OK(tw_scope_finish(s));
  FAILS(tw_plugin_unload(runtime, "org.test.bad"), TW_FAILED_PRECONDITION, "that have its ops: 1");
  OK(tw_session_create(g, NULL, 0, &session));
  const float values[] = {1, 2, 3};
  tw_tensor* in = floats(&three, 1, values);
  tw_tensor* out = fetch(session, x, in, y);
  tw_tensor_release(out);
  tw_tensor_release(in);
  tw_session_destroy(session);
  FAILS(tw_plugin_unload(runtime, "org.test.bad"), TW_FAILED_PRECONDITION, "end them first");
  tw_graph_destroy(g);
  tw_ops* ops = NULL;
  tw_devices* devices = NULL;
  OK(tw_ops_create(runtime, &ops));
  FAILS(tw_plugin_unload(runtime, "org.test.bad"), TW_FAILED_PRECONDITION, "that have its ops: 1");
  tw_ops_destroy(ops);
  OK(tw_devices_create(runtime, &devices));
  FAILS(tw_plugin_unload(runtime, "org.test.bad"), TW_FAILED_PRECONDITION, "kernels or devices: 1");
  tw_devices_destroy(devices);
  unload();
  FAILS(tw_plugin_unload(runtime, "org.test.bad"), TW_NOT_FOUND, "org.test.bad");
  FAILS(tw_plugin_unload(runtime, "org.thalweg.ops"), TW_FAILED_PRECONDITION, "linked into the program");
  the_host_works();
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  folder = argv[1];
  char cache[] = "/tmp/thalweg-bad-plugins-XXXXXX", option[100], remove[100];
  CHECK(mkdtemp(cache) != NULL); /* an older cache would still quarantine the plugin */
  snprintf(option, sizeof option, "plugin_cache=%s", cache);
  snprintf(remove, sizeof remove, "rm -r '%s'", cache);
  const char* options[] = {option};
  OK(tw_runtime_create(options, 1, &runtime));
  const test tests[] = {
      TEST(WithoutAnEntry),
      TEST(WithAnUnresolvedSymbol),
      TEST(LinkedToTheRuntime),
      TEST(ThatNeedsAMissingLibrary),
      TEST(NoSharedLibrary),
      TEST(OfAnotherMachine),
      TEST(OfALaterEpoch),
      TEST(OfAnEarlierEpoch),
      TEST(WithAShortDescriptor),
      TEST(WithARecordOfSizeZero),
      TEST(WithARecordThatIsTooSmall),
      TEST(WithARequiredCallbackMissing),
      TEST(WithALargerRecordItLoads),
      TEST(TheSameFileByASecondPathDoesNothing),
      TEST(AnotherFileWithTheSameId),
      TEST(WithAKernelTwice),
      TEST(WithAKernelOfNoOp),
      TEST(WithATypeThatIsNone),
      TEST(WhoseInitFails),
      TEST(WhoseInitThrows),
      TEST(WhoseInitBlocks),
      TEST(WhoseInitEndsTheProcess),
      TEST(WhoFreesTheHostsMemory),
      TEST(WhoseKernelSetsNoOutput),
      TEST(WhoseDeviceAnswersNoMemory),
      TEST(WhoseKernelCrashesAWorker),
      TEST(UnloadedWithLiveTensors),
  };
  const int failed = run_tests(tests, sizeof tests / sizeof *tests);
  tw_runtime_release(runtime);
  CHECK(system(remove) == 0);
  return failed;
}
