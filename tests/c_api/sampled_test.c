/* Losses over sampled classes. If every class is sampled once, each has an expected count of
 * one. The sampled softmax is then the softmax over all classes, and the other loss is the sum
 * of logistic losses; both have formulas. */
#include "check.h"

enum { BATCH = 3, N = 2, CLASSES = 5 };

static const float weights_of[CLASSES * N] = {0.5f, -1, 0.25f, 2, -0.75f, 1, 1.5f, 0.5f, -1.25f, -0.5f};
static const float biases_of[CLASSES] = {0.1f, -0.2f, 0.3f, 0, -0.4f};
static const float inputs_of[BATCH * N] = {1, 0.5f, -0.75f, 2, 0.25f, -1};

typedef struct net {
  tw_graph* graph;
  tw_scope* s;
  tw_output weights, biases, labels, inputs;
} net;

static tw_output constant(tw_scope* s, uint32_t dtype, int64_t rows, int64_t columns, const void* values, uint64_t bytes) {
  const int64_t dims[] = {rows, columns};
  tw_tensor* tensor = NULL;
  OK(tw_tensor_create_copy(dtype, dims, columns ? 2 : 1, values, bytes, &tensor));
  const tw_output made = tw_scope_constant(s, tensor);
  tw_tensor_release(tensor);
  return made;
}

/* variables: weights and biases are variables; else they are values. */
static net new_net(const int64_t* labels, int64_t num_true, int variables) {
  net n = {0};
  OK(tw_graph_create(NULL, &n.graph));
  n.s = tw_scope_create(n.graph, NULL);
  n.weights = constant(n.s, TW_FLOAT, CLASSES, N, weights_of, sizeof weights_of);
  n.biases = constant(n.s, TW_FLOAT, CLASSES, 0, biases_of, sizeof biases_of);
  if (variables) {
    n.weights = tw_variable_create(n.s, "weights", n.weights);
    n.biases = tw_variable_create(n.s, "biases", n.biases);
  }
  n.labels = constant(n.s, TW_INT64, BATCH, num_true, labels, (uint64_t)(BATCH * num_true) * sizeof *labels);
  n.inputs = constant(n.s, TW_FLOAT, BATCH, N, inputs_of, sizeof inputs_of);
  return n;
}

static tw_output all_classes(const net* n, int64_t num_true) {
  tw_op* op = tw_scope_begin(n->s, "AllCandidateSampler", NULL);
  tw_op_add_input(op, n->labels);
  tw_op_set_int(op, "num_true", num_true);
  tw_op_set_int(op, "num_sampled", CLASSES);
  tw_op_set_bool(op, "unique", 1);
  return tw_scope_end(n->s, op);
}

static double logit(int row, int64_t k) {
  return (double)inputs_of[row * N] * weights_of[k * N] + (double)inputs_of[row * N + 1] * weights_of[k * N + 1] + biases_of[k];
}

static double softplus(double x) { return log1p(exp(x)); }

static void check_losses(tw_session* session, tw_output loss, const double* wanted) {
  tw_tensor* t = fetch(session, 0, NULL, loss);
  CHECK(t && tw_tensor_count(t) == BATCH);
  for (int row = 0; t && row < BATCH; ++row) {
    const float got = ((const float*)tw_tensor_data(t))[row];
    CHECK(near(got, wanted[row], 1e-5));
  }
  tw_tensor_release(t);
}

static void OverAllClassesTheLossesHaveFormulas(void) {
  const int64_t one[BATCH] = {1, 4, 1}, two[BATCH * 2] = {1, 3, 4, 0, 1, 2};
  for (int kind = 0; kind < 8; ++kind) {
    const int64_t num_true = kind & 1 ? 2 : 1, *labels = kind & 1 ? two : one;
    net n = new_net(labels, num_true, kind & 2);
    tw_sampled_loss options;
    tw_sampled_loss_init(&options);
    options.candidates = all_classes(&n, num_true);
    const tw_output loss = (kind & 4 ? tw_nce : tw_sampled_softmax)(n.s, n.weights, n.biases, n.labels, n.inputs, &options);
    const tw_operation* init = tw_variable_initializer(n.s, "init");
    tw_session* session = NULL;
    OK(tw_scope_finish(n.s));
    OK(tw_session_create(n.graph, NULL, 0, &session));
    run(session, init);
    double wanted[BATCH];
    for (int row = 0; row < BATCH; ++row) {
      double sum = 0, all = 0, right = 0;
      for (int64_t k = 0; k < CLASSES; ++k) sum += exp(logit(row, k));
      for (int64_t k = 0; k < CLASSES; ++k) all += softplus(logit(row, k));
      for (int64_t j = 0; j < num_true; ++j) right += logit(row, labels[row * num_true + j]) / (double)num_true;
      wanted[row] = kind & 4 ? all - right : log(sum) - right;
    }
    check_losses(session, loss, wanted);
    tw_session_destroy(session);
    tw_graph_destroy(n.graph);
  }
}

