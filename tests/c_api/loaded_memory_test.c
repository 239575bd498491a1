/* Out of memory in a program that loads the library by dlopen. glibc then allocates the
 * thread-local variables of the library and of the C++ runtime when a thread first uses them; if
 * there is no memory for that, it ends the process. Each limit of the address space has its own
 * process, which uses up its memory: on the thread that loaded the library, before its first
 * use; on a thread that starts after the runtime has run steps; on a thread older than the
 * library. Calls may fail, with RESOURCE_EXHAUSTED once the runtime has run steps; no process
 * may die. Usage: loaded_memory_test [LIMITS [FIRST]]: the number of limits, and the first one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"

enum { kSpread = 8 << 20, kStack = 9 << 20 }; /* bytes over which the limits are spread; the stack of a thread, and more */
enum { kLeft = 3, kNoLibrary = 4, kWrong = 5, kMost = 1 << 20 };

static void* library;
static tw_runtime* runtime;     /* NULL: it is made under the limit */
static tw_graph* graphs[kMost]; /* not on the stack, which cannot grow any more */
static pthread_barrier_t both;

#define FUNCTION(name) __typeof__(&tw_##name) name = (__typeof__(&tw_##name))dlsym(library, "tw_" #name)

static rlim_t addresses(void) {
  long pages = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld", &pages) != 1) _exit(kWrong);
  fclose(f);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void limit(rlim_t more) {
  const rlim_t most = addresses() + more;
  const struct rlimit both_limits = {most, most};
  if (setrlimit(RLIMIT_AS, &both_limits) != 0) _exit(kWrong);
}

/* Returns true for a failure. Once there is a runtime, any failure must be out of memory. */
static int out_of_memory(tw_status* status) {
  FUNCTION(status_code);
  FUNCTION(status_message);
  FUNCTION(status_release);
  if (!status) return 0;
  if (runtime && status_code(status) != TW_RESOURCE_EXHAUSTED) {
    fprintf(stderr, "  %s\n", status_message(status));
    _exit(kWrong);
  }
  status_release(status);
  return 1;
}

/* Runs y = x + x for 20 values in parallel, on all threads of the runtime. */
static void run_steps(tw_runtime* r) {
  FUNCTION(graph_create);
  FUNCTION(graph_destroy);
  FUNCTION(op_create);
  FUNCTION(op_set_type);
  FUNCTION(op_set_shape);
  FUNCTION(op_add_input);
  FUNCTION(op_finish);
  FUNCTION(operation_output);
  FUNCTION(tensor_create_float);
  FUNCTION(tensor_release);
  FUNCTION(session_create);
  FUNCTION(session_run);
  FUNCTION(session_destroy);
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  tw_tensor *one = NULL, *values[20] = {NULL};
  tw_output feed, fetches[20];
  const tw_operation* operation = NULL;
  if (out_of_memory(graph_create(r, &graph))) return;
  tw_op* op = op_create(graph, "Placeholder", "x");
  op_set_type(op, "dtype", TW_FLOAT);
  op_set_shape(op, "shape", NULL, 0);
  int failed = out_of_memory(op_finish(op, &operation));
  feed = operation_output(operation, 0);
  for (int i = 0; i < 20 && !failed; ++i) {
    op = op_create(graph, "Add", NULL);
    op_add_input(op, feed);
    op_add_input(op, feed);
    failed = out_of_memory(op_finish(op, &operation));
    fetches[i] = operation_output(operation, 0);
  }
  failed = failed || out_of_memory(session_create(graph, NULL, 0, &session)) || out_of_memory(tensor_create_float(1, &one));
  const tw_signature what = {sizeof what, 0, &feed, fetches, NULL, 1, 20, 0, 0, NULL, NULL};
  for (int i = 0; i < 3 && !failed; ++i) {
    out_of_memory(session_run(session, &what, &one, NULL, values));
    for (int k = 0; k < 20; ++k) tensor_release(values[k]);
  }
  tensor_release(one);
  session_destroy(session);
  graph_destroy(graph);
}

static tw_runtime* make_runtime(void) {
  FUNCTION(runtime_create);
  const char* options[] = {"threads=2", "disabled_plugins=org.thalweg.opencl"};
  tw_runtime* made = NULL;
  return out_of_memory(runtime_create(options, 2, &made)) ? NULL : made;
}

/* Makes graphs until memory is exhausted; then runs steps; then runs steps after it has freed a
 * tenth of the graphs. */
static void use_up(void) {
  FUNCTION(runtime_release);
  FUNCTION(graph_create);
  FUNCTION(graph_destroy);
  tw_runtime* r = runtime ? runtime : make_runtime();
  if (!r) return;
  int n = 0;
  while (n < kMost && !out_of_memory(graph_create(r, &graphs[n]))) ++n;
  run_steps(r);
  for (int i = 0; i < n; i += 10) {
    graph_destroy(graphs[i]);
    graphs[i] = NULL;
  }
  run_steps(r);
  for (int i = 0; i < n; ++i) graph_destroy(graphs[i]);
  if (!runtime) runtime_release(r);
}

static void* second(void* waits) {
  if (waits) pthread_barrier_wait(&both);
  use_up();
  return NULL;
}

static int one_process(int i, int n) {
  pthread_t thread;
  const int kind = i % 3;
  pthread_barrier_init(&both, NULL, 2);
  if (kind == 2 && pthread_create(&thread, NULL, second, &both) != 0) return kWrong;
  library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) return kNoLibrary;
  if (kind > 0) {
    runtime = make_runtime();
    if (!runtime) return kWrong;
    run_steps(runtime);
  }
  limit((kind == 1 ? kStack : 0) + (rlim_t)i * (kSpread / (rlim_t)n));
  if (kind == 1 && pthread_create(&thread, NULL, second, NULL) != 0) return kWrong;
  if (kind == 0) use_up();
  if (kind == 2) pthread_barrier_wait(&both);
  if (kind > 0) pthread_join(thread, NULL);
  return kLeft;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 300;
  int dead = 0;
  for (int i = argc > 2 ? atoi(argv[2]) : 0; i < n; ++i) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) _exit(one_process(i, n));
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kLeft) continue;
    ++dead;
    printf("limit %d of %d: %s %d\n", i, n, WIFSIGNALED(status) ? "ended by signal" : "left with",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  printf("%d of %d processes died\n", dead, n);
  return dead > 0 || failures > 0;
}
