/* Asynchronous runs: callback arguments, back-pressure, a single thread, refusals, and
 * destruction inside a callback. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "check.h"

/* y = x + 1 for one float; slow: the same after a chain of matrix products that takes a while. */
typedef struct program {
  tw_graph* graph;
  tw_session* session;
  tw_output x, y, slow;
} program;

static program new_program(tw_runtime* runtime, const char* const* options, uint32_t n) {
  program p = {0};
  OK(tw_graph_create(runtime, &p.graph));
  tw_scope* s = tw_scope_create(p.graph, NULL);
  const int32_t size[] = {256, 256};
  p.x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  p.y = tw_scope_op2(s, "Add", p.x, tw_scope_scalar(s, TW_FLOAT, 1));
  p.slow = tw_scope_op2(s, "Fill", tw_scope_ints(s, size, 2), p.x);
  for (int i = 0; i < 20; ++i) p.slow = tw_scope_op2(s, "MatMul", p.slow, p.slow);
  OK(tw_scope_finish(s));
  OK(tw_session_create(p.graph, options, n, &p.session));
  return p;
}

static void free_program(program* p) {
  tw_session_destroy(p->session);
  tw_graph_destroy(p->graph);
}

/* The results of callbacks, with a way for a test to wait for them. */
typedef struct outcome {
  pthread_mutex_t mu;
  pthread_cond_t changed;
  int calls;
  uint32_t code;
  float value;
  char message[256];
  pthread_t thread;
  program* to_free;
} outcome;
#define OUTCOME {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}

static void record(void* user, tw_status* status, tw_tensor** fetches) {
  outcome* o = user;
  if (o->to_free) free_program(o->to_free);
  pthread_mutex_lock(&o->mu);
  o->code = tw_status_code(status);
  snprintf(o->message, sizeof o->message, "%s", tw_status_message(status));
  o->value = fetches[0] ? *(const float*)tw_tensor_data(fetches[0]) : NAN;
  o->thread = pthread_self();
  tw_tensor_release(fetches[0]);
  tw_status_release(status);
  ++o->calls;
  pthread_cond_broadcast(&o->changed);
  pthread_mutex_unlock(&o->mu);
}

static void wait_for(outcome* o, int calls) {
  pthread_mutex_lock(&o->mu);
  while (o->calls < calls) pthread_cond_wait(&o->changed, &o->mu);
  pthread_mutex_unlock(&o->mu);
}

static tw_signature one(const tw_output* feed, const tw_output* fetch) {
  const tw_signature what = {.size = sizeof what, .feeds = feed, .n_feeds = 1, .fetches = fetch, .n_fetches = 1};
  return what;
}

static void ACallbackGetsWhatWasFetched(void) {
  program p = new_program(NULL, NULL, 0);
  outcome o = OUTCOME;
  tw_signature what = one(&p.x, &p.y);
  tw_tensor* x = scalar(4);
  OK(tw_session_run_async(p.session, &what, &x, NULL, record, &o));
  tw_tensor_release(x); /* the run has its own reference */
  wait_for(&o, 1);
  CHECK(o.code == TW_OK && o.value == 5);

  tw_callable* callable = NULL;
  OK(tw_callable_create(p.session, &what, &callable));
  x = scalar(6);
  OK(tw_callable_run_async(callable, &x, NULL, record, &o));
  tw_tensor_release(x);
  wait_for(&o, 2);
  CHECK(o.code == TW_OK && o.value == 7);
  tw_callable_destroy(callable);
  free_program(&p);
}

