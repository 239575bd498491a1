/* Heavy use: eight threads that run one session while runs are cancelled at random, and programs
 * that open and close everything repeatedly. Afterwards memory, threads and files are as before.
 * Environment: THALWEG_TEST_STEPS, steps of each thread (default 300); THALWEG_TEST_ROUNDS,
 * openings (default 150). */
#include <dirent.h>
#include <pthread.h>
#include <threads.h>
#include <unistd.h>

#include "check.h"

enum { kThreads = 8, kChain = 40 };

static long size_of(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text ? atol(text) : otherwise;
}

static long entries(const char* path) {
  DIR* folder = opendir(path);
  long n = 0;
  while (folder && readdir(folder)) ++n;
  if (folder) closedir(folder);
  return n;
}
static long threads_now(void) { return entries("/proc/self/task"); }
static void rest(long milliseconds) { thrd_sleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL); }
/* A joined thread may be listed for a moment longer. */
static int threads_become(long n) {
  for (int i = 0; threads_now() != n && i < 5000; ++i) rest(1);
  return threads_now() == n;
}
/* A sanitizer starts its own thread with the program's first one. */
static void* nothing(void* arg) { return arg; }
static long threads_before(void) {
  pthread_t first;
  CHECK(pthread_create(&first, NULL, nothing, NULL) == 0);
  pthread_join(first, NULL);
  rest(10);
  return threads_now();
}
static long files_now(void) { return entries("/proc/self/fd"); }

static long resident_kb(void) {
  FILE* f = fopen("/proc/self/statm", "r");
  long all = 0, resident = 0;
  if (f && fscanf(f, "%ld %ld", &all, &resident) != 2) resident = 0;
  if (f) fclose(f);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* y = x + kChain, by that many additions, pairs of which may run in parallel; `count` adds 1 to
 * a variable that starts at 0. */
typedef struct work {
  tw_runtime* runtime;
  tw_graph* graph;
  tw_session* session;
  tw_output x, y, read;
  const tw_operation *init, *count;
} work;

static work open_work(const char* const* options, uint32_t n) {
  work w = {0};
  const int64_t dims[] = {-1};
  const char* session_options[] = {"engine=counted"};
  OK(tw_runtime_create(options, n, &w.runtime));
  OK(tw_graph_create(w.runtime, &w.graph));
  tw_scope* s = tw_scope_create(w.graph, NULL);
  w.x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1);
  const tw_output one = tw_scope_scalar(s, TW_FLOAT, 1), half = tw_scope_scalar(s, TW_FLOAT, 0.5f);
  tw_output y = w.x;
  for (int i = 0; i < kChain; ++i) { /* y + 1 = (y / 2 + 1/2) + (y / 2 + 1/2) */
    const tw_output h = tw_scope_op2(s, "Mul", y, half);
    y = tw_scope_op2(s, "Add", tw_scope_op2(s, "Add", h, half), tw_scope_op2(s, "Add", half, h));
  }
  w.y = tw_scope_name(s, "y", y);
  const tw_output v = tw_variable_create(s, "v", tw_scope_scalar(s, TW_FLOAT, 0));
  tw_op* add = tw_scope_begin(s, "AssignAddVariableOp", "count");
  tw_op_add_input(add, v);
  tw_op_add_input(add, one);
  w.count = tw_scope_end_operation(s, add);
  w.read = tw_variable_read(s, v);
  w.init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(w.graph, session_options, 1, &w.session));
  run(w.session, w.init);
  return w;
}

static void close_work(work* w) {
  tw_session_destroy(w->session);
  tw_graph_destroy(w->graph);
  tw_runtime_release(w->runtime);
}

/* ---- Eight threads ---- */

typedef struct runner {
  const work* w;
  struct runner* all;
  long steps;
  unsigned seed;
  pthread_mutex_t mu;
  tw_cancel_token* at_work; /* the token that others may cancel; NULL: none. Guarded by mu */
  long done, cancelled, late, wrong, counted;
} runner;

static unsigned next(unsigned* seed) { return *seed = *seed * 1664525u + 1013904223u; }

/* Cancels a run that some thread is about to begin or has begun. */
static void cancel_somebody(runner* r) {
  runner* other = &r->all[next(&r->seed) / 7 % kThreads];
  pthread_mutex_lock(&other->mu);
  tw_cancel_token_cancel(other->at_work);
  pthread_mutex_unlock(&other->mu);
}

/* Does one run, sometimes with a deadline, and with a token that any thread may cancel. */
static void one_step(runner* r, tw_callable* callable) {
  const int64_t n = 1 + next(&r->seed) % 4;
  const float values[] = {1, 2, 3, 4};
  tw_tensor *x = NULL, *y = NULL;
  tw_cancel_token* token = NULL;
  tw_status* s = tw_tensor_create_copy(TW_FLOAT, &n, 1, values, (uint64_t)n * sizeof(float), &x);
  if (!s) s = tw_cancel_token_create(&token);
  tw_run_options options = {.size = sizeof options, .cancel = token};
  if (next(&r->seed) % 16 == 0) options.timeout_ns = 1000 * (int64_t)(next(&r->seed) % 64);
  pthread_mutex_lock(&r->mu);
  r->at_work = token;
  pthread_mutex_unlock(&r->mu);
  if (next(&r->seed) / 5 % 8 == 0) cancel_somebody(r);
  const int counts = next(&r->seed) % 4 == 0;
  const tw_signature what = {
      .size = sizeof what, .feeds = &r->w->x, .n_feeds = 1, .fetches = &r->w->y, .n_fetches = 1, .targets = &r->w->count, .n_targets = 1};
  if (!s) s = counts ? tw_session_run(r->w->session, &what, &x, &options, &y) : tw_callable_run(callable, &x, &options, &y);
  pthread_mutex_lock(&r->mu);
  r->at_work = NULL;
  pthread_mutex_unlock(&r->mu);
  const uint32_t code = tw_status_code(s);
  if (code == TW_OK) {
    ++r->done;
    r->counted += counts;
    for (int64_t i = 0; i < n; ++i) r->wrong += ((const float*)tw_tensor_data(y))[i] != values[i] + kChain;
  } else if (code == TW_CANCELLED) {
    ++r->cancelled;
  } else if (code == TW_DEADLINE_EXCEEDED) {
    ++r->late;
  } else {
    printf("  %s\n", tw_status_message(s));
    ++r->wrong;
  }
  if (code != TW_OK && y) ++r->wrong;
  tw_status_release(s);
  tw_tensor_release(x);
  tw_tensor_release(y);
  tw_cancel_token_destroy(token);
}

