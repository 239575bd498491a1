/* Out of memory: runs programs over the whole API repeatedly. In each run another heap call
 * returns NULL, or that call and all later ones, until a run makes fewer calls. Each API call
 * succeeds or returns RESOURCE_EXHAUSTED; nothing crashes, leaks or stays broken. The programs
 * and the heap are in out_of_memory/.
 * Usage: out_of_memory_test [MOST [PROGRAM]]. MOST: failure points for each program and way
 * (default 150; 0: all); PROGRAM: the only one. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"
#include "out_of_memory/heap.h"
#include "out_of_memory/programs.h"

tw_runtime* runtime;
char folder[64];

static const program* running;
static long chosen;
static int lasting;

void unexpected(const char* file, int line, const char* condition) {
  printf("  %s:%d: expected %s\n", file, line, condition);
  ++failures;
}

static void say_where(void) {
  fprintf(stderr, "  %s, heap call %ld%s, made by\n", running->name, chosen, lasting ? " and all later ones" : "");
  heap_say_where();
}

static void crashed(int number) {
  heap_recover();
  fprintf(stderr, "  killed by signal %d\n", number);
  say_where();
  void* frames[40];
  fprintf(stderr, "  at\n");
  backtrace_symbols_fd(frames, backtrace(frames, 40), STDERR_FILENO);
  _exit(1);
}

/* Runs the program once, with call n failing (0: none). Returns its code. out_calls: the number
 * of heap calls; may be NULL. */
static uint32_t once(const program* p, long n, long* out_calls) {
  running = p;
  chosen = n;
  heap_fail(n, lasting);
  tw_status* status = p->run();
  const long calls = heap_recover();
  if (out_calls) *out_calls = calls;
  const uint32_t code = tw_status_code(status);
  if (code != TW_OK && code != TW_RESOURCE_EXHAUSTED) {
    printf("  %s: %s: %s\n", p->name, tw_status_code_name(code), tw_status_message(status));
    ++failures;
    if (n) say_where();
  }
  tw_status_release(status);
  return code;
}

/* Call n fails in three runs; if the heap grew in the last ones, in 16 more runs. Caches stop
 * growing, leaks do not. */
static void one_point(const program* p, long n) {
  enum { MORE = 16 };
  once(p, n, NULL);
  const long before = heap_live();
  once(p, n, NULL);
  const long after = heap_live();
  once(p, n, NULL);
  long again = heap_live();
  if (again > after + p->lost) { /* a thread of the runtime may still free memory */
    usleep(50000);
    again = heap_live();
  }
  if (after <= before || again <= after + p->lost) return;
  for (int i = 0; i < MORE; ++i) once(p, n, NULL);
  const long grown = heap_live() - again;
  if (grown < MORE * 3 / 4 || grown <= p->lost * MORE) return;
  printf("  %s: leaves %ld pieces of memory behind in %d runs\n", p->name, grown, MORE);
  say_where();
  ++failures;
}

static long every_point(const program* p, long most) {
  long total = 0, points = 0;
  once(p, 0, NULL);
  once(p, 1000000000, &total); /* counts the calls of a run without failures */
  const long step = most && total > most ? total / most : 1;
  for (long n = 1; n <= total && failures < 3; n += step, ++points) one_point(p, n);
  CHECK(once(p, 0, NULL) == TW_OK); /* after all failures, the program works */
  return points;
}

/* Runs the programs named `only`, or all; returns the number that fail. */
static int run_programs(const program* p, long most, const char* only) {
  int failed = 0;
  for (; p->name; ++p) {
    if (only && strcmp(only, p->name) != 0) continue;
    for (lasting = 0; lasting < 2; ++lasting) {
      failures = 0;
      const long points = every_point(p, most);
      printf("%s  %s: %ld points, %s\n", failures ? "FAILED" : "passed", p->name, points,
             lasting ? "every later call fails too" : "one call fails");
      fflush(stdout);
      failed += failures > 0;
    }
  }
  return failed;
}

int main(int argc, char** argv) {
  const char* options[] = {"threads=2", "disabled_plugins=org.thalweg.opencl"};
  const program* lists[] = {building_programs, running_programs, eager_programs, training_programs, saving_programs};
  const long most = argc > 1 ? atol(argv[1]) : 150;
  void* frames[4];
  backtrace(frames, 4); /* loads the library that backtrace needs */
  signal(SIGSEGV, crashed);
  signal(SIGABRT, crashed);
  snprintf(folder, sizeof folder, "/dev/shm/thalweg_oom_XXXXXX");
  CHECK(mkdtemp(folder) != NULL);
  OK(tw_runtime_create(options, 2, &runtime));
  int failed = failures > 0;
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; ++i) failed += run_programs(lists[i], most, argc > 2 ? argv[2] : NULL);
  tw_runtime_release(runtime);
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command) != 0) failed = 1;
  printf("%d failures\n", failed);
  return failed > 0;
}