static void FailuresComeToTheCallback(void) {
  program p = new_program(NULL, NULL, 0);
  outcome o = OUTCOME;
  tw_signature what = one(&p.x, &p.slow);
  tw_tensor *wrong = NULL, *x = scalar(1);
  OK(tw_tensor_create_int32(1, &wrong));
  OK(tw_session_run_async(p.session, &what, &wrong, NULL, record, &o));
  wait_for(&o, 1);
  CHECK(o.code == TW_INVALID_ARGUMENT && strstr(o.message, "'x' is int32"));
  tw_step_stats* stats = NULL;
  OK(tw_step_stats_create(&stats));
  const tw_run_options watched = {.size = sizeof watched, .stats = stats}, late = {.size = sizeof late, .timeout_ns = 1, .stats = stats};
  OK(tw_session_run_async(p.session, &what, &x, &watched, record, &o));
  wait_for(&o, 2);
  CHECK(o.code == TW_OK && tw_step_stats_node_count(stats) > 0);
  OK(tw_session_run_async(p.session, &what, &x, &late, record, &o));
  wait_for(&o, 3);
  CHECK(o.code == TW_DEADLINE_EXCEEDED && tw_step_stats_node_count(stats) == 0);
  tw_step_stats_destroy(stats);
  tw_cancel_token* token = NULL;
  OK(tw_cancel_token_create(&token));
  tw_cancel_token_cancel(token);
  const tw_run_options cancelled = {.size = sizeof cancelled, .cancel = token};
  OK(tw_session_run_async(p.session, &what, &x, &cancelled, record, &o));
  wait_for(&o, 4);
  CHECK(o.code == TW_CANCELLED);
  tw_cancel_token_destroy(token);
  tw_tensor_release(wrong);
  tw_tensor_release(x);
  free_program(&p);
}

static void WhatIsRefusedCallsNobody(void) {
  program p = new_program(NULL, NULL, 0);
  outcome o = OUTCOME;
  tw_signature what = one(&p.x, &p.y);
  tw_tensor *x = scalar(1), *none = NULL;
  FAILS(tw_session_run_async(NULL, &what, &x, NULL, record, &o), TW_INVALID_ARGUMENT, "session is NULL");
  FAILS(tw_session_run_async(p.session, NULL, &x, NULL, record, &o), TW_INVALID_ARGUMENT, "what is NULL");
  FAILS(tw_session_run_async(p.session, &what, &x, NULL, NULL, &o), TW_INVALID_ARGUMENT, "done is NULL");
  FAILS(tw_session_run_async(p.session, &what, NULL, NULL, record, &o), TW_INVALID_ARGUMENT, "feeds is NULL");
  FAILS(tw_session_run_async(p.session, &what, &none, NULL, record, &o), TW_INVALID_ARGUMENT, "feed 0 is NULL");
  FAILS(tw_callable_run_async(NULL, &x, NULL, record, &o), TW_INVALID_ARGUMENT, "callable is NULL");
  OK(tw_session_close(p.session));
  FAILS(tw_session_run_async(p.session, &what, &x, NULL, record, &o), TW_FAILED_PRECONDITION, "closed");
  CHECK(o.calls == 0);
  tw_tensor_release(x);
  free_program(&p);
}

static void OneThreadRunsOnTheCaller(void) {
  const char* options[] = {"threads=1"};
  program p = new_program(NULL, options, 1);
  outcome o = OUTCOME;
  tw_signature what = one(&p.x, &p.y);
  tw_tensor* x = scalar(1);
  OK(tw_session_run_async(p.session, &what, &x, NULL, record, &o));
  CHECK(o.calls == 1 && o.value == 2 && pthread_equal(o.thread, pthread_self()));
  tw_tensor_release(x);
  free_program(&p);
}

/* With a limit of one run, the second call waits for the first run: when the call returns, at
 * most one run is in progress. */
static void MoreThanAreAllowedWait(void) {
  const char *options[] = {"max_async_runs=1"}, *threads[] = {"threads=2"};
  tw_runtime* runtime = NULL;
  OK(tw_runtime_create(threads, 1, &runtime));
  program p = new_program(runtime, options, 1);
  outcome o = OUTCOME;
  tw_signature what = one(&p.x, &p.slow);
  tw_tensor* x = scalar(0);
  enum { kRuns = 5 };
  for (int i = 0; i < kRuns; ++i) {
    OK(tw_session_run_async(p.session, &what, &x, NULL, record, &o));
    /* All runs but the last two are over; their callbacks follow at once. */
    wait_for(&o, i - 1);
  }
  wait_for(&o, kRuns);
  CHECK(o.calls == kRuns && o.code == TW_OK && o.value == 0);
  tw_tensor_release(x);
  free_program(&p);
  tw_runtime_release(runtime);
}

