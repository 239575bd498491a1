/* Wide graphs: independent nodes, of kernels that take a given time or none. Times are per node. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>

#include "thalweg_worker.h"

enum { kMostSizes = 4 };

/* Makes `nodes` products x x, of x [n, n], without common subexpression elimination: much work
 * on little memory. option: of the session. */
static prepared make_products(int64_t n, int nodes, const char* option) {
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {n, n};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2);
  const tw_operation** all = calloc((size_t)nodes, sizeof *all);
  if (!all) worker_fail("out of memory");
  for (int i = 0; i < nodes; ++i) {
    tw_op* op = tw_scope_begin(s, "MatMul", NULL);
    tw_op_add_input(op, x);
    tw_op_add_input(op, x);
    all[i] = tw_scope_end_operation(s, op);
  }
  const tw_operation* target = tw_scope_group(s, NULL, all, (uint32_t)nodes);
  free(all);
  check(tw_scope_finish(s));
  const char* options[] = {"disable_pass=cse", option};
  tw_session* session;
  check(tw_session_create(graph, options, option ? 2 : 1, &session));
  prepared p = {0};
  const tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .targets = &target, .n_targets = 1};
  check(tw_callable_create(session, &what, &p.callable));
  check(tw_tensor_create(TW_FLOAT, dims, 2, &p.feeds[0]));
  float* data = tw_tensor_mutable_data(p.feeds[0]);
  for (int64_t i = 0; i < n * n; ++i) data[i] = (float)(i % 64) * 0.03f;
  return p;
}

static double ns_per_node(const prepared* p, int nodes) {
  double best = 1e30;
  for (int i = 0; i < 20; ++i) {
    const double begin = worker_now_ns();
    run_prepared((void*)p);
    const double taken = (worker_now_ns() - begin) / nodes;
    if (taken < best) best = taken;
  }
  return best;
}

/* Returns the side of a matrix whose product takes `ns` on one thread; measured once for each
 * `ns`. */
static int64_t side_for(int ns) {
  static int asked[kMostSizes];
  static int64_t answers[kMostSizes];
  int i = 0;
  while (i < kMostSizes && asked[i] && asked[i] != ns) ++i;
  if (i == kMostSizes) worker_fail("too many sizes");
  if (!asked[i]) {
    int64_t n = 4;
    for (; n < 1024; n += 1 + n / 16) {
      const prepared p = make_products(n, 50, "threads=1");
      if (ns_per_node(&p, 50) >= ns) break;
    }
    asked[i] = ns;
    answers[i] = n;
  }
  return answers[i];
}

typedef struct wide {
  prepared one, all; /* one: on one thread; all: on all of the worker's threads */
  int nodes;
} wide;

static const wide* get(const char* argument) {
  static wide made[kMostSizes];
  static int costs[kMostSizes];
  const int ns = worker_number(argument);
  int i = 0;
  while (i < kMostSizes && costs[i] && costs[i] != ns) ++i;
  if (i == kMostSizes) worker_fail("too many sizes");
  if (!costs[i]) {
    const int64_t n = side_for(ns);
    made[i].nodes = ns >= 10000 ? 200 : 1000;
    made[i].one = make_products(n, made[i].nodes, "threads=1");
    made[i].all = make_products(n, made[i].nodes, NULL);
    costs[i] = ns;
  }
  return &made[i];
}

/* argument: nanoseconds per kernel. */
void answer_wide(const char* argument) {
  const wide* w = get(argument);
  worker_reply_time(run_prepared, (void*)&w->all, 30, 1, w->nodes);
}

void answer_wide_one(const char* argument) {
  const wide* w = get(argument);
  worker_reply_time(run_prepared, (void*)&w->one, 30, 1, w->nodes);
}

/* ---- The same after a pause, in which threads go to sleep ---- */

static void reply_after_pauses(const prepared* p, int nodes) {
  enum { kSamples = 20 };
  double times[kSamples];
  for (int i = 0; i < kSamples; ++i) {
    const struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
    const double begin = worker_now_ns();
    run_prepared((void*)p);
    times[i] = (worker_now_ns() - begin) / nodes;
  }
  worker_reply_median(times, kSamples);
}

void answer_wide_idle(const char* argument) {
  const wide* w = get(argument);
  reply_after_pauses(&w->all, w->nodes);
}

void answer_wide_idle_one(const char* argument) {
  const wide* w = get(argument);
  reply_after_pauses(&w->one, w->nodes);
}

/* ---- Nodes that do nothing ---- */

enum { kEmptyNodes = 10000 };

void answer_empty_graph(const char* argument) {
  static prepared p;
  if (!p.callable) {
    tw_graph* graph;
    check(tw_graph_create(runtime, &graph));
    tw_scope* s = tw_scope_create(graph, NULL);
    static const tw_operation* all[kEmptyNodes];
    for (int i = 0; i < kEmptyNodes; ++i) all[i] = tw_scope_end_operation(s, tw_scope_begin(s, "NoOp", NULL));
    const tw_operation* target = tw_scope_group(s, NULL, all, kEmptyNodes);
    check(tw_scope_finish(s));
    const tw_signature what = {.size = sizeof what, .targets = &target, .n_targets = 1};
    check(tw_callable_create(open_session(graph, "disable_pass=cse"), &what, &p.callable));
  }
  worker_reply_time(run_prepared, &p, worker_number(argument), 1, kEmptyNodes);
}
