/* The cost of branches and loops: 1,000 dependent additions of one element, plain and in each
 * kind of control flow. Times are per addition; tensorflow_worker.py has the same graphs. */
#include <stddef.h>
#include <string.h>

#include "frame.h"
#include "thalweg_worker.h"

enum { kAdditions = 1000, kRounds = 10, kWays = 6 };

static tw_output additions(tw_scope* s, tw_output y, tw_output one, int n) {
  for (int i = 0; i < n; ++i) y = tw_scope_op2(s, "AddV2", y, one);
  return y;
}

static tw_output yes(tw_scope* s, tw_output one) { return tw_scope_op2(s, "Greater", one, tw_scope_scalar(s, TW_FLOAT, 0)); }

static tw_output plain(tw_graph* graph, tw_scope* s, tw_output x, tw_output one) {
  (void)graph;
  return additions(s, x, one, kAdditions);
}

static tw_output in_frames(tw_graph* graph, tw_scope* s, tw_output x, tw_output one) {
  frame f;
  frame_begin(&f, s, "rounds", 10);
  const tw_output most = frame_enter(&f, tw_scope_scalar(s, TW_FLOAT, kRounds)), each = frame_enter(&f, one);
  const tw_output counted = frame_variable(&f, tw_scope_scalar(s, TW_FLOAT, 0));
  frame_variable(&f, x);
  frame_while(&f, tw_scope_op2(s, "Less", counted, most));
  frame_next(&f, 0, tw_scope_op2(s, "AddV2", frame_inside(&f, 0), each));
  frame_next(&f, 1, additions(s, frame_inside(&f, 1), each, kAdditions / kRounds));
  const tw_output end = frame_exit(&f, 1);
  frame_close(&f, graph);
  return end;
}

/* Builds a graph with a loop that the step does not need. */
static tw_output beside(tw_graph* graph, tw_scope* s, tw_output x, tw_output one) {
  in_frames(graph, s, x, one);
  return additions(s, x, one, kAdditions);
}

static tw_output in_switch(tw_graph* graph, tw_scope* s, tw_output x, tw_output one) {
  (void)graph;
  const tw_output pred = yes(s, one), values[] = {x, one};
  tw_output in[2], otherwise = 0;
  for (int k = 0; k < 2; ++k) {
    const tw_output out = tw_scope_op2(s, "Switch", values[k], pred);
    in[k] = tw_scope_output(s, out, 1);
    if (k == 0) otherwise = out;
  }
  const tw_output ends[] = {tw_scope_op1(s, "Neg", otherwise), additions(s, in[0], in[1], kAdditions)};
  tw_op* merge = tw_scope_begin(s, "Merge", NULL);
  tw_op_add_inputs(merge, ends, 2);
  return tw_scope_end(s, merge);
}

static tw_output in_if(tw_graph* graph, tw_scope* s, tw_output x, tw_output one) {
  (void)graph;
  const tw_output pred = yes(s, one);
  tw_block *then = tw_block_begin(s), *otherwise = tw_block_begin(s);
  tw_output y = additions(tw_block_scope(then), x, one, kAdditions);
  tw_block_give(then, &y, 1);
  y = tw_scope_op1(tw_block_scope(otherwise), "Neg", x);
  tw_block_give(otherwise, &y, 1);
  tw_cond(s, NULL, pred, then, otherwise, &y, 1);
  return y;
}

static tw_output in_while(tw_graph* graph, tw_scope* s, tw_output x, tw_output one) {
  (void)graph;
  const tw_output first[] = {tw_scope_scalar(s, TW_FLOAT, 0), x};
  tw_output at[2], last[2];
  tw_block *cond = tw_block_begin(s), *body = tw_block_begin(s);
  tw_block_arguments(cond, first, 2, NULL, at);
  const tw_output more = tw_scope_op2(tw_block_scope(cond), "Less", at[0], tw_scope_scalar(tw_block_scope(cond), TW_FLOAT, kRounds));
  tw_block_give(cond, &more, 1);
  tw_block_arguments(body, first, 2, NULL, at);
  tw_scope* in = tw_block_scope(body);
  const tw_output next[] = {tw_scope_op2(in, "AddV2", at[0], one), additions(in, at[1], one, kAdditions / kRounds)};
  tw_block_give(body, next, 2);
  tw_while_loop(s, cond, body, first, 2, NULL, last);
  return last[1];
}

static const struct {
  const char* name;
  tw_output (*build)(tw_graph* graph, tw_scope* s, tw_output x, tw_output one);
} kAll[kWays] = {{"plain", plain}, {"beside", beside}, {"switch", in_switch}, {"if", in_if}, {"frames", in_frames}, {"while", in_while}};

static prepared make_way(int k) {
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output feeds[] = {tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0), tw_scope_placeholder(s, "one", TW_FLOAT, NULL, 0)};
  const tw_output y = kAll[k].build(graph, s, feeds[0], feeds[1]);
  check(tw_scope_finish(s));
  prepared p = {.n_fetches = 1};
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 2, .fetches = &y, .n_fetches = 1};
  check(tw_callable_create(open_session(graph, NULL), &what, &p.callable));
  const float ones[] = {1};
  for (int i = 0; i < 2; ++i) check(tw_tensor_create_copy(TW_FLOAT, NULL, 0, ones, sizeof ones, &p.feeds[i]));
  tw_tensor* end;
  check(tw_callable_run(p.callable, p.feeds, NULL, &end));
  if (*(const float*)tw_tensor_data(end) != 1 + kAdditions)
    worker_fail("%s answered %g", kAll[k].name, (double)*(const float*)tw_tensor_data(end));
  tw_tensor_release(end);
  return p;
}

/* argument: one of kAll. */
void answer_control_flow(const char* argument) {
  static prepared made[kWays];
  int k = 0;
  while (k < kWays && strcmp(kAll[k].name, argument) != 0) ++k;
  if (k == kWays) worker_fail("no way '%s'", argument);
  if (!made[k].callable) made[k] = make_way(k);
  worker_reply_time(run_prepared, &made[k], 200, 1, kAdditions);
}