/* The callback releases the last references: session, graph and runtime end on the runtime's own
 * thread. */
static void ACallbackMayEndEverything(void) {
  const char* options[] = {"threads=2"};
  tw_runtime* runtime = NULL;
  OK(tw_runtime_create(options, 1, &runtime));
  program p = new_program(runtime, NULL, 0);
  tw_runtime_release(runtime);
  outcome o = OUTCOME;
  o.to_free = &p;
  tw_signature what = one(&p.x, &p.y);
  tw_tensor* x = scalar(1);
  OK(tw_session_run_async(p.session, &what, &x, NULL, record, &o));
  tw_tensor_release(x);
  wait_for(&o, 1);
  CHECK(o.code == TW_OK && o.value == 2);
}

/* Closing a session lets its accepted runs finish, whether they have begun or not. */
static void RunsThatWereAcceptedOutliveTheirSession(void) {
  const char* options[] = {"threads=2"};
  tw_runtime* runtime = NULL;
  OK(tw_runtime_create(options, 1, &runtime));
  for (int i = 0; i < 200; ++i) {
    program p = new_program(runtime, NULL, 0);
    outcome o = OUTCOME;
    tw_signature what = one(&p.x, &p.y);
    tw_tensor* x = scalar(1);
    OK(tw_session_run_async(p.session, &what, &x, NULL, record, &o));
    tw_tensor_release(x);
    free_program(&p);
    wait_for(&o, 1);
    CHECK(o.code == TW_OK && o.value == 2);
  }
  tw_runtime_release(runtime);
}

typedef struct relay {
  program* p;
  outcome* o;
  int left;
} relay;

static void run_again(void* user, tw_status* status, tw_tensor** fetches) {
  relay* r = user;
  if (status || --r->left == 0) {
    record(r->o, status, fetches);
    return;
  }
  tw_signature what = one(&r->p->x, &r->p->y);
  OK(tw_session_run_async(r->p->session, &what, fetches, NULL, run_again, r));
  tw_tensor_release(fetches[0]);
}

/* x, x + 1, x + 2, ...: every callback starts the next run with its result. */
static void ACallbackMayStartTheNextRun(void) {
  const char* options[] = {"max_async_runs=1"};
  program p = new_program(NULL, options, 1);
  outcome o = OUTCOME;
  relay r = {&p, &o, 100};
  tw_signature what = one(&p.x, &p.y);
  tw_tensor* x = scalar(0);
  OK(tw_session_run_async(p.session, &what, &x, NULL, run_again, &r));
  tw_tensor_release(x);
  wait_for(&o, 1);
  CHECK(o.code == TW_OK && o.value == 100);
  free_program(&p);
}

typedef struct chain {
  program* p;
  int left, inside, in_order;
  float last;
} chain;

static void go_on(void* user, tw_status* status, tw_tensor** fetches) {
  chain* c = user;
  OK(status);
  const float value = fetches[0] ? *(const float*)tw_tensor_data(fetches[0]) : NAN;
  c->in_order = c->in_order && c->inside == 0 && value == c->last + 1;
  c->last = value;
  ++c->inside;
  if (--c->left > 0 && c->in_order) {
    tw_signature what = one(&c->p->x, &c->p->y);
    OK(tw_session_run_async(c->p->session, &what, fetches, NULL, go_on, c));
  }
  --c->inside;
  tw_tensor_release(fetches[0]);
}

/* Callbacks never nest, so a chain of any length needs no more stack than one run; all runs are
 * over when the first call returns. */
static void AChainOfRunsOnOneThreadIsNoRecursion(void) {
  enum { kRuns = 100000 };
  const char* options[] = {"threads=1"};
  program p = new_program(NULL, options, 1);
  chain c = {.p = &p, .left = kRuns, .in_order = 1};
  tw_signature what = one(&p.x, &p.y);
  tw_tensor* x = scalar(0);
  OK(tw_session_run_async(p.session, &what, &x, NULL, go_on, &c));
  CHECK(c.left == 0 && c.in_order && c.last == kRuns);
  tw_tensor_release(x);
  free_program(&p);
}

