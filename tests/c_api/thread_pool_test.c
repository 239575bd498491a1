/* A program's own threads under a runtime: a pool of pthreads, one that runs tasks inside
 * schedule, one that runs tasks too late, and one without threads. */
#include <pthread.h>
#include <sched.h>

#include "check.h"

/* A queue, and the threads that empty it until it is closed. */
typedef struct pool {
  pthread_mutex_t mu;
  pthread_cond_t changed;
  struct {
    void (*work)(void* arg);
    void* arg;
  } queue[1024];
  int queued, asked, released, closed, now;
  pthread_t threads[3];
  int n;
} pool;

static void put(void* user, void (*work)(void* arg), void* arg) {
  pool* p = user;
  pthread_mutex_lock(&p->mu);
  ++p->asked;
  if (p->now) {
    pthread_mutex_unlock(&p->mu);
    work(arg);
    return;
  }
  CHECK(p->queued < 1024);
  p->queue[p->queued].work = work;
  p->queue[p->queued++].arg = arg;
  pthread_cond_signal(&p->changed);
  pthread_mutex_unlock(&p->mu);
}

static void* serve(void* arg) {
  pool* p = arg;
  pthread_mutex_lock(&p->mu);
  for (;;) {
    while (p->queued == 0 && !p->closed) pthread_cond_wait(&p->changed, &p->mu);
    if (p->queued == 0) break;
    --p->queued;
    void (*work)(void*) = p->queue[p->queued].work;
    void* what = p->queue[p->queued].arg;
    pthread_mutex_unlock(&p->mu);
    work(what);
    pthread_mutex_lock(&p->mu);
  }
  pthread_mutex_unlock(&p->mu);
  return NULL;
}

static void released(void* user) {
  pool* p = user;
  pthread_mutex_lock(&p->mu);
  ++p->released;
  pthread_mutex_unlock(&p->mu);
}

static void open_pool(pool* p, int n) {
  memset(p, 0, sizeof *p);
  pthread_mutex_init(&p->mu, NULL);
  pthread_cond_init(&p->changed, NULL);
  for (p->n = 0; p->n < n; ++p->n) CHECK(pthread_create(&p->threads[p->n], NULL, serve, p) == 0);
}

static void close_pool(pool* p) {
  pthread_mutex_lock(&p->mu);
  p->closed = 1;
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->mu);
  for (int i = 0; i < p->n; ++i) pthread_join(p->threads[i], NULL);
  if (p->n == 0) serve(p); /* runs the tasks that no thread ran in time */
  pthread_cond_destroy(&p->changed);
  pthread_mutex_destroy(&p->mu);
}

static tw_thread_pool record_of(pool* p, uint32_t threads) {
  const tw_thread_pool record = {.size = sizeof record, .threads = threads, .user = p, .schedule = put, .release = released};
  return record;
}

enum { kSide = 128, kWide = 12 };

/* Computes sums of products of large matrices in parallel: work for many threads, in nodes and
 * inside kernels. Returns the sum. */
static float compute(const tw_thread_pool* threads, int callers_see_it_end) {
  const tw_runtime_config config = {.size = sizeof config, .threads = threads};
  tw_runtime* runtime = NULL;
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_runtime_create_with(&config, &runtime));
  OK(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int32_t size[] = {kSide, kSide}, axes[] = {0, 1};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  tw_output parts[kWide];
  for (int i = 0; i < kWide; ++i) {
    const tw_output m = tw_scope_op2(s, "Fill", tw_scope_ints(s, size, 2), tw_scope_op2(s, "Add", x, tw_scope_scalar(s, TW_FLOAT, i)));
    parts[i] = tw_scope_op2(s, "Sum", tw_scope_op2(s, "MatMul", m, m), tw_scope_ints(s, axes, 2));
  }
  const tw_output sum = tw_scope_op(s, "AddN", parts, kWide);
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  float answer = 0;
  for (int i = 0; i < 10; ++i) {
    tw_tensor* one = scalar(1);
    answer = as_float(fetch(session, x, one, sum));
    tw_tensor_release(one);
  }
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  tw_runtime_release(runtime);
  if (threads && callers_see_it_end) CHECK(((pool*)threads->user)->released == 1);
  return answer;
}

/* Computes the same in exact arithmetic: all partial sums are integers that floats represent, or
 * are rounded in the same order. */
static float expected(void) {
  double sum = 0;
  for (int i = 0; i < kWide; ++i) sum += (double)kSide * kSide * kSide * (1 + i) * (1 + i);
  return (float)sum;
}

static void ThreadsOfTheProgramCompute(void) {
  pool p;
  open_pool(&p, 3);
  const tw_thread_pool record = record_of(&p, 3);
  CHECK(near(compute(&record, 1), expected(), 1e-6));
  CHECK(p.asked > 0 && p.asked < 1024);
  close_pool(&p);
}

