/* Element-wise work on tables of 1,024 columns, fed and not fetched: single additions, products
 * and Relus; a chain of six operations, softmax and layer norm written with primitives, fused or
 * node by node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thalweg_worker.h"

enum { kColumns = 1024 };

static tw_output op1(tw_scope* s, const char* op, tw_output x) { return tw_scope_op1(s, op, x); }
static tw_output op2(tw_scope* s, const char* op, tw_output x, tw_output y) { return tw_scope_op2(s, op, x, y); }
static tw_output number(tw_scope* s, double value) { return tw_scope_scalar(s, TW_FLOAT, value); }

static tw_output of_rows(tw_scope* s, const char* op, tw_output x) {
  tw_op* b = tw_scope_begin(s, op, NULL);
  tw_op_add_input(b, x);
  tw_op_add_input(b, tw_scope_scalar(s, TW_INT32, -1));
  tw_op_set_bool(b, "keep_dims", 1);
  return tw_scope_end(s, b);
}

static tw_output add(tw_scope* s, tw_output x, tw_output y) { return op2(s, "AddV2", x, y); }
static tw_output mul(tw_scope* s, tw_output x, tw_output y) { return op2(s, "Mul", x, y); }
static tw_output relu(tw_scope* s, tw_output x, tw_output y) {
  (void)y;
  return op1(s, "Relu", x);
}
static tw_output chain(tw_scope* s, tw_output x, tw_output y) {
  (void)y;
  tw_output z = op1(s, "Relu", op2(s, "AddV2", op2(s, "Mul", x, number(s, 2)), number(s, 1)));
  return op2(s, "Maximum", op2(s, "Sub", op2(s, "Mul", z, x), number(s, 0.5)), x);
}
static tw_output softmax(tw_scope* s, tw_output x, tw_output y) {
  (void)y;
  const tw_output e = op1(s, "Exp", op2(s, "Sub", x, of_rows(s, "Max", x)));
  return op2(s, "RealDiv", e, of_rows(s, "Sum", e));
}
static tw_output layer_norm(tw_scope* s, tw_output x, tw_output y) {
  (void)y;
  float* ramp = malloc(kColumns * sizeof *ramp);
  for (int i = 0; i < kColumns; ++i) ramp[i] = (float)i / kColumns;
  const int64_t dims[] = {kColumns};
  tw_tensor* t;
  check(tw_tensor_create_copy(TW_FLOAT, dims, 1, ramp, kColumns * sizeof *ramp, &t));
  const tw_output row = tw_scope_constant(s, t);
  tw_tensor_release(t);
  free(ramp);
  const tw_output less = op2(s, "Sub", x, of_rows(s, "Mean", x));
  const tw_output variance = of_rows(s, "Mean", op1(s, "Square", less));
  const tw_output normal = op2(s, "Mul", less, op1(s, "Rsqrt", op2(s, "AddV2", variance, number(s, 1e-5))));
  return op2(s, "AddV2", op2(s, "Mul", normal, row), row);
}

static const struct what {
  const char* name;
  tw_output (*build)(tw_scope* s, tw_output x, tw_output y);
  int two_inputs;
} kWhat[] = {{"add", add, 1},     {"mul", mul, 1},         {"relu", relu, 0},
             {"chain", chain, 0}, {"softmax", softmax, 0}, {"layer_norm", layer_norm, 0}};

static tw_tensor* table(int64_t rows, int seed) {
  const int64_t dims[] = {rows, kColumns};
  tw_tensor* t;
  check(tw_tensor_create(TW_FLOAT, dims, 2, &t));
  float* to = tw_tensor_mutable_data(t);
  for (int64_t i = 0; i < rows * kColumns; ++i) to[i] = (float)((i * 7919 + seed) % 2001) / 1000 - 1;
  return t;
}

/* "NAME ROWS on|off SAMPLES": nanoseconds per step; on: fusion is enabled. */
void answer_elementwise(const char* argument) {
  char name[32], compilers[32];
  long rows;
  int samples;
  if (sscanf(argument, "%31s %ld %15s %d", name, &rows, compilers, &samples) != 4)
    worker_fail("not 'NAME ROWS on|off SAMPLES': %s", argument);
  const struct what* w = kWhat;
  while (w < kWhat + sizeof kWhat / sizeof *kWhat && strcmp(w->name, name) != 0) ++w;
  if (w == kWhat + sizeof kWhat / sizeof *kWhat) worker_fail("nothing is called %s", name);
  char option[64];
  snprintf(option, sizeof option, "compilers=%s", compilers);
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {rows, kColumns};
  const tw_output feeds[] = {tw_scope_placeholder(s, "x", TW_FLOAT, dims, 2), tw_scope_placeholder(s, "y", TW_FLOAT, dims, 2)};
  w->build(s, feeds[0], feeds[1]);
  const tw_operation* last = tw_graph_operation(graph, tw_graph_count(graph) - 1); /* the operation that build returns is added last */
  check(tw_scope_finish(s));
  tw_session* session = open_session(graph, option);
  prepared p = {.feeds = {table(rows, 0), w->two_inputs ? table(rows, 1) : NULL}};
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = w->two_inputs ? 2 : 1, .targets = &last, .n_targets = 1};
  check(tw_callable_create(session, &what, &p.callable));
  worker_reply_time(run_prepared, &p, samples, worker_calls(run_prepared, &p), 1);
  tw_callable_destroy(p.callable);
  tw_tensor_release(p.feeds[0]);
  tw_tensor_release(p.feeds[1]);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}
