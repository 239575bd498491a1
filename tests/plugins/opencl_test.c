/* A graph placed half on an OpenCL device and half on the CPU: correct for changing sizes and on
 * several threads, with clear errors for ops that the device lacks. Skipped, with the reason, if
 * no OpenCL device is found. */
#include <pthread.h>

#include "check.h"

static int has_device(void) {
  tw_devices* devices = NULL;
  OK(tw_devices_create(NULL, &devices));
  int found = 0;
  for (uint32_t i = 0; i < tw_devices_count(devices); ++i) found += strcmp(tw_devices_kind(devices, i), "OPENCL") == 0;
  tw_devices_destroy(devices);
  return found;
}

static tw_output on(tw_scope* s, const char* device, const char* type, tw_output a, tw_output b) {
  tw_op* op = tw_scope_begin(s, type, NULL);
  tw_op_add_input(op, a);
  if (b) tw_op_add_input(op, b);
  tw_op_set_device(op, device);
  return tw_scope_end(s, op);
}

/* y = relu((x m)^2 + c) * (x m), with the square on the CPU between two parts on the device. */
typedef struct problem {
  tw_graph* graph;
  tw_session* session;
  tw_output in[3], y;
} problem;

static problem new_problem(void) {
  problem p = {0};
  OK(tw_graph_create(NULL, &p.graph));
  tw_scope* s = tw_scope_create(p.graph, NULL);
  const int64_t matrix[] = {-1, -1}, vector[] = {-1};
  p.in[0] = tw_scope_placeholder(s, "x", TW_FLOAT, matrix, 2);
  p.in[1] = tw_scope_placeholder(s, "m", TW_FLOAT, matrix, 2);
  p.in[2] = tw_scope_placeholder(s, "c", TW_FLOAT, vector, 1);
  const tw_output product = on(s, "OPENCL:0", "MatMul", p.in[0], p.in[1]);
  const tw_output square = on(s, "CPU:0", "Square", product, 0);
  const tw_output sum = on(s, "OPENCL:0", "AddV2", square, p.in[2]);
  p.y = on(s, "OPENCL:0", "Mul", on(s, "OPENCL:0", "Relu", sum, 0), product);
  OK(tw_scope_finish(s));
  OK(tw_session_create(p.graph, NULL, 0, &p.session));
  return p;
}

static float number(unsigned* seed) { /* in [-0.5, 0.5) */
  *seed = *seed * 1664525u + 1013904223u;
  return (float)(*seed >> 8) / (float)(1 << 24) - 0.5f;
}

/* Runs one step of size n and compares it with double; returns the number of wrong elements. */
static int wrong_elements(const problem* p, int n, unsigned seed) {
  const int64_t dims[] = {n, n};
  float* values[3];
  tw_tensor *in[3] = {0}, *out = NULL;
  for (int k = 0; k < 3; ++k) {
    const int count = k < 2 ? n * n : n;
    values[k] = malloc((size_t)count * sizeof(float));
    for (int i = 0; i < count; ++i) values[k][i] = number(&seed);
    in[k] = floats(dims, k < 2 ? 2 : 1, values[k]);
  }
  const tw_signature what = {.size = sizeof what, .feeds = p->in, .n_feeds = 3, .fetches = &p->y, .n_fetches = 1};
  OK(tw_session_run(p->session, &what, in, NULL, &out));
  int wrong = out == NULL;
  for (int i = 0; out && i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double h = 0;
      for (int k = 0; k < n; ++k) h += (double)values[0][i * n + k] * values[1][k * n + j];
      const double r = fmax(h * h + values[2][j], 0) * h;
      wrong += fabs(((const float*)tw_tensor_data(out))[i * n + j] - r) > 1e-4 * (1 + fabs(r));
    }
  }
  for (int k = 0; k < 3; ++k) {
    tw_tensor_release(in[k]);
    free(values[k]);
  }
  tw_tensor_release(out);
  return wrong;
}

static void IsRightForChangingSizes(void) {
  problem p = new_problem();
  for (int i = 0; i < 14; ++i) CHECK(wrong_elements(&p, 3 + 11 * i, (unsigned)i) == 0);
  tw_session_destroy(p.session);
  tw_graph_destroy(p.graph);
}

typedef struct job {
  const problem* p;
  unsigned seed;
  int wrong;
} job;

