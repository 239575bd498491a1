/* Adds ten operations to a graph that a session already runs, and runs a step that needs them.
 * Times both together, for graphs of any size. */
#include <stddef.h>

#include "thalweg_worker.h"

enum { kNew = 10, kSamples = 51, kGraphs = 4 };

typedef struct live {
  int nodes;
  tw_graph* graph;
  tw_session* session;
  tw_output x;
  tw_tensor* one;
} live;

static tw_output chain(tw_scope* s, tw_output y, int n) {
  for (int i = 0; i < n; ++i) y = tw_scope_op1(s, "Neg", y);
  return y;
}

static void run(const live* l, tw_output y) {
  tw_tensor* out;
  const tw_signature what = {.size = sizeof what, .feeds = &l->x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
  check(tw_session_run(l->session, &what, &l->one, NULL, &out));
  if (*(const float*)tw_tensor_data(out) != 1) worker_fail("the chain answered %g", (double)*(const float*)tw_tensor_data(out));
  tw_tensor_release(out);
}

static live* graph_of(int nodes) {
  static live all[kGraphs];
  live* l = all;
  while (l < all + kGraphs && l->nodes && l->nodes != nodes) ++l;
  if (l == all + kGraphs) worker_fail("there are too many graphs");
  if (l->nodes) return l;
  l->nodes = nodes;
  check(tw_graph_create(runtime, &l->graph));
  tw_scope* s = tw_scope_create(l->graph, NULL);
  l->x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  const tw_output y = chain(s, l->x, nodes);
  check(tw_scope_finish(s));
  l->session = open_session(l->graph, NULL);
  check(tw_tensor_create_float(1, &l->one));
  run(l, y);
  return l;
}

/* argument: the number of operations before the extension. */
void answer_extend(const char* argument) {
  const live* l = graph_of(worker_number(argument));
  double times[kSamples];
  for (int i = -3; i < kSamples; ++i) { /* the first three warm up */
    const double began = worker_now_ns();
    tw_scope* s = tw_scope_create(l->graph, NULL);
    const tw_output y = chain(s, l->x, kNew);
    check(tw_scope_finish(s));
    run(l, y);
    if (i >= 0) times[i] = worker_now_ns() - began;
  }
  worker_reply_median(times, kSamples);
}
