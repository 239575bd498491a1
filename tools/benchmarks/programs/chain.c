/* Measures the cost per node of chains of 10,000 operations, each of which waits for the
 * previous one. Times are per node. */
#include <stddef.h>

#include "thalweg_worker.h"

enum { kNodes = 10000 };

static prepared make_noop_chain(const char* engine) {
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_operation* last = NULL;
  for (int i = 0; i < kNodes; ++i) {
    tw_op* op = tw_scope_begin(s, "NoOp", NULL);
    if (last) tw_op_add_control(op, last);
    last = tw_scope_end_operation(s, op);
  }
  check(tw_scope_finish(s));
  prepared p = {0};
  const tw_signature what = {.size = sizeof what, .targets = &last, .n_targets = 1};
  check(tw_callable_create(open_session(graph, engine), &what, &p.callable));
  return p;
}

void answer_noop_fixed(const char* argument) {
  static prepared p;
  if (!p.callable) p = make_noop_chain("engine=fixed");
  worker_reply_time(run_prepared, &p, worker_number(argument), 1, kNodes);
}

void answer_noop_counted(const char* argument) {
  static prepared p;
  if (!p.callable) p = make_noop_chain("engine=counted");
  worker_reply_time(run_prepared, &p, worker_number(argument), 1, kNodes);
}

/* y = x + one + one + ...; both are fed, so that nothing can be computed in advance. */
static prepared make_add_chain(void) {
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {1};
  const tw_output feeds[] = {tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1), tw_scope_placeholder(s, "one", TW_FLOAT, dims, 1)};
  tw_output y = feeds[0];
  for (int i = 0; i < kNodes; ++i) y = tw_scope_op2(s, "AddV2", y, feeds[1]);
  check(tw_scope_finish(s));
  prepared p = {.n_fetches = 1};
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 2, .fetches = &y, .n_fetches = 1};
  check(tw_callable_create(open_session(graph, NULL), &what, &p.callable));
  const float ones[] = {1};
  for (int i = 0; i < 2; ++i) check(tw_tensor_create_copy(TW_FLOAT, dims, 1, ones, sizeof ones, &p.feeds[i]));
  return p;
}

void answer_add_chain(const char* argument) {
  static prepared p;
  if (!p.callable) {
    p = make_add_chain();
    tw_tensor* y;
    check(tw_callable_run(p.callable, p.feeds, NULL, &y));
    if (*(const float*)tw_tensor_data(y) != 1 + kNodes) worker_fail("the chain answered %g", (double)*(const float*)tw_tensor_data(y));
    tw_tensor_release(y);
  }
  worker_reply_time(run_prepared, &p, worker_number(argument), 1, kNodes);
}
