/* A loop whose iterations pass a value through eight stages, one after the other; only the sum
 * of the results is carried from iteration to iteration. On the CPU a stage is a running sum,
 * which one thread computes; on devices each stage has its own device. Times are per iteration. */
#include <stdio.h>
#include <string.h>

#include "frame.h"
#include "thalweg_worker.h"

enum { kIterations = 32, kStages = 8, kElements = 16384, kOnDevices = 1000 };

typedef struct kind {
  const char* name;
  int devices, in_turn; /* in_turn: an iteration begins when the previous one is over */
} kind;
static const kind kinds[] = {{"cpu", 0, 0}, {"devices", 1, 0}, {"devices_in_turn", 1, 1}};

static tw_output stage(tw_scope* s, int on_devices, int k, tw_output y, tw_output axis) {
  char device[16];
  snprintf(device, sizeof device, "FAKE:%d", k);
  tw_scope_set_device(s, on_devices ? device : "");
  const tw_output out = on_devices ? tw_scope_op1(s, "Neg", y) : tw_scope_op2(s, "Cumsum", y, axis);
  tw_scope_set_device(s, "CPU:0");
  return out;
}

/* y = i x; the product waits for the sum if the iterations go in turn. */
static tw_output begin_of(tw_scope* s, const kind* what, tw_output x, tw_output i, tw_output sum) {
  const tw_operation* before = NULL;
  if (what->in_turn) check(tw_graph_producer(tw_scope_graph(s), sum, &before, NULL));
  tw_op* op = tw_scope_begin(s, "Mul", NULL);
  tw_op_add_input(op, x);
  tw_op_add_input(op, i);
  if (before) tw_op_add_control(op, before);
  return tw_scope_end(s, op);
}

static prepared make_chains(const kind* what, int64_t at_once) {
  tw_graph* graph;
  frame f;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {what->devices ? kOnDevices : kElements};
  const int32_t axis = 0;
  tw_scope_set_device(s, "CPU:0");
  const tw_output feed = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1), zero = tw_scope_scalar(s, TW_FLOAT, 0);
  frame_begin(&f, s, "chains", at_once);
  const tw_output x = frame_enter(&f, feed), most = frame_enter(&f, tw_scope_scalar(s, TW_FLOAT, kIterations));
  const tw_output all = frame_enter(&f, tw_scope_ints(s, &axis, 1)), first = frame_enter(&f, tw_scope_scalar(s, TW_INT32, 0));
  const tw_output one = frame_enter(&f, tw_scope_scalar(s, TW_FLOAT, 1)), counted = frame_variable(&f, zero);
  frame_variable(&f, zero);
  frame_while(&f, tw_scope_op2(s, "Less", counted, most));
  const tw_output i = frame_inside(&f, 0), sum = frame_inside(&f, 1);
  tw_output y = begin_of(s, what, x, i, sum);
  for (int k = 0; k < kStages; ++k) y = stage(s, what->devices, k, y, first);
  frame_next(&f, 0, tw_scope_op2(s, "AddV2", i, one));
  frame_next(&f, 1, tw_scope_op2(s, "AddV2", sum, tw_scope_op2(s, "Sum", y, all)));
  const tw_output end = frame_exit(&f, 1);
  check(tw_scope_finish(s));
  frame_close(&f, graph);
  prepared p = {.n_fetches = 1};
  const tw_signature signature = {.size = sizeof signature, .feeds = &feed, .n_feeds = 1, .fetches = &end, .n_fetches = 1};
  check(tw_callable_create(open_session(graph, NULL), &signature, &p.callable));
  static float ones[kElements];
  for (int k = 0; k < kElements; ++k) ones[k] = 1;
  check(tw_tensor_create_copy(TW_FLOAT, dims, 1, ones, (uint64_t)dims[0] * sizeof *ones, &p.feeds[0]));
  return p;
}

/* The expected result: after eight nested running sums of n ones, the sum is n + 8 over 9. */
static double wanted(const kind* what) {
  double sum = what->devices ? kOnDevices : 1;
  for (int k = 1; k <= 9 && !what->devices; ++k) sum = sum * (kElements + k - 1) / k;
  return sum * kIterations * (kIterations - 1) / 2;
}

/* argument: "cpu|devices|devices_in_turn N"; N: parallel iterations, 1 to 99. */
void answer_chains(const char* argument) {
  static prepared made[sizeof kinds / sizeof *kinds][100];
  char name[32];
  int at_once;
  if (sscanf(argument, "%31s %d", name, &at_once) != 2 || at_once < 1 || at_once > 99) worker_fail("not 'KIND N': %s", argument);
  size_t k = 0;
  while (k < sizeof kinds / sizeof *kinds && strcmp(kinds[k].name, name) != 0) ++k;
  if (k == sizeof kinds / sizeof *kinds) worker_fail("no kind '%s'", name);
  prepared* p = &made[k][at_once];
  if (!p->callable) {
    *p = make_chains(&kinds[k], at_once);
    tw_tensor* end;
    check(tw_callable_run(p->callable, p->feeds, NULL, &end));
    const double sum = (double)*(const float*)tw_tensor_data(end), right = wanted(&kinds[k]);
    if (!(sum > 0.98 * right && sum < 1.02 * right)) worker_fail("the loop answered %g, not %g", sum, right);
    tw_tensor_release(end);
  }
  worker_reply_time(run_prepared, p, kinds[k].devices ? 1 : 9, 1, kIterations);
}