static void AKernelThatThrowsIsAFailureOfTheRun(void) {
  const char* threads[] = {"threads=1", "threads=0"};
  OK(tw_plugin_load(NULL, THROWING_PLUGIN));
  for (int i = 0; i < 2; ++i) {
    program p = new_program(NULL, &threads[i], 1);
    tw_scope* s = tw_scope_create(p.graph, NULL);
    const tw_output bad = tw_scope_op1(s, "Throw", p.x), worse = tw_scope_op1(s, "ThrowWhenMade", p.x);
    OK(tw_scope_finish(s));
    outcome o = OUTCOME;
    tw_signature good = one(&p.x, &p.y), what[] = {one(&p.x, &bad), one(&p.x, &worse)};
    tw_tensor* x = scalar(1);
    int calls = 0;
    for (int k = 0; k < 2; ++k) {
      OK(tw_session_run_async(p.session, &what[k], &x, NULL, record, &o));
      wait_for(&o, ++calls);
      CHECK(o.code == TW_INTERNAL && strstr(o.message, k ? "ThrowWhenMade 'ThrowWhenMade'" : "Throw 'Throw' on CPU:0"));
      CHECK(strstr(o.message, "it was thrown") != NULL);
      OK(tw_session_run_async(p.session, &good, &x, NULL, record, &o));
      wait_for(&o, ++calls);
      CHECK(o.code == TW_OK && o.value == 2);
    }
    tw_tensor_release(x);
    free_program(&p);
  }
}

static double seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The low-priority run begins when one of the runs that use all threads is over, or after a
 * tenth of a second. */
static void RunsOfALowerPriorityArePutOff(void) {
  const char *two[] = {"threads=2"}, *low[] = {"priority=-1"}, *high[] = {"priority=1"};
  tw_runtime* runtime = NULL;
  OK(tw_runtime_create(two, 1, &runtime));
  program first = new_program(runtime, high, 1), second = new_program(runtime, low, 1);
  outcome of_first = OUTCOME, of_second = OUTCOME;
  tw_tensor* x = scalar(0);
  double alone = 1;
  for (int i = 0; i < 4; ++i) {
    const double before = seconds();
    tw_tensor_release(fetch(first.session, first.x, x, first.slow));
    alone = fmin(alone, seconds() - before);
  }
  const tw_signature slow = {.size = sizeof slow, .feeds = &first.x, .fetches = &first.slow, .n_feeds = 1, .n_fetches = 1};
  const tw_signature quick = {.size = sizeof quick, .feeds = &second.x, .fetches = &second.y, .n_feeds = 1, .n_fetches = 1};
  const double before = seconds();
  for (int i = 0; i < 2; ++i) OK(tw_session_run_async(first.session, &slow, &x, NULL, record, &of_first));
  OK(tw_session_run_async(second.session, &quick, &x, NULL, record, &of_second));
  wait_for(&of_second, 1);
  CHECK(seconds() - before > fmin(alone / 4, 0.09)); /* the machine may have become less busy meanwhile */
  wait_for(&of_first, 2);
  tw_tensor_release(x);
  free_program(&first);
  free_program(&second);
  tw_runtime_release(runtime);
}

static int threads_of_process(void) {
  int n = -1;
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) sscanf(line, "Threads: %d", &n);
  if (status) fclose(status);
  return n;
}

/* The results of runs that dequeue an element. */
typedef struct sum {
  pthread_mutex_t mu;
  pthread_cond_t changed;
  int calls, failures;
  double total;
} sum;
static void add_up(void* user, tw_status* status, tw_tensor** fetches) {
  sum* s = user;
  pthread_mutex_lock(&s->mu);
  ++s->calls;
  if (status) ++s->failures;
  if (!status) s->total += *(const float*)tw_tensor_data(fetches[0]);
  tw_tensor_release(fetches[0]);
  tw_status_release(status);
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mu);
}

