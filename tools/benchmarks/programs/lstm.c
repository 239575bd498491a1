/* A training step of a language model of LSTM layers: feeds characters or words and their
 * successors, fetches the loss, and updates the weights by gradient descent. Its time steps are
 * unrolled or in a loop. tensorflow_worker.py has the same model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thalweg_worker.h"

enum { kModels = 16, kLayers = 2 };

typedef struct lstm {
  char name[64]; /* "loop LAYERS CELLS STEPS BATCH WORDS", or "unrolled ..." */
  int loop, layers, cells, steps, batch, words;
  tw_session* session;
  const tw_operation* init;
  prepared step;
} lstm;

static lstm models[kModels];

/* Pseudo-random numbers from -0.1 to 0.1; each seed gives others. */
static tw_output numbers(tw_scope* s, const char* name, uint32_t seed, int64_t rows, int64_t columns) {
  const int64_t dims[] = {rows, columns};
  float* data = malloc((size_t)(rows * columns) * sizeof *data);
  if (!data) worker_fail("out of memory");
  for (int64_t i = 0; i < rows * columns; ++i) data[i] = (float)(((uint32_t)i + seed) * 2654435761u >> 8) * (0.2f / (1 << 24)) - 0.1f;
  tw_tensor* t;
  check(tw_tensor_create_copy(TW_FLOAT, dims, 2, data, (uint64_t)(rows * columns) * sizeof *data, &t));
  free(data);
  const tw_output v = tw_variable_create(s, name, tw_scope_constant(s, t));
  tw_tensor_release(t);
  return v;
}

static tw_output zeros(tw_scope* s, const char* name, int32_t n) {
  return tw_variable_create(s, name, tw_scope_op2(s, "Fill", tw_scope_ints(s, &n, 1), tw_scope_scalar(s, TW_FLOAT, 0)));
}

static tw_output unrolled(tw_scope* s, const lstm* m, const tw_lstm_cell* cell, tw_output inputs) {
  tw_op* op = tw_scope_begin(s, "Unpack", NULL);
  tw_op_add_input(op, inputs);
  tw_op_set_int(op, "num", m->steps);
  const tw_output rows = tw_scope_end(s, op);
  tw_output *in = calloc((size_t)m->steps, sizeof *in), *out = calloc((size_t)m->steps, sizeof *out);
  if (!in || !out) worker_fail("out of memory");
  for (int t = 0; t < m->steps; ++t) in[t] = tw_scope_output(s, rows, (uint32_t)t);
  tw_lstm_unroll(s, cell, in, (uint32_t)m->steps, 0, 0, 0, out, NULL, NULL);
  const tw_output outputs = tw_scope_op(s, "Pack", out, (uint32_t)m->steps);
  free(in);
  free(out);
  return outputs;
}

static tw_output layer(tw_scope* s, const lstm* m, const tw_lstm_cell* cell, tw_output inputs) {
  if (!m->loop) return unrolled(s, m, cell, inputs);
  tw_output outputs = 0;
  tw_lstm_loop(s, cell, inputs, 0, 0, 0, &outputs, NULL, NULL);
  return outputs;
}

static tw_tensor* words_of(const lstm* m, int after) {
  const int64_t dims[] = {m->steps, m->batch};
  tw_tensor* t;
  check(tw_tensor_create(TW_INT32, dims, 2, &t));
  int32_t* data = tw_tensor_mutable_data(t);
  for (int i = 0; i < m->steps * m->batch; ++i) data[i] = (int32_t)((uint32_t)(i + after * m->batch) * 7919u % (uint32_t)m->words);
  return t;
}

