/* Loads, runs and unloads plugins many times without growth; also in two runtimes at the same
 * time. argv: the folder of bad_plugins_test. THALWEG_TEST_ROUNDS: the number of rounds. */
#include <unistd.h>

#include "check.h"

static const char* folder;

static const char* device_plugin(void) { /* an op, and a device with a kernel for it */
  static char path[4096];
  snprintf(path, sizeof path, "%s/unloaded_in_use.so", folder);
  return path;
}

static tw_runtime* new_runtime(void) {
  tw_runtime* runtime = NULL;
  const char* options[] = {"threads=1"};
  OK(tw_runtime_create(options, 1, &runtime));
  return runtime;
}

static void run_op(tw_runtime* runtime, const char* type, const char* device, float expected) {
  tw_graph* g = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(runtime, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  tw_op* op = tw_scope_begin(s, type, NULL);
  tw_op_add_input(op, x);
  if (device) tw_op_set_device(op, device);
  const tw_output y = tw_scope_end(s, op);
  OK(tw_scope_finish(s));
  OK(tw_session_create(g, NULL, 0, &session));
  tw_tensor* in = scalar(21);
  CHECK(as_float(fetch(session, x, in, y)) == expected);
  tw_tensor_release(in);
  tw_session_destroy(session);
  tw_graph_destroy(g);
}

static long resident_kb(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
  if (file) fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int is_mapped(const char* part) {
  char line[4096];
  int found = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) found |= strstr(line, part) != NULL;
  if (maps) fclose(maps);
  return found;
}

static void LoadsAndUnloadsManyTimesWithoutGrowing(void) {
  const char* rounds = getenv("THALWEG_TEST_ROUNDS");
  const int n = rounds ? atoi(rounds) : 100;
  tw_runtime* runtime = new_runtime();
  long before = 0;
  for (int i = 0; i < n && !failures; ++i) {
    if (i == n / 5) before = resident_kb();
    OK(tw_plugin_load(runtime, device_plugin()));
    OK(tw_plugin_load(runtime, TWICE));
    run_op(runtime, "BadOp", "BAD:0", 42);
    run_op(runtime, "Twice", NULL, 42);
    OK(tw_plugin_unload(runtime, "org.test.bad"));
    OK(tw_plugin_unload(runtime, "org.example.twice"));
    CHECK(!is_mapped("unloaded_in_use.so") && !is_mapped("libtwice.so"));
  }
  const long grown = resident_kb() - before;
  printf("  %d times; resident memory grew by %ld KiB over the last four fifths\n", n, grown);
#ifndef THALWEG_SANITIZED
  CHECK(grown <= 64);
#endif
  tw_runtime_release(runtime);
}

static void TwoRuntimesHaveThePluginEachForItself(void) {
  tw_runtime *a = new_runtime(), *b = new_runtime();
  OK(tw_plugin_load(a, TWICE));
  OK(tw_plugin_load(b, TWICE));
  OK(tw_plugin_load(a, device_plugin()));
  OK(tw_plugin_load(b, device_plugin()));
  run_op(a, "BadOp", "BAD:0", 42);
  run_op(b, "BadOp", "BAD:0", 42);
  OK(tw_plugin_unload(a, "org.example.twice"));
  OK(tw_plugin_unload(a, "org.test.bad"));
  run_op(b, "Twice", NULL, 42);
  run_op(b, "BadOp", "BAD:0", 42);
  tw_runtime_release(b);
  CHECK(!is_mapped("unloaded_in_use.so"));
  run_op(a, "Neg", NULL, -21);
  OK(tw_plugin_load(a, TWICE));
  run_op(a, "Twice", NULL, 42);
  tw_runtime_release(a);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  folder = argv[1];
  const test tests[] = {TEST(LoadsAndUnloadsManyTimesWithoutGrowing), TEST(TwoRuntimesHaveThePluginEachForItself)};
  return run_tests(tests, sizeof tests / sizeof *tests);
}