static void wait_for_sum(sum* s, int calls) {
  pthread_mutex_lock(&s->mu);
  while (s->calls < calls) pthread_cond_wait(&s->changed, &s->mu);
  pthread_mutex_unlock(&s->mu);
}

/* Computes x + 1 in the branch that is taken, so that the plan has control flow. */
static tw_output by_a_branch(tw_scope* s, tw_output x, tw_output more) {
  tw_op* op = tw_scope_begin(s, "Switch", NULL);
  tw_op_add_input(op, more);
  tw_op_add_input(op, tw_scope_op2(s, "Greater", x, tw_scope_scalar(s, TW_FLOAT, 0)));
  const tw_operation* chosen = tw_scope_end_operation(s, op);
  const tw_output both[] = {tw_operation_output(chosen, 0), tw_scope_op1(s, "Identity", tw_operation_output(chosen, 1))};
  op = tw_scope_begin(s, "Merge", NULL);
  tw_op_add_inputs(op, both, 2);
  return tw_scope_end(s, op);
}

static tw_output dequeue(tw_scope* s, tw_output queue) {
  const uint32_t type = TW_FLOAT;
  tw_op* op = tw_scope_begin(s, "QueueDequeueV2", NULL);
  tw_op_add_input(op, queue);
  tw_op_set_types(op, "component_types", &type, 1);
  return tw_scope_end(s, op);
}

/* Returns an element plus 1. */
static tw_output take_here(tw_scope* s, tw_output queue) {
  return tw_scope_op2(s, "AddV2", dequeue(s, queue), tw_scope_scalar(s, TW_FLOAT, 1));
}
static tw_output take_and_branch(tw_scope* s, tw_output queue) {
  const tw_output element = dequeue(s, queue);
  return by_a_branch(s, element, tw_scope_op2(s, "AddV2", element, tw_scope_scalar(s, TW_FLOAT, 1)));
}

/* The same in a function that an If calls, in one that a While calls, and in both. */
static tw_output take_in_an_if(tw_scope* s, tw_output queue) {
  tw_block *then = tw_block_begin(s), *otherwise = tw_block_begin(s);
  const tw_output more = take_here(tw_block_scope(then), queue), none = tw_scope_scalar(tw_block_scope(otherwise), TW_FLOAT, 0);
  tw_output taken = 0;
  tw_block_give(then, &more, 1);
  tw_block_give(otherwise, &none, 1);
  tw_cond(s, NULL, tw_scope_scalar(s, TW_BOOL, 1), then, otherwise, &taken, 1);
  return taken;
}
static tw_output take_in_a_while_by(tw_scope* s, tw_output queue, tw_output (*take)(tw_scope*, tw_output)) {
  tw_block *cond = tw_block_begin(s), *body = tw_block_begin(s);
  tw_scope *asked = tw_block_scope(cond), *run = tw_block_scope(body);
  const tw_output less = tw_scope_op2(asked, "Less", tw_block_argument(cond, TW_FLOAT, NULL, -1), tw_scope_scalar(asked, TW_FLOAT, 1));
  const tw_output next = tw_scope_op2(run, "AddV2", tw_block_argument(body, TW_FLOAT, NULL, -1), take(run, queue));
  tw_block_give(cond, &less, 1);
  tw_block_give(body, &next, 1);
  const tw_output zero = tw_scope_scalar(s, TW_FLOAT, 0);
  tw_output taken = 0;
  tw_while_loop(s, cond, body, &zero, 1, NULL, &taken);
  return taken;
}
static tw_output take_in_a_while(tw_scope* s, tw_output queue) { return take_in_a_while_by(s, queue, take_here); }
static tw_output take_in_an_if_in_a_while(tw_scope* s, tw_output queue) { return take_in_a_while_by(s, queue, take_in_an_if); }

