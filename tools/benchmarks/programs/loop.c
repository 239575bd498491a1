/* Loops of the primitives that TensorFlow's v1 functions write: one that only counts, and one whose iterations may run side by side. Times
 * are per iteration. */
#include <stddef.h>

#include "thalweg_worker.h"

enum { kRounds = 100000, kChains = 64, kStages = 8, kSide = 64 };

static int64_t parallel_iterations = 10; /* of the loop that is being made */

static const tw_operation* enter(tw_scope* s, tw_output value, int constant) {
  tw_op* op = tw_scope_begin(s, "Enter", NULL);
  tw_op_add_input(op, value);
  tw_op_set_string(op, "frame_name", "loop", 4);
  tw_op_set_bool(op, "is_constant", (uint8_t)constant);
  tw_op_set_int(op, "parallel_iterations", parallel_iterations);
  return tw_scope_end_operation(s, op);
}

static const tw_operation* merge(tw_scope* s, tw_output first, tw_output later) {
  tw_op* op = tw_scope_begin(s, "Merge", NULL);
  const tw_output inputs[] = {first, later};
  tw_op_add_inputs(op, inputs, 2);
  return tw_scope_end_operation(s, op);
}

static const tw_operation* add(tw_scope* s, const char* type, tw_output a, tw_output b) {
  tw_op* op = tw_scope_begin(s, type, NULL);
  tw_op_add_input(op, a);
  if (b) tw_op_add_input(op, b);
  return tw_scope_end_operation(s, op);
}

static tw_output value(const tw_operation* operation, uint32_t i) { return tw_operation_output(operation, i); }

/* i = 0; while (i < rounds) i += 1; both limits are fed. */
static prepared make_loop(void) {
  parallel_iterations = 10;
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output feeds[] = {tw_scope_placeholder(s, "rounds", TW_FLOAT, NULL, 0), tw_scope_placeholder(s, "one", TW_FLOAT, NULL, 0)};
  const tw_output rounds = value(enter(s, feeds[0], 1), 0), one = value(enter(s, feeds[1], 1), 0);
  const tw_output start = value(enter(s, tw_scope_scalar(s, TW_FLOAT, 0), 0), 0);
  const tw_operation* here = merge(s, start, start);
  const tw_output more = tw_scope_op1(s, "LoopCond", tw_scope_op2(s, "Less", value(here, 0), rounds));
  const tw_operation* go = add(s, "Switch", value(here, 0), more);
  const tw_output sum = tw_scope_op2(s, "AddV2", tw_scope_op1(s, "Identity", value(go, 1)), one);
  const tw_operation* round = add(s, "NextIteration", sum, 0);
  const tw_output end = tw_scope_op1(s, "Exit", value(go, 0));
  check(tw_scope_finish(s));
  check(tw_graph_close_loop(graph, here, 1, round));
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

/* i = 0, sum = 0; while (i < kChains) sum += the sum of i x^kStages, i += 1: only the additions wait for each other. */
static prepared make_chains(void) {
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {kSide, kSide};
  const int32_t axes[] = {0, 1};
  const tw_output feed = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2), zero = tw_scope_scalar(s, TW_FLOAT, 0);
  const tw_output x = value(enter(s, feed, 1), 0), rounds = value(enter(s, tw_scope_scalar(s, TW_FLOAT, kChains), 1), 0);
  const tw_output both = value(enter(s, tw_scope_ints(s, axes, 2), 1), 0), one = value(enter(s, tw_scope_scalar(s, TW_FLOAT, 1), 1), 0);
  const tw_output start[] = {value(enter(s, zero, 0), 0), value(enter(s, zero, 0), 0)};
  const tw_operation *here[2], *go[2], *round[2];
  for (int k = 0; k < 2; ++k) here[k] = merge(s, start[k], start[k]);
  const tw_output more = tw_scope_op1(s, "LoopCond", tw_scope_op2(s, "Less", value(here[0], 0), rounds));
  for (int k = 0; k < 2; ++k) go[k] = add(s, "Switch", value(here[k], 0), more);
  const tw_output i = tw_scope_op1(s, "Identity", value(go[0], 1));
  tw_output y = tw_scope_op2(s, "Mul", x, i);
  for (int k = 1; k < kStages; ++k) y = tw_scope_op2(s, "MatMul", y, x);
  y = tw_scope_op2(s, "AddV2", value(go[1], 1), tw_scope_op2(s, "Sum", y, both));
  round[0] = add(s, "NextIteration", tw_scope_op2(s, "AddV2", i, one), 0);
  round[1] = add(s, "NextIteration", y, 0);
  const tw_output end = tw_scope_op1(s, "Exit", value(go[1], 0));
  check(tw_scope_finish(s));
  for (int k = 0; k < 2; ++k) check(tw_graph_close_loop(graph, here[k], 1, round[k]));
  prepared p = {.n_fetches = 1};
  const tw_signature what = {.size = sizeof what, .feeds = &feed, .n_feeds = 1, .fetches = &end, .n_fetches = 1};
  check(tw_callable_create(open_session(graph, NULL), &what, &p.callable));
  static float ones[kSide * kSide];
  for (int k = 0; k < kSide * kSide; ++k) ones[k] = 1.0f / kSide;
  check(tw_tensor_create_copy(TW_FLOAT, dims, 2, ones, sizeof ones, &p.feeds[0]));
  return p;
}

/* argument: how many iterations at once, 1 to 99. */
void answer_chains(const char* argument) {
  static prepared made[100];
  parallel_iterations = worker_number(argument);
  if (parallel_iterations > 99) worker_fail("at most 99 iterations at once");
  prepared* p = &made[parallel_iterations];
  if (!p->callable) {
    *p = make_chains();
    tw_tensor* end;
    check(tw_callable_run(p->callable, p->feeds, NULL, &end));
    const float sum = *(const float*)tw_tensor_data(end), wanted = (float)kSide * kChains * (kChains - 1) / 2;
    if (sum < 0.999f * wanted || sum > 1.001f * wanted) worker_fail("the loop answered %g, not %g", (double)sum, (double)wanted);
    tw_tensor_release(end);
  }
  worker_reply_time(run_prepared, p, 9, 1, kChains);
}
