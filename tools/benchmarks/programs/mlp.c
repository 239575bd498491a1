/* A training step of the multi-layer perceptron 784-100-10 on a batch of 100: feeds pictures and
 * labels, fetches the loss, and updates the weights by gradient descent. Also times its five
 * matrix products alone. */
#include <stdlib.h>

#include "mlp_data.h"
#include "thalweg_worker.h"

typedef struct mlp {
  tw_graph* graph;
  tw_session* session;
  const tw_operation* init;
  prepared step;
} mlp;

static mlp on_cpu, on_null;

static tw_tensor* floats(const float* data, int64_t rows, int64_t columns) {
  const int64_t dims[] = {rows, columns}, *from = rows ? dims : dims + 1;
  tw_tensor* t;
  const int64_t count = (rows ? rows : 1) * columns;
  check(tw_tensor_create_copy(TW_FLOAT, from, rows ? 2 : 1, data, (uint64_t)count * sizeof(float), &t));
  return t;
}

/* rows: 0 makes a vector. */
static tw_output variable(tw_scope* s, const char* name, const float* data, int64_t rows, int64_t columns) {
  tw_tensor* initial = floats(data, rows, columns);
  const tw_output v = tw_variable_create(s, name, tw_scope_constant(s, initial));
  tw_tensor_release(initial);
  return v;
}

static tw_output dense(tw_scope* s, tw_output x, tw_output w, tw_output b) {
  return tw_scope_op2(s, "BiasAdd", tw_scope_op2(s, "MatMul", x, tw_variable_read(s, w)), tw_variable_read(s, b));
}

/* option: an option of the session. */
static void build(mlp* model, const mlp_data* d, const char* option) {
  check(tw_graph_create(runtime, &model->graph));
  tw_scope* s = tw_scope_create(model->graph, NULL);
  const int64_t x_dims[] = {kMlpBatch, kMlpIn}, y_dims[] = {kMlpBatch};
  const tw_output feeds[] = {tw_scope_placeholder(s, "x", TW_FLOAT, x_dims, 2), tw_scope_placeholder(s, "y", TW_INT32, y_dims, 1)};
  const tw_output w[] = {variable(s, "w1", d->w1, kMlpIn, kMlpHidden), variable(s, "b1", d->b1, 0, kMlpHidden),
                         variable(s, "w2", d->w2, kMlpHidden, kMlpOut), variable(s, "b2", d->b2, 0, kMlpOut)};
  const tw_output hidden = tw_scope_op1(s, "Relu", dense(s, feeds[0], w[0], w[1]));
  const int32_t axis = 0;
  const tw_output losses = tw_scope_op2(s, "SparseSoftmaxCrossEntropyWithLogits", dense(s, hidden, w[2], w[3]), feeds[1]);
  const tw_output loss = tw_scope_op2(s, "Mean", losses, tw_scope_ints(s, &axis, 1));
  tw_gradient gradients[4];
  tw_scope_gradients(s, loss, w, 4, gradients);
  const tw_sgd sgd = {sizeof sgd, 0, tw_scope_scalar(s, TW_FLOAT, 0.01)};
  const tw_operation* train = tw_train_sgd(s, w, gradients, 4, &sgd);
  model->init = tw_variable_initializer(s, "init");
  check(tw_scope_finish(s));
  model->session = open_session(model->graph, option);
  const tw_signature what = {
      .size = sizeof what, .feeds = feeds, .n_feeds = 2, .fetches = &loss, .n_fetches = 1, .targets = &train, .n_targets = 1};
  model->step.n_fetches = 1;
  check(tw_callable_create(model->session, &what, &model->step.callable));
  model->step.feeds[0] = floats(d->x, kMlpBatch, kMlpIn);
  check(tw_tensor_create_copy(TW_INT32, y_dims, 1, d->y, sizeof d->y, &model->step.feeds[1]));
}

static void initialise(const mlp* model) {
  if (!model->graph) worker_fail("mlp_load comes first");
  const tw_signature what = {.size = sizeof what, .targets = &model->init, .n_targets = 1};
  check(tw_session_run(model->session, &what, NULL, NULL, NULL));
}