static void runs_wait_at_a_queue(int n, tw_output (*take)(tw_scope*, tw_output)) {
  const char *two[] = {"threads=2"}, *many[] = {"max_async_runs=20000"};
  const uint32_t type = TW_FLOAT;
  tw_runtime* runtime = NULL;
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_runtime_create(two, 1, &runtime));
  OK(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  tw_op* op = tw_scope_begin(s, "FIFOQueueV2", NULL);
  tw_op_set_types(op, "component_types", &type, 1);
  const tw_output queue = tw_scope_end(s, op);
  const tw_output taken = take(s, queue);
  const tw_output values = tw_scope_placeholder(s, "values", TW_FLOAT, NULL, -1);
  op = tw_scope_begin(s, "QueueEnqueueManyV2", NULL);
  tw_op_add_input(op, queue);
  tw_op_add_inputs(op, &values, 1);
  const tw_operation* put = tw_scope_end_operation(s, op);
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, many, 1, &session));

  sum all = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  const tw_signature what = {.size = sizeof what, .fetches = &taken, .n_fetches = 1};
  tw_callable* callable = NULL;
  OK(tw_callable_create(session, &what, &callable));
  const int before = threads_of_process();
  for (int i = 0; i < n; ++i) OK(tw_callable_run_async(callable, NULL, NULL, add_up, &all));
  tw_session_info info = {.size = sizeof info};
  while (info.steps < (uint64_t)n) {
    sched_yield();
    OK(tw_session_report(session, &info));
  }
  CHECK(all.calls == 0);
  CHECK(threads_of_process() <= before + 2); /* threads that start the steps; a waiting step keeps none */

  float* ones = malloc((size_t)n * sizeof *ones);
  for (int i = 0; i < n; ++i) ones[i] = 1;
  const int64_t dims[] = {n};
  tw_tensor* fed = NULL;
  OK(tw_tensor_create_copy(TW_FLOAT, dims, 1, ones, (uint64_t)n * sizeof *ones, &fed));
  free(ones);
  const tw_signature fill = {.size = sizeof fill, .feeds = &values, .n_feeds = 1, .targets = &put, .n_targets = 1};
  OK(tw_session_run(session, &fill, &fed, NULL, NULL));
  wait_for_sum(&all, n);
  CHECK(all.failures == 0 && all.total == 2.0 * n);

  for (int i = 0; i < 100; ++i) OK(tw_callable_run_async(callable, NULL, NULL, add_up, &all));
  OK(tw_session_close(session)); /* ends the waiting runs */
  wait_for_sum(&all, n + 100);
  CHECK(all.failures == 100);
  tw_tensor_release(fed);
  tw_callable_destroy(callable);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
  tw_runtime_release(runtime);
}

static void TenThousandRunsWaitAtAQueueInAProcessOfTwoThreads(void) { runs_wait_at_a_queue(10000, take_here); }
static void SoDoRunsWithControlFlow(void) { runs_wait_at_a_queue(2000, take_and_branch); }
static void SoDoTenThousandThatWaitInsideOfAnIf(void) { runs_wait_at_a_queue(10000, take_in_an_if); }
static void SoDoTenThousandThatWaitInsideOfAWhile(void) { runs_wait_at_a_queue(10000, take_in_a_while); }
static void SoDoThoseThatWaitInsideOfBoth(void) { runs_wait_at_a_queue(1000, take_in_an_if_in_a_while); }

MAIN(TEST(RunsOfALowerPriorityArePutOff), TEST(ACallbackGetsWhatWasFetched), TEST(FailuresComeToTheCallback),
     TEST(WhatIsRefusedCallsNobody), TEST(OneThreadRunsOnTheCaller), TEST(MoreThanAreAllowedWait), TEST(ACallbackMayEndEverything),
     TEST(RunsThatWereAcceptedOutliveTheirSession), TEST(ACallbackMayStartTheNextRun), TEST(AChainOfRunsOnOneThreadIsNoRecursion),
     TEST(AKernelThatThrowsIsAFailureOfTheRun), TEST(TenThousandRunsWaitAtAQueueInAProcessOfTwoThreads), TEST(SoDoRunsWithControlFlow),
     TEST(SoDoTenThousandThatWaitInsideOfAnIf), TEST(SoDoTenThousandThatWaitInsideOfAWhile), TEST(SoDoThoseThatWaitInsideOfBoth))