/* keep_hits: a true class that is also sampled appears twice in the sum. */
static void HitsThatAreKeptCountTwice(void) {
  const int64_t labels[BATCH] = {1, 4, 1};
  net n = new_net(labels, 1, 0);
  tw_sampled_loss options;
  tw_sampled_loss_init(&options);
  options.candidates = all_classes(&n, 1);
  options.keep_hits = 1;
  const tw_output loss = tw_sampled_softmax(n.s, n.weights, n.biases, n.labels, n.inputs, &options);
  tw_session* session = NULL;
  OK(tw_scope_finish(n.s));
  OK(tw_session_create(n.graph, NULL, 0, &session));
  double wanted[BATCH];
  for (int row = 0; row < BATCH; ++row) {
    double sum = exp(logit(row, labels[row]));
    for (int64_t k = 0; k < CLASSES; ++k) sum += exp(logit(row, k));
    wanted[row] = log(sum) - logit(row, labels[row]);
  }
  check_losses(session, loss, wanted);
  tw_session_destroy(session);
  tw_graph_destroy(n.graph);
}

static void TrainingByDrawnClassesLowersTheWholeLoss(void) {
  const int64_t labels[BATCH] = {1, 4, 2};
  net n = new_net(labels, 1, 1);
  tw_sampled_loss options;
  tw_sampled_loss_init(&options);
  options.num_sampled = 2;
  options.seed = 5;
  const tw_output zero = tw_scope_scalar(n.s, TW_INT32, 0), weights[] = {n.weights, n.biases};
  const tw_output drawn = tw_sampled_softmax(n.s, n.weights, n.biases, n.labels, n.inputs, &options);
  tw_gradient gradients[2];
  tw_scope_gradients(n.s, tw_scope_op2(n.s, "Mean", drawn, zero), weights, 2, gradients);
  CHECK(gradients[0].rows && gradients[1].rows);
  tw_sgd sgd;
  tw_sgd_init(&sgd);
  sgd.learning_rate = tw_scope_scalar(n.s, TW_FLOAT, 0.5);
  const tw_operation* train = tw_train_sgd(n.s, weights, gradients, 2, &sgd);
  options.candidates = all_classes(&n, 1);
  const tw_output whole = tw_scope_op2(n.s, "Mean", tw_sampled_softmax(n.s, n.weights, n.biases, n.labels, n.inputs, &options), zero);
  const tw_operation* init = tw_variable_initializer(n.s, "init");
  tw_session* session = NULL;
  OK(tw_scope_finish(n.s));
  OK(tw_session_create(n.graph, NULL, 0, &session));
  run(session, init);
  float losses[2] = {0};
  for (int k = 0; k < 2; ++k) {
    tw_tensor* t = fetch(session, 0, NULL, whole);
    if (t) losses[k] = *(const float*)tw_tensor_data(t);
    tw_tensor_release(t);
    for (int step = 0; k == 0 && step < 150; ++step) run(session, train);
  }
  CHECK(losses[0] > 0.5f && losses[1] < 0.2f * losses[0]);
  tw_session_destroy(session);
  tw_graph_destroy(n.graph);
}

static void MistakesAreNamed(void) {
  const int64_t labels[BATCH] = {1, 4, 1}, unknown[] = {-1, -1};
  const char* const says[] = {"num_sampled", "labels", "classes", "tw_sampled_loss", "num_sampled"};
  for (int which = 0; which < 5; ++which) {
    net n = new_net(labels, 1, 0);
    tw_sampled_loss options;
    tw_sampled_loss_init(&options);
    if (which == 0) options.num_sampled = 0;
    if (which == 1) n.labels = tw_scope_placeholder(n.s, "labels", TW_INT64, unknown, 2);
    if (which == 2) n.weights = tw_scope_placeholder(n.s, "weights", TW_FLOAT, unknown, 2);
    if (which == 3) options.size = 8;
    if (which == 4) options.num_sampled = CLASSES + 1;
    CHECK((which % 2 ? tw_nce : tw_sampled_softmax)(n.s, n.weights, n.biases, n.labels, n.inputs, &options) == 0);
    FAILS(tw_scope_finish(n.s), TW_INVALID_ARGUMENT, says[which]);
    tw_graph_destroy(n.graph);
  }
}

MAIN(TEST(OverAllClassesTheLossesHaveFormulas), TEST(HitsThatAreKeptCountTwice), TEST(TrainingByDrawnClassesLowersTheWholeLoss),
     TEST(MistakesAreNamed))