static void load(mlp* model, const char* folder, const char* option) {
  mlp_data* d = malloc(sizeof *d);
  if (!d) worker_fail("out of memory");
  mlp_data_read(folder, d);
  build(model, d, option);
  free(d);
  initialise(model);
  worker_reply("%d", 1);
}

void answer_mlp_load(const char* argument) { load(&on_cpu, argument, NULL); }
void answer_mlp_null_load(const char* argument) { load(&on_null, argument, "device=NULL"); }

/* Replies with the losses of the first five steps. */
void answer_mlp_losses(const char* argument) {
  (void)argument;
  double losses[5];
  initialise(&on_cpu);
  for (int i = 0; i < 5; ++i) {
    tw_tensor* loss;
    check(tw_callable_run(on_cpu.step.callable, on_cpu.step.feeds, NULL, &loss));
    losses[i] = (double)*(const float*)tw_tensor_data(loss);
    tw_tensor_release(loss);
  }
  worker_reply("%.9g %.9g %.9g %.9g %.9g", losses[0], losses[1], losses[2], losses[3], losses[4]);
}

static void reply_steps(mlp* model, const char* argument) {
  initialise(model); /* all samples start at the same weights */
  worker_reply_time(run_prepared, &model->step, worker_number(argument), 1, 1);
}

void answer_mlp_step(const char* argument) { reply_steps(&on_cpu, argument); }
void answer_mlp_null_step(const char* argument) { reply_steps(&on_null, argument); }

/* ---- The products alone ---- */

static const tw_operation* product(tw_scope* s, tw_output a, tw_output b, uint8_t transpose_a, uint8_t transpose_b) {
  tw_op* op = tw_scope_begin(s, "MatMul", NULL);
  tw_op_add_input(op, a);
  tw_op_add_input(op, b);
  tw_op_set_bool(op, "transpose_a", transpose_a);
  tw_op_set_bool(op, "transpose_b", transpose_b);
  return tw_scope_end_operation(s, op);
}

/* Makes a value that the optimiser cannot compute in advance. */
static tw_output matrix(tw_scope* s, const char* name, int64_t rows, int64_t columns) {
  float* data = calloc((size_t)(rows * columns), sizeof(float));
  if (!data) worker_fail("out of memory");
  for (int64_t i = 0; i < rows * columns; ++i) data[i] = (float)(i % 7) * 0.125f;
  const tw_output v = variable(s, name, data, rows, columns);
  free(data);
  return tw_variable_read(s, v);
}

static prepared make_products(void) {
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, "products");
  const tw_output x = matrix(s, "x", kMlpBatch, kMlpIn), w1 = matrix(s, "w1", kMlpIn, kMlpHidden);
  const tw_output h = matrix(s, "h", kMlpBatch, kMlpHidden), w2 = matrix(s, "w2", kMlpHidden, kMlpOut);
  const tw_output dh = matrix(s, "dh", kMlpBatch, kMlpHidden), dl = matrix(s, "dl", kMlpBatch, kMlpOut);
  const tw_operation* products[] = {product(s, x, w1, 0, 0), product(s, h, w2, 0, 0), product(s, dl, w2, 0, 1), product(s, h, dl, 1, 0),
                                    product(s, x, dh, 1, 0)};
  const tw_operation* all = tw_scope_group(s, NULL, products, 5);
  const tw_operation* init = tw_variable_initializer(s, "init");
  check(tw_scope_finish(s));
  tw_session* session = open_session(graph, "container=products");
  const tw_signature start = {.size = sizeof start, .targets = &init, .n_targets = 1};
  check(tw_session_run(session, &start, NULL, NULL, NULL));
  prepared p = {0};
  const tw_signature what = {.size = sizeof what, .targets = &all, .n_targets = 1};
  check(tw_callable_create(session, &what, &p.callable));
  return p;
}

void answer_mlp_matmuls(const char* argument) {
  static prepared p;
  if (!p.callable) p = make_products();
  worker_reply_time(run_prepared, &p, worker_number(argument), 1, 1);
}