static void APoolThatRunsEverythingOnTheSpotIsFine(void) {
  pool p;
  open_pool(&p, 0);
  p.now = 1;
  const tw_thread_pool record = record_of(&p, 2);
  CHECK(near(compute(&record, 1), expected(), 1e-6) && p.asked > 0);
  close_pool(&p);
}

static void APoolThatRunsNothingUntilTheEndHoldsNothingUp(void) {
  pool p;
  open_pool(&p, 0);
  const tw_thread_pool record = record_of(&p, 2);
  CHECK(near(compute(&record, 1), expected(), 1e-6));
  CHECK(p.asked == 2 && p.queued == 2); /* one task per thread, and no more before these ran */
  close_pool(&p);                       /* runs the tasks: the runtime is gone, so they do nothing */
}

static void APoolWithoutThreadsLeavesAllToTheCaller(void) {
  pool p;
  open_pool(&p, 0);
  const tw_thread_pool record = record_of(&p, 0);
  CHECK(near(compute(&record, 1), expected(), 1e-6) && p.asked == 0);
  close_pool(&p);
}

typedef struct waiter {
  pthread_mutex_t mu;
  pthread_cond_t done;
  int calls;
} waiter;

static void count_done(void* user, tw_status* status, tw_tensor** fetches) {
  waiter* w = user;
  OK(status);
  tw_tensor_release(fetches[0]);
  pthread_mutex_lock(&w->mu);
  ++w->calls;
  pthread_cond_signal(&w->done);
  pthread_mutex_unlock(&w->mu);
}

/* The runtime's last reference may be released on the thread of an asynchronous run. */
static void await_release(pool* p) {
  for (int released = 0; !released; sched_yield()) {
    pthread_mutex_lock(&p->mu);
    released = p->released;
    pthread_mutex_unlock(&p->mu);
  }
}

static void RunsWithoutWaitingNeedNoneOfThem(void) {
  pool p;
  open_pool(&p, 0);
  const tw_thread_pool threads = record_of(&p, 2);
  const tw_runtime_config config = {.size = sizeof config, .threads = &threads};
  tw_runtime* runtime = NULL;
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_runtime_create_with(&config, &runtime));
  OK(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output y = tw_scope_op1(s, "Neg", tw_scope_scalar(s, TW_FLOAT, 2));
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  waiter w = {.mu = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
  const tw_signature what = {.size = sizeof what, .fetches = &y, .n_fetches = 1};
  for (int i = 0; i < 8; ++i) OK(tw_session_run_async(session, &what, NULL, NULL, count_done, &w));
  pthread_mutex_lock(&w.mu);
  while (w.calls < 8) pthread_cond_wait(&w.done, &w.mu);
  pthread_mutex_unlock(&w.mu);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  tw_runtime_release(runtime);
  await_release(&p);
  close_pool(&p);
}

static void WrongRecordsAreRefusedAndTheirPoolsNotUsed(void) {
  pool p;
  open_pool(&p, 0);
  tw_runtime* runtime = NULL;
  tw_thread_pool threads = record_of(&p, 2);
  tw_runtime_config config = {.size = sizeof config, .threads = &threads};
  threads.schedule = NULL;
  FAILS(tw_runtime_create_with(&config, &runtime), TW_INVALID_ARGUMENT, "schedule is NULL");
  threads.schedule = put;
  threads.flags = 1;
  FAILS(tw_runtime_create_with(&config, &runtime), TW_INVALID_ARGUMENT, "tw_thread_pool");
  threads.flags = 0;
  config.size = 8;
  FAILS(tw_runtime_create_with(&config, &runtime), TW_INVALID_ARGUMENT, "tw_runtime_config");
  config.size = sizeof config;
  config.n_options = 1;
  FAILS(tw_runtime_create_with(&config, &runtime), TW_INVALID_ARGUMENT, "options is NULL");
  config.n_options = 0;
  config.log_level = 9;
  FAILS(tw_runtime_create_with(&config, &runtime), TW_INVALID_ARGUMENT, "log level 9");
  CHECK(runtime == NULL && p.released == 0 && p.asked == 0);
  close_pool(&p);
}

MAIN(TEST(ThreadsOfTheProgramCompute), TEST(APoolThatRunsEverythingOnTheSpotIsFine), TEST(APoolThatRunsNothingUntilTheEndHoldsNothingUp),
     TEST(APoolWithoutThreadsLeavesAllToTheCaller), TEST(RunsWithoutWaitingNeedNoneOfThem),
     TEST(WrongRecordsAreRefusedAndTheirPoolsNotUsed))
