/* A third-party graph compiler. Chains of elementwise operations computed as one node give the
 * results of the single nodes: in runs, gradients and training, with one thread and two, for
 * every shape, and in another process. */
#define _XOPEN_SOURCE 700
#include <stdint.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

static tw_runtime* new_runtime(const char* option) {
  tw_runtime* r = NULL;
  OK(tw_runtime_create(&option, option != NULL, &r));
  OK(tw_plugin_load(r, CHAIN));
  return r;
}

static float bits(uint32_t n) {
  float f;
  memcpy(&f, &n, sizeof f);
  return f;
}
static uint32_t random_bits(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (uint32_t)(state >> 32);
}

/* Returns numbers of every kind; the first few are special values. */
static tw_tensor* numbers(int64_t n, int tame) {
  static const float odd[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-40f, 3.4e38f, -3.4e38f, 88.7f, -104, 0.625f};
  tw_tensor* t = NULL;
  OK(tw_tensor_create(TW_FLOAT, &n, 1, &t));
  float* v = tw_tensor_mutable_data(t);
  for (int64_t i = 0; i < n; ++i) {
    v[i] = tame ? (float)(random_bits() % 20001) / 10000 - 1 : i < 12 ? odd[i] : bits(random_bits());
  }
  return t;
}

/* Returns the distance of two numbers in units of the last place; any two NaN are equal. */
static double ulps(double a, float b) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0 : 1e9;
  if ((float)a == b) return 0;
  if (isinf((float)a) || isinf(b)) return fabs((float)a) > 3.4e38 && fabs(b) > 3.4e38 ? 1 : 1e9;
  int e;
  frexp(a, &e);
  return fabs(a - b) / ldexp(1, e - 24 < -149 ? -149 : e - 24);
}

typedef struct program {
  tw_graph* graph;
  tw_scope* scope;
  tw_output x;
} program;

static program begin(tw_runtime* r) {
  program p = {0};
  const int64_t any[] = {-1};
  OK(tw_graph_create(r, &p.graph));
  p.scope = tw_scope_create(p.graph, NULL);
  p.x = tw_scope_placeholder(p.scope, "x", TW_FLOAT, any, 1);
  return p;
}

/* Runs y in a session with that option. */
static tw_tensor* run_with(const program* p, const char* option, tw_output y, tw_tensor* x) {
  tw_session* session = NULL;
  OK(tw_session_create(p->graph, &option, 1, &session));
  tw_tensor* out = fetch(session, p->x, x, y);
  tw_session_destroy(session);
  return out;
}

/* Compares all bits, except for the payload of a NaN. */
static int same(tw_tensor* a, tw_tensor* b) {
  if (!a || !b || tw_tensor_count(a) != tw_tensor_count(b)) return 0;
  const float *p = tw_tensor_data(a), *q = tw_tensor_data(b);
  for (uint64_t i = 0; i < tw_tensor_count(a); ++i) {
    if (memcmp(&p[i], &q[i], sizeof(float)) != 0 && !(isnan(p[i]) && isnan(q[i]))) return 0;
  }
  return 1;
}

/* Makes the chain of all operations that are exact. */
static tw_output exact_chain(const program* p) {
  tw_scope* s = p->scope;
  tw_output y = tw_scope_op2(s, "Add", p->x, tw_scope_scalar(s, TW_FLOAT, 0.75));
  y = tw_scope_op1(s, "Square", y);
  y = tw_scope_op2(s, "Sub", tw_scope_scalar(s, TW_FLOAT, 3), y);
  y = tw_scope_op1(s, "Relu", tw_scope_op2(s, "Mul", y, p->x));
  y = tw_scope_op2(s, "RealDiv", tw_scope_op1(s, "Neg", y), tw_scope_scalar(s, TW_FLOAT, 1.7));
  return tw_scope_op2(s, "AddV2", y, p->x);
}

/* Returns the text of the plan for n numbers. */
static tw_buffer* plan_of(const program* p, const char* option, tw_output y, int64_t n) {
  tw_session* session = NULL;
  tw_callable* c = NULL;
  tw_buffer* json = NULL;
  OK(tw_session_create(p->graph, &option, 1, &session));
  const tw_signature what = {.size = sizeof what, .feeds = &p->x, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
  OK(tw_callable_create(session, &what, &c));
  const tw_shape shape = {&n, 1, 0};
  OK(tw_callable_plan_json(c, &shape, &json));
  tw_callable_destroy(c);
  tw_session_destroy(session);
  return json;
}

static void AChainRunsAsOneAndKeepsEveryBit(void) {
  tw_runtime* r = new_runtime(NULL);
  program p = begin(r);
  const tw_output y = exact_chain(&p);
  OK(tw_scope_finish(p.scope));
  tw_buffer* plan = plan_of(&p, "compilers=require", y, 100);
  CHECK(strstr((const char*)tw_buffer_data(plan), "\"op\": \"chain\""));
  CHECK(strstr((const char*)tw_buffer_data(plan), "\"claims\": [{\"compiler\": \"chain\", \"plugin\": \"org.example.chain\""));
  tw_buffer_release(plan);
  const int64_t sizes[] = {0, 1, 1023, 1024, 1025, 5000, 300000};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    tw_tensor* x = numbers(sizes[i], 0);
    tw_tensor* single = run_with(&p, "compilers=off", y, x);
    const char* options[] = {"compilers=require", "threads=1", "threads=2", "engine=counted", "max_shape_plans=1", "order=smallest_peak"};
    for (size_t k = 0; k < sizeof options / sizeof options[0]; ++k) {
      tw_tensor* chain = run_with(&p, options[k], y, x);
      CHECK(same(single, chain));
      tw_tensor_release(chain);
    }
    tw_tensor_release(single);
    tw_tensor_release(x);
  }
  tw_graph_destroy(p.graph);
  tw_runtime_release(r);
}

