/* The plugins of guides/ in programs: their results are those of the definitions and of the standard ops, and plans, devices and servers
 * show that the plugins made them. The kit has no session and no cluster. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "check.h"

static tw_runtime* new_runtime(const char* plugin) {
  tw_runtime* r = NULL;
  OK(tw_runtime_create(NULL, 0, &r));
  OK(tw_plugin_load(r, plugin));
  return r;
}

static const float kX[] = {1, -2, 3.5f, 0, 4, -1, 2, 2, 2, -3, 0.25f, 7};

static void DistancesAreThoseOfTheirDefinition(void) {
  enum { n = 4, m = 2, d = 3 };
  static const float ys[m * d] = {0, 1, -1, 2.5f, -3, 0.5f};
  const int64_t x_dims[] = {n, d}, y_dims[] = {m, d};
  tw_runtime* r = new_runtime(DISTANCES);
  tw_graph* g = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(r, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, x_dims, 2), y = tw_scope_placeholder(s, "y", TW_FLOAT, y_dims, 2);
  const tw_output distances = tw_scope_op2(s, "SquaredDistances", x, y);
  OK(tw_scope_finish(s));
  OK(tw_session_create(g, NULL, 0, &session));
  const tw_output feeds[] = {x, y};
  const tw_signature what = {.size = sizeof what, .feeds = feeds, .n_feeds = 2, .fetches = &distances, .n_fetches = 1};
  tw_tensor *fed[] = {floats(x_dims, 2, kX), floats(y_dims, 2, ys)}, *out = NULL;
  OK(tw_session_run(session, &what, fed, NULL, &out));
  for (int i = 0; out && i < n; ++i) {
    for (int j = 0; j < m; ++j) {
      double sum = 0;
      for (int k = 0; k < d; ++k) sum += ((double)kX[i * d + k] - (double)ys[j * d + k]) * ((double)kX[i * d + k] - (double)ys[j * d + k]);
      CHECK(fabs(((const float*)tw_tensor_data(out))[i * m + j] - sum) <= 1e-5 * (1 + sum));
    }
  }
  tw_tensor_release(out);
  tw_tensor_release(fed[0]);
  tw_tensor_release(fed[1]);
  tw_session_destroy(session);
  tw_graph_destroy(g);
  tw_runtime_release(r);
}

static tw_output on_spill(tw_scope* s, const char* type, tw_output x) {
  tw_op* op = tw_scope_begin(s, type, NULL);
  tw_op_add_input(op, x);
  tw_op_set_device(op, "SPILL:0");
  return tw_scope_end(s, op);
}

/* Kernels take the device of their frame to find the file, so these results exist only if the executor fills it. */
static void ValuesPassThroughTheFile(void) {
  enum { n = 50000 }; /* more than one window of the device */
  const int64_t dims[] = {n};
  static float values[n];
  for (int i = 0; i < n; ++i) values[i] = (float)(i % 777) / 7 - 50;
  tw_runtime* r = new_runtime(SPILL);
  tw_graph* g = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(r, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1);
  const tw_output y = on_spill(s, "Square", on_spill(s, "Relu", on_spill(s, "Neg", x)));
  OK(tw_scope_finish(s));
  const char* options[] = {"fallback=fail"};
  OK(tw_session_create(g, options, 1, &session));
  tw_tensor* in = floats(dims, 1, values);
  for (int round = 0; round < 3; ++round) {
    tw_tensor* out = fetch(session, x, in, y);
    int wrong = !out;
    for (int i = 0; out && i < n; ++i) {
      const float v = values[i] < 0 ? values[i] * values[i] : 0;
      wrong += ((const float*)tw_tensor_data(out))[i] != v;
    }
    CHECK(wrong == 0);
    tw_tensor_release(out);
  }
  tw_tensor_release(in);
  tw_session_destroy(session);
  tw_graph_destroy(g);
  tw_runtime_release(r);
}

static tw_output mean_of_rows(tw_scope* s, tw_output x) {
  const int32_t last = -1;
  tw_op* op = tw_scope_begin(s, "Mean", NULL);
  tw_op_add_input(op, x);
  tw_op_add_input(op, tw_scope_ints(s, &last, 1));
  tw_op_set_bool(op, "keep_dims", 1);
  return tw_scope_end(s, op);
}