static void* run_steps(void* arg) {
  job* j = arg;
  for (unsigned i = 0; i < 25; ++i) j->wrong += wrong_elements(j->p, 20 + (int)(i % 4) * 13, 1000 * j->seed + i);
  return NULL;
}

static void IsRightInSeveralThreadsAtOnce(void) {
  problem p = new_problem();
  pthread_t threads[4];
  job jobs[4];
  for (unsigned k = 0; k < 4; ++k) {
    jobs[k] = (job){&p, k, 0};
    CHECK(pthread_create(&threads[k], NULL, run_steps, &jobs[k]) == 0);
  }
  for (int k = 0; k < 4; ++k) {
    pthread_join(threads[k], NULL);
    CHECK(jobs[k].wrong == 0);
  }
  tw_session_destroy(p.session);
  tw_graph_destroy(p.graph);
}

/* The recorded end of queued work is the device's time, not the time of its callback. */
static void TellsWhenTheDeviceWasDone(void) {
  problem p = new_problem();
  tw_step_stats* stats = NULL;
  OK(tw_step_stats_create(&stats));
  const int64_t dims[] = {256, 256};
  static float values[256 * 256];
  tw_tensor *in[] = {floats(dims, 2, values), floats(dims, 2, values), floats(dims, 1, values)}, *out = NULL;
  const tw_signature what = {.size = sizeof what, .feeds = p.in, .n_feeds = 3, .fetches = &p.y, .n_fetches = 1};
  const tw_run_options options = {.size = sizeof options, .stats = stats};
  OK(tw_session_run(p.session, &what, in, &options, &out));
  int copies = 0, later = 0;
  int64_t product = 0, back = 0;
  for (uint32_t i = 0; i < tw_step_stats_node_count(stats); ++i) {
    const tw_step_node* n = tw_step_stats_node(stats, i);
    CHECK(n->start_ns + n->busy_ns <= n->end_ns && n->end_ns <= tw_step_stats_total(stats)->total_ns);
    copies += (n->flags & TW_STEP_NODE_COPY) != 0;
    later += strstr(n->device, "OPENCL") && n->end_ns > n->start_ns + n->busy_ns;
    if (!strcmp(n->op, "MatMul")) product = n->end_ns;
    if (!strcmp(n->op, "CopyToHost") && !strcmp(n->name, "MatMul")) back = n->end_ns;
  }
  CHECK(copies >= 4 && later >= 1 && product > 0 && back >= product);
  for (int k = 0; k < 3; ++k) tw_tensor_release(in[k]);
  tw_tensor_release(out);
  tw_step_stats_destroy(stats);
  tw_session_destroy(p.session);
  tw_graph_destroy(p.graph);
}

static void NamesWhatTheDeviceCannotDo(void) {
  tw_graph* g = NULL;
  tw_session* session = NULL;
  OK(tw_graph_create(NULL, &g));
  tw_scope* s = tw_scope_create(g, NULL);
  const tw_output x = tw_scope_placeholder(s, "x", TW_FLOAT, NULL, 0);
  const tw_output y = on(s, "OPENCL:0", "Zeta", x, x);
  const tw_output z = on(s, "OPENCL:77", "Relu", x, 0);
  OK(tw_scope_finish(s));
  OK(tw_session_create(g, NULL, 0, &session));
  tw_tensor *in = scalar(2), *out = NULL;
  tw_signature what = {.size = sizeof what, .feeds = &x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
  FAILS(tw_session_run(session, &what, &in, NULL, &out), TW_NOT_FOUND, "no kernel for (float, float) on device");
  what.fetches = &z;
  FAILS(tw_session_run(session, &what, &in, NULL, &out), TW_NOT_FOUND, "registered: CPU:0, OPENCL:0");
  tw_tensor_release(in);
  tw_session_destroy(session);
  tw_graph_destroy(g);
}

int main(void) {
  if (!has_device()) {
    printf("skipped: no OpenCL device was found; install a driver (pocl-opencl-icd runs on the CPU)\n");
    return 77;
  }
  const test tests[] = {TEST(IsRightForChangingSizes), TEST(IsRightInSeveralThreadsAtOnce), TEST(TellsWhenTheDeviceWasDone),
                        TEST(NamesWhatTheDeviceCannotDo)};
  return run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