static void OnePlanServesOtherShapes(void) {
  tw_runtime* r = new_runtime(NULL);
  program p = begin(r);
  const tw_output y = exact_chain(&p);
  OK(tw_scope_finish(p.scope));
  tw_session *session = NULL, *plain = NULL;
  const char* off = "compilers=off";
  OK(tw_session_create(p.graph, NULL, 0, &session));
  OK(tw_session_create(p.graph, &off, 1, &plain));
  for (int64_t n = 1; n < 4000; n += 333) {
    tw_tensor* x = numbers(n, 1);
    tw_tensor *a = fetch(session, p.x, x, y), *b = fetch(plain, p.x, x, y);
    CHECK(same(a, b));
    tw_tensor_release(a);
    tw_tensor_release(b);
    tw_tensor_release(x);
  }
  tw_session_info info = {.size = sizeof info};
  OK(tw_session_report(session, &info));
  CHECK(info.plans == 1 && info.misses == 1);
  tw_session_destroy(session);
  tw_session_destroy(plain);
  tw_graph_destroy(p.graph);
  tw_runtime_release(r);
}

/* Compares Neg(f(-x)), which is a chain, with the same in double. */
static double worst(const char* op, double (*f)(double)) {
  tw_runtime* r = new_runtime(NULL);
  program p = begin(r);
  const tw_output y = tw_scope_op1(p.scope, "Neg", tw_scope_op1(p.scope, op, tw_scope_op1(p.scope, "Neg", p.x)));
  OK(tw_scope_finish(p.scope));
  double most = 0;
  for (int tame = 0; tame < 2; ++tame) {
    tw_tensor* x = numbers(200000, tame);
    tw_tensor* out = run_with(&p, "compilers=require", y, x);
    const float *in = tw_tensor_data(x), *got = tw_tensor_data(out);
    for (uint64_t i = 0; i < tw_tensor_count(x); ++i) most = fmax(most, ulps(f(-(double)in[i]), -got[i]));
    tw_tensor_release(out);
    tw_tensor_release(x);
  }
  tw_graph_destroy(p.graph);
  tw_runtime_release(r);
  return most;
}

/* Returns true if the plan for n numbers has that text. */
static int plan_has(const program* p, tw_output y, int64_t n, const char* text) {
  tw_buffer* plan = plan_of(p, "order=smallest_peak", y, n);
  const int has = strstr((const char*)tw_buffer_data(plan), text) != NULL;
  tw_buffer_release(plan);
  return has;
}

/* The chain squares and negates the numbers above 0, whose count only running tells. */
static void SizesThatOnlyRunningTellsAreTakenIfTheirLimitIsLarge(void) {
  tw_runtime* r = new_runtime(NULL);
  program p = begin(r);
  tw_scope* s = p.scope;
  const tw_output above = tw_scope_op2(s, "Greater", p.x, tw_scope_scalar(s, TW_FLOAT, 0));
  const tw_output some = tw_scope_op2(s, "Gather", p.x, tw_scope_op1(s, "Where", above));
  const tw_output y = tw_scope_op2(s, "Mul", tw_scope_op1(s, "Neg", tw_scope_op1(s, "Square", some)), tw_scope_scalar(s, TW_FLOAT, 0.5));
  OK(tw_scope_finish(s));
  CHECK(plan_has(&p, y, 5000, "\"op\": \"chain\""));
  CHECK(!plan_has(&p, y, 1000, "\"op\": \"chain\""));
  CHECK(plan_has(&p, y, 1000, "it never has as many elements as a tile"));
  const int64_t sizes[] = {5000, 0, 1000, 1024, 9000};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    tw_tensor* x = numbers(sizes[i], 1);
    tw_tensor *single = run_with(&p, "compilers=off", y, x), *one = run_with(&p, "threads=1", y, x), *two = run_with(&p, "threads=2", y, x);
    CHECK(same(single, one) && same(single, two));
    CHECK(sizes[i] == 0 || (tw_tensor_count(one) > 0 && tw_tensor_count(one) < (uint64_t)sizes[i]));
    tw_tensor_release(single);
    tw_tensor_release(one);
    tw_tensor_release(two);
    tw_tensor_release(x);
  }
  tw_graph_destroy(p.graph);
  tw_runtime_release(r);
}

