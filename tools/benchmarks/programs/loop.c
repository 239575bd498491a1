/* A loop that only counts. Times are per iteration. */
#include <stddef.h>

#include "frame.h"
#include "thalweg_worker.h"

enum { kRounds = 100000 };

/* i = 0; while (i < rounds) i += 1; both limits are fed. */
static prepared make_loop(void) {
  tw_graph* graph;
  frame f;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output feeds[] = {tw_scope_placeholder(s, "rounds", TW_FLOAT, NULL, 0), tw_scope_placeholder(s, "one", TW_FLOAT, NULL, 0)};
  frame_begin(&f, s, "loop", 10);
  const tw_output rounds = frame_enter(&f, feeds[0]), one = frame_enter(&f, feeds[1]);
  frame_while(&f, tw_scope_op2(s, "Less", frame_variable(&f, tw_scope_scalar(s, TW_FLOAT, 0)), rounds));
  frame_next(&f, 0, tw_scope_op2(s, "AddV2", frame_inside(&f, 0), one));
  const tw_output end = frame_exit(&f, 0);
  check(tw_scope_finish(s));
  frame_close(&f, graph);
  prepared p = {.n_fetches = 1};
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 2, .fetches = &end, .n_fetches = 1};
  check(tw_callable_create(open_session(graph, NULL), &what, &p.callable));
  const float numbers[] = {kRounds, 1};
  for (int i = 0; i < 2; ++i) check(tw_tensor_create_copy(TW_FLOAT, NULL, 0, &numbers[i], sizeof numbers[i], &p.feeds[i]));
  return p;
}

void answer_loop(const char* argument) {
  static prepared p;
  if (!p.callable) {
    p = make_loop();
    tw_tensor* end;
    check(tw_callable_run(p.callable, p.feeds, NULL, &end));
    if (*(const float*)tw_tensor_data(end) != kRounds) worker_fail("the loop answered %g", (double)*(const float*)tw_tensor_data(end));
    tw_tensor_release(end);
  }
  worker_reply_time(run_prepared, &p, worker_number(argument), 1, kRounds);
}
