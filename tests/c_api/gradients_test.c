/* Gradients through the C API: values, given dys, variables, sparse ones, second derivatives, failures. */
#include "check.h"

static float at(tw_session* session, tw_output x, float value, tw_output y) {
  tw_tensor* t = scalar(value);
  const float result = as_float(fetch(session, x, t, y));
  tw_tensor_release(t);
  return result;
}

static void DerivativesOfDerivativesWork(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  const tw_output y = tw_scope_op2(s, "Mul", tw_scope_op2(s, "Mul", x, x), x);
  tw_gradient first, second;
  tw_scope_gradients(s, y, &x, 1, &first);
  tw_scope_gradients(s, first.values, &x, 1, &second);
  OK(tw_scope_finish(s));
  OK(tw_session_create(graph, NULL, 0, &session));
  CHECK(first.rows == 0 && second.rows == 0);
  CHECK(near(at(session, x, 2, first.values), 12, 1e-6) && near(at(session, x, 2, second.values), 12, 1e-6));
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void GivenDysWeighTheYs(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0), other = tw_scope_placeholder(s, "other", TW_FLOAT, NULL, 0);
  const tw_output ys[] = {tw_scope_op1(s, "Square", x), tw_scope_op1(s, "Neg", x)};
  const tw_output dys[] = {tw_scope_scalar(s, TW_FLOAT, 10), 0};
  OK(tw_scope_finish(s));
  const tw_output xs[] = {x, other};
  tw_gradient gradients[2];
  OK(tw_gradients_add(graph, ys, dys, 2, xs, 2, gradients));
  CHECK(gradients[1].values == 0 && gradients[1].rows == 0);
  OK(tw_session_create(graph, NULL, 0, &session));
  CHECK(near(at(session, x, 3, gradients[0].values), 59, 1e-6));
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

/* y = x * square(x): if the square is treated as a constant, dy/dx is the square. */
static void ValuesMayCountAsConstants(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0), square = tw_scope_op1(s, "Square", x);
  const tw_output y = tw_scope_op2(s, "Mul", x, square);
  OK(tw_scope_finish(s));
  tw_gradient all, until, again, within;
  OK(tw_gradients_add(graph, &y, NULL, 1, &x, 1, &all));
  OK(tw_gradients_add_until(graph, &y, NULL, 1, &x, 1, &square, 1, &until));
  OK(tw_gradients_add_recomputing(graph, &y, NULL, 1, &x, 1, NULL, 0, &again));
  OK(tw_gradients_add_within(graph, &y, NULL, 1, &x, 1, NULL, 0, 0, &within));
  OK(tw_session_create(graph, NULL, 0, &session));
  CHECK(near(at(session, x, 3, all.values), 27, 1e-6) && near(at(session, x, 3, until.values), 9, 1e-6));
  CHECK(near(at(session, x, 3, again.values), 27, 1e-6) && near(at(session, x, 3, within.values), 27, 1e-6));
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void GatheredVariablesHaveSparseGradients(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {4, 2};
  const float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
  tw_tensor* start = floats(dims, 2, values);
  const tw_output table = tw_variable_create(s, "table", tw_scope_constant(s, start));
  const int32_t rows[] = {2, 0, 2};
  tw_op* gather = tw_scope_begin(s, "ResourceGather", NULL);
  tw_op_add_input(gather, table);
  tw_op_add_input(gather, tw_scope_ints(s, rows, 3));
  tw_op_set_type(gather, "dtype", TW_FLOAT);
  const tw_output picked = tw_scope_end(s, gather);
  const int32_t axes[] = {0, 1};
  const tw_output loss = tw_scope_op2(s, "Sum", tw_scope_op1(s, "Square", picked), tw_scope_ints(s, axes, 2));
  tw_gradient g;
  tw_scope_gradients(s, loss, &table, 1, &g);
  const tw_operation* init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  CHECK(g.values != 0 && g.rows != 0);
  const char* options[] = {"container=sparse"};
  OK(tw_session_create(graph, options, 1, &session));
  run(session, init);
  tw_tensor *v = fetch(session, 0, NULL, g.values), *r = fetch(session, 0, NULL, g.rows);
  CHECK(v && tw_tensor_dim(v, 0) == 3 && tw_tensor_dim(v, 1) == 2 && ((const float*)tw_tensor_data(v))[0] == 10);
  CHECK(r && tw_tensor_count(r) == 3 && ((const int32_t*)tw_tensor_data(r))[0] == 2);
  tw_tensor_release(v);
  tw_tensor_release(r);
  tw_tensor_release(start);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

/* Returns true if the operation that gives the value has a name that begins with `prefix`. */
static int begins(const tw_graph* graph, tw_output value, const char* prefix) {
  const tw_operation* op = NULL;
  OK(tw_graph_producer(graph, value, &op, NULL));
  return op && strncmp(tw_operation_name(op), prefix, strlen(prefix)) == 0;
}

static void AddedOperationsHaveThePrefix(void) {
  tw_graph* graph = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0), y = tw_scope_op1(s, "Square", x);
  OK(tw_scope_finish(s));
  tw_gradient g[5];
  const uint32_t before = tw_graph_count(graph);
  OK(tw_gradients_add_named(graph, "layer/dx", &y, NULL, 1, &x, 1, &g[0]));
  for (uint32_t i = before; i < tw_graph_count(graph); ++i) {
    CHECK(strncmp(tw_operation_name(tw_graph_operation(graph, i)), "layer/dx/", 9) == 0);
  }
  OK(tw_gradients_add_named(graph, "layer/dx", &y, NULL, 1, &x, 1, &g[1]));
  OK(tw_gradients_add_named(graph, NULL, &y, NULL, 1, &x, 1, &g[2]));
  OK(tw_gradients_add_named(graph, "", &y, NULL, 1, &x, 1, &g[3]));
  OK(tw_gradients_add(graph, &y, NULL, 1, &x, 1, &g[4]));
  CHECK(begins(graph, g[1].values, "layer/dx/") && begins(graph, g[2].values, "gradients/"));
  CHECK(begins(graph, g[3].values, "gradients_1/") && begins(graph, g[4].values, "gradients_2/"));
  OK(tw_session_create(graph, NULL, 0, &session));
  for (int i = 0; i < 5; ++i) CHECK(near(at(session, x, 3, g[i].values), 6, 1e-6));
  tw_gradient none = {7, 7};
  FAILS(tw_gradients_add_named(graph, "a b", &y, NULL, 1, &x, 1, &none), TW_INVALID_ARGUMENT, "a b/");
  CHECK(none.values == 7 && none.rows == 7);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

static void WhatHasNoGradientIsNamed(void) {
  tw_graph *graph = NULL, *other = NULL;
  OK(tw_graph_create(NULL, &graph));
  OK(tw_graph_create(NULL, &other));
  tw_scope* s = tw_scope_create(graph, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0), i = tw_scope_placeholder(s, "i", TW_INT32, NULL, 0);
  OK(tw_scope_finish(s));
  tw_gradient g = {7, 7};
  FAILS(tw_gradients_add(graph, &i, NULL, 1, &x, 1, &g), TW_INVALID_ARGUMENT, "");
  const tw_output none = 0;
  FAILS(tw_gradients_add(graph, &none, NULL, 1, &x, 1, &g), TW_INVALID_ARGUMENT, "ys[0]");
  FAILS(tw_gradients_add(other, &x, NULL, 1, &x, 1, &g), TW_INVALID_ARGUMENT, "ys[0] is a value of another graph");
  FAILS(tw_gradients_add(graph, &x, &i, 1, &x, 1, &g), TW_INVALID_ARGUMENT, "");
  CHECK(g.values == 7 && g.rows == 7);
  s = tw_scope_create(graph, NULL);
  tw_scope_gradients(s, none, &x, 1, &g);
  CHECK(g.values == 0);
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "ys[0]");
  tw_graph_destroy(graph);
  tw_graph_destroy(other);
}

MAIN(TEST(DerivativesOfDerivativesWork), TEST(GivenDysWeighTheYs), TEST(ValuesMayCountAsConstants),
     TEST(GatheredVariablesHaveSparseGradients), TEST(AddedOperationsHaveThePrefix), TEST(WhatHasNoGradientIsNamed))
