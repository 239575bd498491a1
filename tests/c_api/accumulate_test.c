/* Accumulation: k sub-batches give the update of the whole batch, dense and sparse; the update
 * waits for all of them; refusals. */
#include "check.h"

enum { kBatch = 12, kParts = 4, kWidth = 3, kRows = 5 };

/* loss = mean over the batch of |rows of e . w|^2: w is a dense variable, and rows of the
 * variable e are gathered. */
typedef struct model {
  tw_graph* graph;
  tw_session* session;
  tw_output ids, variables[2];
  const tw_operation *init, *add, *train;
} model;

static tw_output weights(tw_scope* s, const char* name, int rows) {
  const int64_t dims[] = {rows, kWidth};
  float values[kRows * kWidth];
  for (int i = 0; i < rows * kWidth; ++i) values[i] = (float)((i * 7) % 11) / 8 - 0.5f;
  tw_tensor* t = floats(dims, 2, values);
  const tw_output v = tw_variable_create(s, name, tw_scope_constant(s, t));
  tw_tensor_release(t);
  return v;
}

static model make(const char* container, uint32_t parts) {
  model m = {0};
  const int64_t any[] = {-1};
  const char* options[] = {container};
  const int32_t axis = 0;
  OK(tw_graph_create(NULL, &m.graph));
  tw_scope* s = tw_scope_create(m.graph, NULL);
  m.ids = tw_scope_placeholder(s, "ids", TW_INT32, any, 1);
  m.variables[0] = weights(s, "w", kWidth);
  m.variables[1] = weights(s, "e", kRows);
  tw_op* gather = tw_scope_begin(s, "ResourceGather", NULL);
  tw_op_add_input(gather, m.variables[1]);
  tw_op_add_input(gather, m.ids);
  tw_op_set_type(gather, "dtype", TW_FLOAT);
  const tw_output product = tw_scope_op2(s, "MatMul", tw_scope_end(s, gather), tw_variable_read(s, m.variables[0]));
  const tw_output per_row = tw_scope_op2(s, "Sum", tw_scope_op1(s, "Square", product), tw_scope_scalar(s, TW_INT32, 1));
  const tw_output loss = tw_scope_op2(s, "Mean", per_row, tw_scope_ints(s, &axis, 1));
  tw_gradient gradients[2];
  tw_scope_gradients(s, loss, m.variables, 2, gradients);
  if (parts > 0) m.add = tw_accumulate_gradients(s, NULL, gradients, 2, parts);
  tw_sgd sgd;
  tw_sgd_init(&sgd);
  sgd.learning_rate = tw_scope_scalar(s, TW_FLOAT, 0.5);
  m.train = tw_train_sgd(s, m.variables, gradients, 2, &sgd);
  m.init = tw_variable_initializer(s, "init");
  OK(tw_scope_finish(s));
  OK(tw_session_create(m.graph, options, 1, &m.session));
  run(m.session, m.init);
  return m;
}

static void run_on(const model* m, const tw_operation* target, int first, int n) {
  int32_t ids[kBatch];
  const int64_t dims[] = {n};
  for (int i = 0; i < n; ++i) ids[i] = (first + i) * (first + i) % kRows;
  tw_tensor* fed = NULL;
  OK(tw_tensor_create_copy(TW_INT32, dims, 1, ids, (uint64_t)n * sizeof(int32_t), &fed));
  const tw_signature what = {.size = sizeof what, .feeds = &m->ids, .n_feeds = 1, .targets = &target, .n_targets = 1};
  OK(tw_session_run(m->session, &what, &fed, NULL, NULL));
  tw_tensor_release(fed);
}

static void same_variables(const model* a, const model* b) {
  const char* names[] = {"w", "e"};
  for (int k = 0; k < 2; ++k) {
    tw_tensor* values[2] = {NULL, NULL};
    const model* of[] = {a, b};
    for (int i = 0; i < 2; ++i) {
      tw_scope* s = tw_scope_create(of[i]->graph, NULL);
      const tw_output read = tw_variable_read(s, of[i]->variables[k]);
      OK(tw_scope_finish(s));
      values[i] = fetch(of[i]->session, 0, NULL, read);
    }
    for (int i = 0; values[0] && values[1] && i < (k ? kRows : kWidth) * kWidth; ++i) {
      const float x = ((const float*)tw_tensor_data(values[0]))[i], y = ((const float*)tw_tensor_data(values[1]))[i];
      if (!near(x, y, 1e-5)) printf("  %s[%d]: %g, not %g\n", names[k], i, x, y);
      CHECK(near(x, y, 1e-5));
    }
    tw_tensor_release(values[0]);
    tw_tensor_release(values[1]);
  }
}

static void free_model(model* m) {
  tw_session_destroy(m->session);
  tw_graph_destroy(m->graph);
}

static void SubBatchesGiveTheUpdateOfTheWholeBatch(void) {
  model whole = make("container=whole", 0), parts = make("container=parts", kParts);
  for (int step = 0; step < 3; ++step) {
    run_on(&whole, whole.train, step, kBatch);
    for (int k = 0; k < kParts; ++k) run_on(&parts, parts.add, step + k * (kBatch / kParts), kBatch / kParts);
    run(parts.session, parts.train);
    same_variables(&whole, &parts);
  }
  free_model(&whole);
  free_model(&parts);
}

static void TheUpdateWaitsForAllSubBatches(void) {
  model m = make("container=waits", kParts);
  for (int k = 0; k < kParts - 1; ++k) run_on(&m, m.add, k, 3);
  const tw_signature what = {.size = sizeof what, .targets = &m.train, .n_targets = 1};
  const tw_run_options late = {.size = sizeof late, .timeout_ns = 20 * 1000 * 1000};
  FAILS(tw_session_run(m.session, &what, NULL, &late, NULL), TW_DEADLINE_EXCEEDED, "TakeGradient");
  run_on(&m, m.add, kParts, 3);
  run(m.session, m.train); /* the earlier sums are still there */
  free_model(&m);
}

static void AGraphMayAccumulateSeveralThings(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, "net");
  for (int i = 0; i < 3; ++i) {
    tw_gradient g = {tw_scope_scalar(s, TW_FLOAT, i), 0};
    CHECK(tw_accumulate_gradients(s, i == 2 ? "other" : "sum", &g, 1, 2) != NULL);
  }
  OK(tw_scope_finish(s));
  tw_graph_destroy(graph);
}

static void WhatCannotBeAccumulatedIsRefused(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_gradient none = {0, 0};
  tw_scope* s = tw_scope_create(graph, NULL);
  CHECK(tw_accumulate_gradients(s, NULL, &none, 1, 2) == NULL);
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "there are no gradients");
  s = tw_scope_create(graph, NULL);
  tw_gradient integer = {tw_scope_scalar(s, TW_INT32, 1), 0};
  CHECK(tw_accumulate_gradients(s, NULL, &integer, 1, 2) == NULL);
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "no half, bfloat16, float or double");
  s = tw_scope_create(graph, NULL);
  CHECK(tw_accumulate_gradients(s, NULL, &integer, 1, 0) == NULL);
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "sub_batches is 0");
  tw_graph_destroy(graph);
}

MAIN(TEST(SubBatchesGiveTheUpdateOfTheWholeBatch), TEST(TheUpdateWaitsForAllSubBatches), TEST(AGraphMayAccumulateSeveralThings),
     TEST(WhatCannotBeAccumulatedIsRefused))
