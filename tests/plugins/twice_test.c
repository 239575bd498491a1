/* A third-party op, loaded from its file: run, differentiated twice, and trained. */
#include "check.h"

static tw_graph* graph_with_twice(void) {
  tw_graph* g = NULL;
  OK(tw_plugin_load(NULL, TWICE)); /* repeated in every test: a second load has no effect */
  OK(tw_graph_create(NULL, &g));
  return g;
}

static void RunsOnVectorsAndScalars(void) {
  tw_graph* g = graph_with_twice();
  tw_session* session = NULL;
  tw_scope* s = tw_scope_create(g, NULL);
  const int64_t any[] = {-1};
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, any, 1);
  const tw_output y = tw_scope_op1(s, "Twice", tw_scope_op1(s, "Twice", x));
  OK(tw_scope_finish(s));
  OK(tw_session_create(g, NULL, 0, &session));
  for (int64_t n = 0; n < 4; ++n) {
    const float values[] = {1, -2, 0.5f};
    tw_tensor* in = floats(&n, 1, values);
    tw_tensor* out = fetch(session, x, in, y);
    CHECK(out && tw_tensor_count(out) == (uint64_t)n);
    for (int64_t i = 0; out && i < n; ++i) CHECK(((const float*)tw_tensor_data(out))[i] == 4 * values[i]);
    tw_tensor_release(in);
    tw_tensor_release(out);
  }
  tw_session_destroy(session);
  tw_graph_destroy(g);
}

static void HasFirstAndSecondDerivatives(void) {
  tw_graph* g = graph_with_twice();
  tw_session* session = NULL;
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_DOUBLE, NULL, 0);
  const tw_output y = tw_scope_op1(s, "Square", tw_scope_op1(s, "Twice", x)); /* 4 x^2 */
  tw_gradient first, second;
  tw_scope_gradients(s, y, &x, 1, &first);
  tw_scope_gradients(s, first.values, &x, 1, &second);
  OK(tw_scope_finish(s));
  OK(tw_session_create(g, NULL, 0, &session));
  const double three = 3;
  tw_tensor* in = NULL;
  OK(tw_tensor_create_copy(TW_DOUBLE, NULL, 0, &three, sizeof three, &in));
  tw_tensor* d1 = fetch(session, x, in, first.values);
  tw_tensor* d2 = fetch(session, x, in, second.values);
  CHECK(d1 && near(*(const double*)tw_tensor_data(d1), 24, 1e-12));
  CHECK(d2 && near(*(const double*)tw_tensor_data(d2), 8, 1e-12));
  tw_tensor_release(in);
  tw_tensor_release(d1);
  tw_tensor_release(d2);
  tw_session_destroy(session);
  tw_graph_destroy(g);
}

static void TrainsThrough(void) {
  tw_graph* g = graph_with_twice();
  tw_session* session = NULL;
  tw_scope* s = tw_scope_create(g, NULL);
  tw_tensor* start = scalar(5);
  const tw_output w = tw_variable_create(s, "w", tw_scope_constant(s, start));
  tw_tensor_release(start);
  const tw_output twice = tw_scope_op1(s, "Twice", tw_variable_read(s, w));
  const tw_output loss = tw_scope_op1(s, "Square", tw_scope_op2(s, "Sub", twice, tw_scope_scalar(s, TW_FLOAT, 3)));
  tw_gradient gradient;
  tw_scope_gradients(s, loss, &w, 1, &gradient);
  const tw_sgd sgd = {sizeof sgd, 0, tw_scope_scalar(s, TW_FLOAT, 0.05)};
  const tw_operation* step = tw_train_sgd(s, &w, &gradient, 1, &sgd);
  const tw_operation* init = tw_variable_initializer(s, "init");
  const tw_output after = tw_variable_read(s, w);
  OK(tw_scope_finish(s));
  OK(tw_session_create(g, NULL, 0, &session));
  run(session, init);
  for (int i = 0; i < 100; ++i) run(session, step);
  CHECK(near(as_float(fetch(session, 0, NULL, after)), 1.5, 1e-5));
  tw_session_destroy(session);
  tw_graph_destroy(g);
}

static void RefusesTypesThatItsSchemaDoesNotAllow(void) {
  tw_graph* g = graph_with_twice();
  tw_scope* s = tw_scope_create(g, NULL);
  (void)tw_scope_op1(s, "Twice", tw_scope_scalar(s, TW_INT32, 1));
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "int32");
  tw_graph_destroy(g);
}

MAIN(TEST(RunsOnVectorsAndScalars), TEST(HasFirstAndSecondDerivatives), TEST(TrainsThrough), TEST(RefusesTypesThatItsSchemaDoesNotAllow))