static void build(lstm* m) {
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {m->steps, m->batch};
  const tw_output feeds[] = {tw_scope_placeholder(s, "x", TW_INT32, dims, 2), tw_scope_placeholder(s, "y", TW_INT32, dims, 2)};
  tw_output w[3 + 2 * kLayers], h;
  uint32_t n = 0;
  w[n++] = numbers(s, "embedding", 1, m->words, m->cells);
  w[n++] = numbers(s, "output/weights", 2, m->cells, m->words);
  w[n++] = zeros(s, "output/bias", m->words);
  h = tw_scope_op3(s, "GatherV2", tw_variable_read(s, w[0]), feeds[0], tw_scope_scalar(s, TW_INT32, 0));
  for (int i = 0; i < m->layers; ++i) {
    char name[32];
    tw_lstm_cell cell;
    tw_lstm_cell_init(&cell);
    snprintf(name, sizeof name, "kernel%d", i);
    cell.kernel = w[n++] = numbers(s, name, 3 + (uint32_t)i, 2 * m->cells, 4 * m->cells);
    snprintf(name, sizeof name, "bias%d", i);
    cell.bias = w[n++] = zeros(s, name, 4 * m->cells);
    h = layer(s, m, &cell, h);
  }
  const int32_t rows[] = {-1, m->cells}, flat = -1, axis = 0;
  h = tw_scope_op2(s, "Reshape", h, tw_scope_ints(s, rows, 2));
  const tw_output logits = tw_scope_op2(s, "BiasAdd", tw_scope_op2(s, "MatMul", h, tw_variable_read(s, w[1])), tw_variable_read(s, w[2]));
  const tw_output labels = tw_scope_op2(s, "Reshape", feeds[1], tw_scope_ints(s, &flat, 1));
  const tw_output losses = tw_scope_op2(s, "SparseSoftmaxCrossEntropyWithLogits", logits, labels);
  const tw_output loss = tw_scope_op2(s, "Mean", losses, tw_scope_ints(s, &axis, 1));
  tw_gradient gradients[3 + 2 * kLayers];
  tw_scope_gradients(s, loss, w, n, gradients);
  const tw_sgd sgd = {sizeof sgd, 0, tw_scope_scalar(s, TW_FLOAT, 0.1)};
  const tw_operation* train = tw_train_sgd(s, w, gradients, n, &sgd);
  m->init = tw_variable_initializer(s, "init");
  check(tw_scope_finish(s));
  char container[80];
  snprintf(container, sizeof container, "container=%s", m->name);
  for (char* c = container; *c; ++c)
    if (*c == ' ') *c = '_';
  m->session = open_session(graph, container);
  const tw_signature what = {
      .size = sizeof what, .feeds = feeds, .n_feeds = 2, .fetches = &loss, .n_fetches = 1, .targets = &train, .n_targets = 1};
  m->step.n_fetches = 1;
  check(tw_callable_create(m->session, &what, &m->step.callable));
  for (int i = 0; i < 2; ++i) m->step.feeds[i] = words_of(m, i);
}

/* Returns the model named `name`, with its initial weights. */
static lstm* model_of(const char* name) {
  lstm* m = models;
  while (m < models + kModels && m->name[0] && strcmp(m->name, name) != 0) ++m;
  if (m == models + kModels) worker_fail("there are too many models");
  if (!m->name[0]) {
    char kind[16];
    if (sscanf(name, "%15s %d %d %d %d %d", kind, &m->layers, &m->cells, &m->steps, &m->batch, &m->words) != 6 || m->layers > kLayers)
      worker_fail("'%s' is no model", name);
    snprintf(m->name, sizeof m->name, "%s", name);
    m->loop = strcmp(kind, "loop") == 0;
    build(m);
  }
  const tw_signature what = {.size = sizeof what, .targets = &m->init, .n_targets = 1};
  check(tw_session_run(m->session, &what, NULL, NULL, NULL));
  return m;
}

/* Replies with the losses of the first five steps. */
void answer_lstm_losses(const char* argument) {
  const lstm* m = model_of(argument);
  double losses[5];
  for (int i = 0; i < 5; ++i) {
    tw_tensor* loss;
    check(tw_callable_run(m->step.callable, m->step.feeds, NULL, &loss));
    losses[i] = (double)*(const float*)tw_tensor_data(loss);
    tw_tensor_release(loss);
  }
  worker_reply("%.9g %.9g %.9g %.9g %.9g", losses[0], losses[1], losses[2], losses[3], losses[4]);
}

/* "SAMPLES MODEL" */
void answer_lstm_step(const char* argument) {
  char* model;
  const long samples = strtol(argument, &model, 10);
  if (samples < 1 || *model++ != ' ') worker_fail("expected a number and a model, got '%s'", argument);
  worker_reply_time(run_prepared, &model_of(model)->step, (int)samples, 1, 1);
}
