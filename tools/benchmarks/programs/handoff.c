/* Two loops of one step: one enqueues values into a queue of capacity one, the other dequeues
 * them. Measures the cost of a handed-over value. Times are per value. */
#include <stddef.h>

#include "thalweg_worker.h"

enum { kValues = 20000 };

static tw_output enter(tw_scope* s, const char* frame, size_t bytes, tw_output value, int constant) {
  tw_op* op = tw_scope_begin(s, "Enter", NULL);
  tw_op_add_input(op, value);
  tw_op_set_string(op, "frame_name", frame, bytes);
  tw_op_set_bool(op, "is_constant", (uint8_t)constant);
  return tw_scope_end(s, op);
}

static const tw_operation* with(tw_scope* s, const char* type, tw_output a, tw_output b, const tw_operation* after) {
  tw_op* op = tw_scope_begin(s, type, NULL);
  tw_op_add_input(op, a);
  if (b) tw_op_add_input(op, b);
  if (after) tw_op_add_control(op, after);
  return tw_scope_end_operation(s, op);
}

/* i = 0; while (i < values) { put i, or take something; i += 1 } */
static tw_output add_loop(tw_graph* graph, tw_scope* s, tw_output queue, int puts) {
  const uint32_t type[] = {TW_FLOAT};
  const char* frame = puts ? "put" : "take";
  const size_t bytes = puts ? 3 : 4;
  const tw_output most = enter(s, frame, bytes, tw_scope_scalar(s, TW_FLOAT, kValues), 1);
  const tw_output one = enter(s, frame, bytes, tw_scope_scalar(s, TW_FLOAT, 1), 1), handle = enter(s, frame, bytes, queue, 1);
  const tw_output start = enter(s, frame, bytes, tw_scope_scalar(s, TW_FLOAT, 0), 0), twice[] = {start, start};
  tw_op* merge = tw_scope_begin(s, "Merge", NULL);
  tw_op_add_inputs(merge, twice, 2);
  const tw_operation* here = tw_scope_end_operation(s, merge);
  const tw_output i = tw_operation_output(here, 0);
  const tw_output more = tw_scope_op1(s, "LoopCond", tw_scope_op2(s, "Less", i, most));
  const tw_operation* go = with(s, "Switch", i, more, NULL);
  const tw_operation* goes_on = with(s, "Identity", tw_operation_output(go, 1), 0, NULL);
  const tw_output inside = tw_operation_output(goes_on, 0);
  tw_op* op = tw_scope_begin(s, puts ? "QueueEnqueueV2" : "QueueDequeueV2", NULL);
  tw_op_add_input(op, handle);
  if (puts) tw_op_add_inputs(op, &inside, 1);
  if (!puts) tw_op_set_types(op, "component_types", type, 1);
  if (!puts) tw_op_add_control(op, goes_on);
  const tw_operation* done = tw_scope_end_operation(s, op);
  const tw_operation* next = with(s, "AddV2", inside, one, done);
  check(tw_graph_close_loop(graph, here, 1, with(s, "NextIteration", tw_operation_output(next, 0), 0, NULL)));
  return tw_scope_op1(s, "Exit", tw_operation_output(go, 0));
}

static prepared make_handoff(void) {
  tw_graph* graph;
  const uint32_t type[] = {TW_FLOAT};
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  tw_op* op = tw_scope_begin(s, "FIFOQueueV2", "handoff");
  tw_op_set_types(op, "component_types", type, 1);
  tw_op_set_int(op, "capacity", 1);
  const tw_output queue = tw_scope_end(s, op);
  const tw_output ends[] = {add_loop(graph, s, queue, 1), add_loop(graph, s, queue, 0)};
  const tw_output end = tw_scope_op2(s, "AddV2", ends[0], ends[1]);
  check(tw_scope_finish(s));
  prepared p = {.n_fetches = 1};
  const tw_signature what = {.size = sizeof what, .fetches = &end, .n_fetches = 1};
  check(tw_callable_create(open_session(graph, NULL), &what, &p.callable));
  return p;
}

void answer_handoff(const char* argument) {
  static prepared p;
  if (!p.callable) {
    p = make_handoff();
    tw_tensor* end;
    check(tw_callable_run(p.callable, p.feeds, NULL, &end));
    if (*(const float*)tw_tensor_data(end) != 2 * kValues) worker_fail("the loops answered %g", (double)*(const float*)tw_tensor_data(end));
    tw_tensor_release(end);
  }
  worker_reply_time(run_prepared, &p, worker_number(argument), 1, kValues);
}
