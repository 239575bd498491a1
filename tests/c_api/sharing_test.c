/* Several sessions and runtimes in one process that share weights: by name within a runtime, as
 * tensors between two. */
#include <pthread.h>

#include "check.h"

enum { kSize = 1024, kSteps = 300 };

/* w += 1 everywhere (train), w as it is (read), w = value (assign). */
typedef struct model {
  tw_graph* graph;
  tw_session* session;
  tw_output read, value;
  const tw_operation *init, *train, *assign;
} model;

static model new_model(tw_runtime* runtime, const char* container) {
  model m = {0};
  const int64_t dims[] = {kSize};
  const int32_t size[] = {kSize};
  char option[64];
  snprintf(option, sizeof option, "container=%s", container);
  const char* options[] = {option};
  OK(tw_graph_create(runtime, &m.graph));
  tw_scope* s = tw_scope_create(m.graph, NULL);
  const tw_output zeros = tw_scope_op2(s, "Fill", tw_scope_ints(s, size, 1), tw_scope_scalar(s, TW_FLOAT, 0));
  const tw_output w = tw_variable_create(s, "w", zeros);
  m.read = tw_variable_read(s, w);
  m.init = tw_variable_initializer(s, "init");
  m.value = tw_scope_placeholder(s, "value", TW_FLOAT, dims, 1);
  m.assign = tw_variable_assign(s, w, m.value);
  tw_op* add = tw_scope_begin(s, "AssignAddVariableOp", "train");
  tw_op_add_input(add, w);
  tw_op_add_input(add, tw_scope_op2(s, "Fill", tw_scope_ints(s, size, 1), tw_scope_scalar(s, TW_FLOAT, 1)));
  m.train = tw_scope_end_operation(s, add);
  OK(tw_scope_finish(s));
  OK(tw_session_create(m.graph, options, 1, &m.session));
  return m;
}

static void free_model(model* m) {
  tw_session_destroy(m->session);
  tw_graph_destroy(m->graph);
}

static void assign(model* m, tw_tensor* value) {
  const tw_signature what = {.size = sizeof what, .feeds = &m->value, .targets = &m->assign, .n_feeds = 1, .n_targets = 1};
  OK(tw_session_run(m->session, &what, &value, NULL, NULL));
}

static void* train(void* arg) {
  const model* m = arg;
  for (int i = 0; i < kSteps; ++i) run(m->session, m->train);
  return NULL;
}

static void OneGraphServesWhatAnotherTrains(void) {
  model trained = new_model(NULL, "shared_weights"), served = new_model(NULL, "shared_weights");
  pthread_t trainer;
  run(trained.session, trained.init);
  CHECK(pthread_create(&trainer, NULL, train, &trained) == 0);
  float last = 0;
  int mixed = 0, backwards = 0;
  while (last < kSteps) {
    tw_tensor* w = fetch(served.session, 0, NULL, served.read);
    if (!w) break;
    const float* values = tw_tensor_data(w);
    for (int i = 1; i < kSize; ++i) mixed += values[i] != values[0]; /* no update is visible in part */
    backwards += values[0] < last;
    last = values[0];
    tw_tensor_release(w);
  }
  pthread_join(trainer, NULL);
  CHECK(mixed == 0 && backwards == 0 && last == kSteps);
  free_model(&served);
  free_model(&trained);
}

static void AnotherContainerIsAnotherVariable(void) {
  model a = new_model(NULL, "sharing_a"), b = new_model(NULL, "sharing_b");
  tw_tensor* out = NULL;
  run(a.session, a.init);
  const tw_signature what = {.size = sizeof what, .fetches = &b.read, .n_fetches = 1};
  FAILS(tw_session_run(b.session, &what, NULL, NULL, &out), TW_FAILED_PRECONDITION, "not initialised");
  free_model(&a);
  free_model(&b);
}

static void WeightsGoToAnotherRuntimeWithoutACopy(void) {
  tw_runtime* runtimes[2] = {NULL, NULL};
  model models[2];
  for (int i = 0; i < 2; ++i) {
    OK(tw_runtime_create(NULL, 0, &runtimes[i]));
    models[i] = new_model(runtimes[i], "localhost");
  }
  run(models[0].session, models[0].init);
  run(models[0].session, models[0].train);
  tw_tensor* weights = fetch(models[0].session, 0, NULL, models[0].read);
  tw_tensor* again = fetch(models[0].session, 0, NULL, models[0].read);
  CHECK(weights && again && tw_tensor_data(weights) == tw_tensor_data(again)); /* a read shares the variable's memory */
  assign(&models[1], weights);
  tw_tensor* there = fetch(models[1].session, 0, NULL, models[1].read);
  CHECK(there && tw_tensor_data(there) == tw_tensor_data(weights)); /* so does the variable of the other runtime */

  const float* values = tw_tensor_data(weights);
  run(models[0].session, models[0].train); /* copies the memory first */
  tw_tensor* trained = fetch(models[0].session, 0, NULL, models[0].read);
  tw_tensor* unchanged = fetch(models[1].session, 0, NULL, models[1].read);
  CHECK(values[0] == 1 && *(const float*)tw_tensor_data(unchanged) == 1 && *(const float*)tw_tensor_data(trained) == 2);
  free_model(&models[0]);
  tw_runtime_release(runtimes[0]); /* the memory outlives its runtime */
  tw_tensor* alone = fetch(models[1].session, 0, NULL, models[1].read);
  CHECK(alone && ((const float*)tw_tensor_data(alone))[kSize - 1] == 1);
  tw_tensor* all[] = {weights, again, there, trained, unchanged, alone};
  for (int i = 0; i < 6; ++i) tw_tensor_release(all[i]);
  free_model(&models[1]);
  tw_runtime_release(runtimes[1]);
}

MAIN(TEST(OneGraphServesWhatAnotherTrains), TEST(AnotherContainerIsAnotherVariable), TEST(WeightsGoToAnotherRuntimeWithoutACopy))