static void ANormalisationRunsAsOneNode(void) {
  const int64_t any[] = {-1, -1}, dims[] = {3, 4};
  tw_runtime* r = new_runtime(NORM);
  tw_graph* g = NULL;
  OK(tw_graph_create(r, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, any, 2);
  const tw_output centred = tw_scope_op2(s, "Sub", x, mean_of_rows(s, x));
  const tw_output variance = mean_of_rows(s, tw_scope_op1(s, "Square", centred));
  const tw_output root = tw_scope_op1(s, "Rsqrt", tw_scope_op2(s, "AddV2", variance, tw_scope_scalar(s, TW_FLOAT, 0.001)));
  const tw_output y = tw_scope_op2(s, "Mul", centred, root);
  OK(tw_scope_finish(s));
  const char* options[] = {"compilers=require", "compilers=off"};
  tw_tensor *in = floats(dims, 2, kX), *out[2];
  for (int k = 0; k < 2; ++k) {
    tw_session* session = NULL;
    tw_callable* callable = NULL;
    tw_buffer* plan = NULL;
    const tw_shape shape = {dims, 2, 0};
    const tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
    OK(tw_session_create(g, &options[k], 1, &session));
    out[k] = fetch(session, x, in, y);
    OK(tw_callable_create(session, &what, &callable));
    OK(tw_callable_plan_json(callable, &shape, &plan));
    CHECK(plan &&
          (strstr(tw_buffer_data(plan), "{\"compiler\": \"norm\", \"plugin\": \"org.example.norm\", \"nodes\": [\"") != NULL) == (k == 0));
    tw_buffer_release(plan);
    tw_callable_destroy(callable);
    tw_session_destroy(session);
  }
  for (int i = 0; i < 3; ++i) { /* and both are right */
    double sum = 0, squares = 0;
    for (int k = 0; k < 4; ++k) sum += (double)kX[4 * i + k] / 4;
    for (int k = 0; k < 4; ++k) squares += ((double)kX[4 * i + k] - sum) * ((double)kX[4 * i + k] - sum) / 4;
    for (int k = 0; k < 4; ++k) {
      const double wanted = ((double)kX[4 * i + k] - sum) / sqrt(squares + 0.001);
      for (int o = 0; o < 2; ++o) CHECK(out[o] && fabs((double)((const float*)tw_tensor_data(out[o]))[4 * i + k] - wanted) < 1e-5);
    }
  }
  for (int o = 0; o < 2; ++o) tw_tensor_release(out[o]);
  tw_tensor_release(in);
  tw_graph_destroy(g);
  tw_runtime_release(r);
}

/* A step on two tasks, whose value travels through the pipes. */
static void ATaskIsReachedThroughPipes(void) {
  enum { n = 300000 }; /* many pieces */
  static float values[n];
  for (int i = 0; i < n; ++i) values[i] = (float)(i % 1001);
  char folder[] = "/tmp/guides.XXXXXX", cluster[256], target[128];
  CHECK(mkdtemp(folder) != NULL);
  snprintf(cluster, sizeof cluster, "{\"worker\": [\"pipes:%s/0\", \"pipes:%s/1\"]}", folder, folder);
  tw_runtime* r = new_runtime(PIPES);
  tw_server* servers[2] = {NULL, NULL};
  for (uint32_t i = 0; i < 2; ++i) {
    OK(tw_server_create(r, cluster, "worker", i, NULL, 0, &servers[i]));
    OK(tw_server_start(servers[i]));
  }
  const int64_t dims[] = {n};
  tw_graph* g = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(r, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, dims, 1);
  tw_output y = x;
  for (int task = 0; task < 2; ++task) {
    tw_op* op = tw_scope_begin(s, "Neg", NULL);
    tw_op_add_input(op, y);
    tw_op_set_device(op, task ? "/job:worker/task:1" : "/job:worker/task:0");
    y = tw_scope_end(s, op);
  }
  OK(tw_scope_finish(s));
  snprintf(target, sizeof target, "target=pipes:%s/0", folder);
  const char* options[] = {target};
  OK(tw_session_create(g, options, 1, &session));
  tw_tensor* in = floats(dims, 1, values);
  tw_tensor* out = session ? fetch(session, x, in, y) : NULL;
  CHECK(out && memcmp(tw_tensor_data(out), values, sizeof values) == 0);
  OK(tw_server_stop(servers[1]));
  const tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
  tw_tensor* none = NULL;
  FAILS(tw_session_run(session, &what, &in, NULL, &none), TW_UNAVAILABLE, "task:1");
  tw_tensor_release(out);
  tw_tensor_release(in);
  tw_session_destroy(session);
  tw_graph_destroy(g);
  tw_server_destroy(servers[0]);
  tw_server_destroy(servers[1]);
  CHECK(rmdir(folder) == 0); /* the endpoints have removed theirs */
  tw_runtime_release(r);
}

MAIN(TEST(DistancesAreThoseOfTheirDefinition), TEST(ValuesPassThroughTheFile), TEST(ANormalisationRunsAsOneNode),
     TEST(ATaskIsReachedThroughPipes))
