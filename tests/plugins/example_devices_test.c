/* The devices of plugins/examples train a net of two layers to the same weights as the CPU: ops
 * for which a device has kernels run there, all others fall back. */
#include "check.h"

enum { ROWS = 16, IN = 4, HIDDEN = 8 };

static tw_output on(tw_scope* s, const char* where, const char* type, tw_output a, tw_output b) {
  tw_op* op = tw_scope_begin(s, type, NULL);
  tw_op_add_input(op, a);
  if (b) tw_op_add_input(op, b);
  tw_op_set_device(op, where);
  return tw_scope_end(s, op);
}

static tw_output weights(tw_scope* s, const char* name, int64_t rows, int64_t columns, double phase) {
  float values[IN * HIDDEN];
  const int64_t dims[] = {rows, columns};
  for (int64_t i = 0; i < rows * columns; ++i) values[i] = (float)(cos(3 * (double)i + phase) / 2);
  tw_tensor* start = floats(dims, 2, values);
  const tw_output handle = tw_variable_create(s, name, tw_scope_constant(s, start));
  tw_tensor_release(start);
  return handle;
}

/* Returns the number of nodes of the plan that run on `where`. */
static int nodes_on(tw_session* session, const tw_signature* what, const char* where) {
  tw_callable* callable = NULL;
  tw_buffer* json = NULL;
  char sought[64];
  int n = 0;
  snprintf(sought, sizeof sought, "device:%s:0\"", where);
  OK(tw_callable_create(session, what, &callable));
  OK(tw_callable_plan_json(callable, NULL, &json));
  for (const char* p = json ? tw_buffer_data(json) : ""; (p = strstr(p, sought)); ++p) ++n;
  tw_buffer_release(json);
  tw_callable_destroy(callable);
  return n;
}

/* Returns the loss after 60 steps. */
static double trained_on(const char* where) {
  char device[64] = "";
  if (where) snprintf(device, sizeof device, "%s:0", where);
  tw_graph* g = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const int64_t x_dims[] = {ROWS, IN}, y_dims[] = {ROWS, 1};
  const tw_output fed[] = {tw_scope_placeholder(s, "x", TW_FLOAT, x_dims, 2), tw_scope_placeholder(s, "target", TW_FLOAT, y_dims, 2)};
  const tw_output w[] = {weights(s, "w1", IN, HIDDEN, 0), weights(s, "w2", HIDDEN, 1, 1)};
  const tw_output hidden = on(s, device, "Relu", on(s, device, "MatMul", fed[0], tw_variable_read(s, w[0])), 0);
  const tw_output error = on(s, device, "Sub", on(s, device, "MatMul", hidden, tw_variable_read(s, w[1])), fed[1]);
  const int32_t axes[] = {0, 1};
  const tw_output loss = tw_scope_op2(s, "Mean", on(s, device, "Square", error, 0), tw_scope_ints(s, axes, 2));
  tw_gradient gradients[2];
  tw_scope_gradients(s, loss, w, 2, gradients);
  const tw_sgd sgd = {sizeof sgd, 0, tw_scope_scalar(s, TW_FLOAT, 0.05)};
  const tw_operation* step = tw_train_sgd(s, w, gradients, 2, &sgd);
  const tw_operation* start = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  const char* options[] = {"fallback=allow"};
  OK(tw_session_create(g, options, 1, &session));
  run(session, start);

  float x[ROWS * IN], target[ROWS];
  for (int i = 0; i < ROWS * IN; ++i) x[i] = (float)sin(i);
  for (int i = 0; i < ROWS; ++i) target[i] = 2 * x[i * IN] - x[i * IN + 1];
  tw_tensor *values[] = {floats(x_dims, 2, x), floats(y_dims, 2, target)}, *out = NULL;
  const tw_signature training = {
      .size = sizeof training, .feeds = fed, .n_feeds = 2, .fetches = &loss, .n_fetches = 1, .targets = &step, .n_targets = 1};
  if (where) CHECK(nodes_on(session, &training, where) >= 3);
  double first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    OK(tw_session_run(session, &training, values, NULL, &out));
    last = (double)as_float(out);
    if (i == 0) first = last;
  }
  CHECK(last < first / 10);
  tw_tensor_release(values[0]);
  tw_tensor_release(values[1]);
  tw_session_destroy(session);
  tw_graph_destroy(g);
  return last;
}

static void ADeviceOfFortyLinesNegates(void) {
  OK(tw_plugin_load(NULL, EXAMPLES "/libtoy_device.so"));
  tw_graph* g = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  const tw_output y = on(s, "TOY:0", "Neg", x, 0);
  OK(tw_scope_finish(s));
  OK(tw_session_create(g, NULL, 0, &session));
  tw_tensor* three = scalar(3);
  CHECK(near((double)as_float(fetch(session, x, three, y)), -3, 0));
  tw_tensor_release(three);
  tw_session_destroy(session);
  tw_graph_destroy(g);
}

static void ADeviceOfSixtyLinesTrains(void) {
  OK(tw_plugin_load(NULL, EXAMPLES "/libtrain_device.so"));
  CHECK(near(trained_on("TRAIN"), trained_on(NULL), 1e-4));
}

static void AnAsynchronousDeviceTrains(void) {
  OK(tw_plugin_load(NULL, EXAMPLES "/libasync_device.so"));
  CHECK(near(trained_on("ASYNC"), trained_on(NULL), 1e-4));
}

MAIN(TEST(ADeviceOfFortyLinesNegates), TEST(ADeviceOfSixtyLinesTrains), TEST(AnAsynchronousDeviceTrains))