static void* run_steps(void* arg) {
  runner* r = arg;
  const tw_signature what = {.size = sizeof what, .feeds = &r->w->x, .n_feeds = 1, .fetches = &r->w->y, .n_fetches = 1};
  tw_callable* callable = NULL;
  tw_status* s = tw_callable_create(r->w->session, &what, &callable);
  r->wrong += s != NULL;
  tw_status_release(s);
  for (long i = 0; i < r->steps && callable; ++i) one_step(r, callable);
  tw_callable_destroy(callable);
  return NULL;
}

static uint64_t memory_in_use(tw_runtime* runtime) {
  tw_devices* devices = NULL;
  uint64_t sum = 0;
  OK(tw_devices_create(runtime, &devices));
  for (uint32_t i = 0; i < tw_devices_count(devices); ++i) {
    uint64_t now = 0;
    OK(tw_devices_memory_use(devices, i, &now, NULL, NULL));
    sum += now;
  }
  tw_devices_destroy(devices);
  return sum;
}

static void RunsThatAreCancelledLeaveNothingBehind(void) {
  const char* options[] = {"threads=4", "disabled_plugins=org.thalweg.opencl"};
  const long steps = size_of("THALWEG_TEST_STEPS", 300), files = files_now(), threads = threads_before();
  work w = open_work(options, 2);
  run(w.session, w.count); /* the variable's memory is allocated from now on */
  const uint64_t before = memory_in_use(w.runtime);
  runner all[kThreads] = {{0}};
  pthread_t thread[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    all[i] = (runner){.w = &w, .all = all, .steps = steps, .seed = (unsigned)i + 1, .mu = PTHREAD_MUTEX_INITIALIZER};
  }
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_create(&thread[i], NULL, run_steps, &all[i]) == 0);
  long done = 0, cancelled = 0, late = 0, counted = 0;
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(thread[i], NULL);
    done += all[i].done;
    cancelled += all[i].cancelled;
    late += all[i].late;
    counted += all[i].counted;
    CHECK(all[i].wrong == 0);
  }
  printf("  %ld steps done, %ld cancelled, %ld too late\n", done, cancelled, late);
  CHECK(done + cancelled + late == kThreads * steps);
  CHECK(done > 0 && cancelled > 0);
  /* An update is never partial, and a run that succeeded made its update. */
  const float value = as_float(fetch(w.session, 0, NULL, w.read));
  CHECK(value >= 1 + (float)counted && value <= 1 + (float)(counted + cancelled + late));
  OK(tw_session_close(w.session));
  tw_session_destroy(w.session);
  w.session = NULL;
  const uint64_t after = memory_in_use(w.runtime);
  if (after > before) printf("  %llu bytes in use before, %llu after\n", (unsigned long long)before, (unsigned long long)after);
  CHECK(after <= before);
  close_work(&w);
  CHECK(files_now() == files);
  CHECK(threads_become(threads));
}

/* ---- Opening and closing ---- */

static void open_use_close(void) {
  const char* options[] = {"threads=2", "disabled_plugins=org.thalweg.opencl"};
  work w = open_work(options, 2);
  const int64_t n = 1;
  const float value = 1;
  tw_tensor* x = floats(&n, 1, &value);
  CHECK(as_float(fetch(w.session, w.x, x, w.y)) == 1 + kChain);
  tw_tensor_release(x);
  close_work(&w);
}

static void WhatIsOpenedAndClosedIsGone(void) {
#ifdef THALWEG_SANITIZED /* a sanitizer keeps about 2 MB of every library that was opened and closed */
  const long rounds = 150, warm = 30;
#else
  const long rounds = size_of("THALWEG_TEST_ROUNDS", 150), warm = rounds / 5 + 1;
#endif
  for (long i = 0; i < warm; ++i) open_use_close();
  const long files = files_now(), threads = threads_now(), kb = resident_kb();
  for (long i = 0; i < rounds && !failures; ++i) open_use_close();
  const long grown = resident_kb() - kb;
  printf("  %ld rounds: %ld KB more\n", rounds, grown);
  CHECK(files_now() == files);
  CHECK(threads_become(threads));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(THALWEG_SANITIZED)
  /* Allocators and page sizes may cause growth of a hundredth of a page per round. Sanitizers
   * keep freed memory. */
  CHECK(grown < 2048 + rounds / 25);
#endif
}

MAIN(TEST(RunsThatAreCancelledLeaveNothingBehind), TEST(WhatIsOpenedAndClosedIsGone))