static void ExpAndTanhAreWithinThreeUnits(void) {
  const double of_exp = worst("Exp", exp), of_tanh = worst("Tanh", tanh);
  printf("  Exp %.2f units, Tanh %.2f\n", of_exp, of_tanh);
  CHECK(of_exp <= 3 && of_tanh <= 3);
}

static void GradientsGoThrough(void) {
  tw_runtime* r = new_runtime(NULL);
  program p = begin(r);
  const tw_output y = exact_chain(&p);
  const int32_t axis = 0;
  const tw_output sum = tw_scope_op2(p.scope, "Sum", y, tw_scope_ints(p.scope, &axis, 1));
  tw_gradient gradient;
  tw_scope_gradients(p.scope, sum, &p.x, 1, &gradient);
  OK(tw_scope_finish(p.scope));
  tw_tensor* x = numbers(3000, 1);
  tw_tensor *single = run_with(&p, "compilers=off", gradient.values, x), *chain = run_with(&p, "compilers=require", gradient.values, x);
  CHECK(same(single, chain));
  tw_buffer* plan = plan_of(&p, "compilers=require", gradient.values, 3000);
  CHECK(strstr((const char*)tw_buffer_data(plan), "\"op\": \"chain\"")); /* the chain of the backward part */
  tw_buffer_release(plan);
  tw_tensor_release(single);
  tw_tensor_release(chain);
  tw_tensor_release(x);
  tw_graph_destroy(p.graph);
  tw_runtime_release(r);
}

/* Returns the weights after some steps. */
static tw_tensor* trained(tw_runtime* r, const char* option) {
  program p = begin(r);
  tw_scope* s = p.scope;
  float start[500];
  const int64_t n = 500;
  for (int i = 0; i < n; ++i) start[i] = (float)i / 250 - 1;
  tw_tensor* initial = floats(&n, 1, start);
  const tw_output w = tw_variable_create(s, "w", tw_scope_constant(s, initial));
  tw_output y = tw_scope_op2(s, "Mul", tw_variable_read(s, w), tw_scope_scalar(s, TW_FLOAT, 1.5));
  y = tw_scope_op1(s, "Square", tw_scope_op2(s, "Sub", y, tw_scope_constant(s, initial)));
  const int32_t axis = 0;
  tw_gradient gradient;
  tw_scope_gradients(s, tw_scope_op2(s, "Mean", y, tw_scope_ints(s, &axis, 1)), &w, 1, &gradient);
  const tw_operation *train = tw_train_momentum(s, &w, &gradient, 1, NULL), *init = tw_variable_initializer(s, "init");
  const tw_output now = tw_variable_read(s, w);
  OK(tw_scope_finish(s));
  const char* options[] = {option, option[0] == 'c' ? "container=single" : "container=chain"};
  tw_session* session = NULL;
  OK(tw_session_create(p.graph, options, 2, &session));
  run(session, init);
  for (int i = 0; i < 20; ++i) run(session, train);
  tw_tensor* out = fetch(session, 0, NULL, now);
  tw_session_destroy(session);
  tw_graph_destroy(p.graph);
  tw_tensor_release(initial);
  return out;
}

static void TrainingGoesThrough(void) {
  tw_runtime* r = new_runtime(NULL);
  tw_tensor *single = trained(r, "compilers=off"), *chain = trained(r, "threads=2");
  CHECK(same(single, chain));
  tw_tensor_release(single);
  tw_tensor_release(chain);
  tw_runtime_release(r);
}

static void AnotherProcessLoadsWhatOneCompiled(void) {
  char folder[] = "/tmp/thalweg-chain-XXXXXX", option[64];
  CHECK(mkdtemp(folder));
  snprintf(option, sizeof option, "compile_cache=%s", folder);
  for (int process = 0; process < 2; ++process) {
    const pid_t child = fork();
    if (child == 0) {
      failures = 0;
      tw_runtime* r = new_runtime(option);
      program p = begin(r);
      const tw_output y = exact_chain(&p);
      OK(tw_scope_finish(p.scope));
      tw_buffer* plan = plan_of(&p, "compilers=require", y, 2000);
      CHECK(strstr((const char*)tw_buffer_data(plan), process ? "\"loaded\": true" : "\"loaded\": false"));
      tw_tensor* x = numbers(2000, 0);
      tw_tensor *a = run_with(&p, "compilers=require", y, x), *b = run_with(&p, "compilers=off", y, x);
      CHECK(same(a, b));
      fflush(stdout);
      _exit(failures != 0);
    }
    int status = 1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  }
  char command[96];
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
}

MAIN(TEST(AnotherProcessLoadsWhatOneCompiled), TEST(AChainRunsAsOneAndKeepsEveryBit), TEST(OnePlanServesOtherShapes),
     TEST(SizesThatOnlyRunningTellsAreTakenIfTheirLimitIsLarge), TEST(ExpAndTanhAreWithinThreeUnits), TEST(GradientsGoThrough),
     TEST(TrainingGoesThrough))
