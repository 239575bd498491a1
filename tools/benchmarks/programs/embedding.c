/* Sparse look-up and update: gathers 1,024 rows of a table of 64 columns, and applies a step of
 * gradient descent to those rows, on the sum of squares times fixed factors. The rows change
 * from step to step, among 64 lists spread over the whole table. */
#include <stdio.h>

#include "thalweg_worker.h"

enum { kRows = 1024, kColumns = 64, kLists = 64, kTables = 4 };

typedef struct embedding {
  int64_t rows;
  tw_session* session;
  const tw_operation* init;
  tw_callable* step;
} embedding;

static embedding tables[kTables];
static tw_tensor* factors;

/* Returns the row numbers of list k, for a table of `rows` rows. pytorch_worker.py has the same
 * lists. */
static tw_tensor* list_of(int64_t rows, int k) {
  const int64_t dims[] = {kRows};
  int64_t data[kRows];
  for (uint32_t i = 0; i < kRows; ++i) data[i] = (int64_t)((uint32_t)(k * kRows + (int)i) * 2654435761u) % rows;
  tw_tensor* t;
  check(tw_tensor_create_copy(TW_INT64, dims, 1, data, sizeof data, &t));
  return t;
}

static tw_tensor* make_factors(void) {
  const int64_t dims[] = {kRows, kColumns};
  static float data[kRows * kColumns];
  for (int i = 0; i < kRows * kColumns; ++i) data[i] = (float)(i % 7) * 0.125f - 0.25f;
  tw_tensor* t;
  check(tw_tensor_create_copy(TW_FLOAT, dims, 2, data, sizeof data, &t));
  return t;
}

static tw_output table_of(tw_scope* s, int64_t rows) {
  const int32_t dims[] = {(int32_t)rows, kColumns};
  return tw_variable_create(s, "table", tw_scope_op2(s, "Fill", tw_scope_ints(s, dims, 2), tw_scope_scalar(s, TW_FLOAT, 0.5)));
}

static void make(embedding* e, int64_t rows) {
  tw_graph* graph;
  check(tw_graph_create(runtime, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const int64_t dims[] = {kRows, kColumns};
  const tw_output feeds[] = {tw_scope_placeholder(s, "rows", TW_INT64, dims, 1), tw_scope_placeholder(s, "factors", TW_FLOAT, dims, 2)};
  const tw_output table = table_of(s, rows);
  tw_op* gather = tw_scope_begin(s, "ResourceGather", NULL);
  tw_op_add_input(gather, table);
  tw_op_add_input(gather, feeds[0]);
  tw_op_set_type(gather, "dtype", TW_FLOAT);
  const int32_t axes[] = {0, 1};
  const tw_output products = tw_scope_op2(s, "Mul", tw_scope_op1(s, "Square", tw_scope_end(s, gather)), feeds[1]);
  const tw_output loss = tw_scope_op2(s, "Sum", products, tw_scope_ints(s, axes, 2));
  tw_gradient gradient;
  tw_scope_gradients(s, loss, &table, 1, &gradient);
  const tw_sgd sgd = {sizeof sgd, 0, tw_scope_scalar(s, TW_FLOAT, 0.01)};
  const tw_operation* train = tw_train_sgd(s, &table, &gradient, 1, &sgd);
  e->init = tw_variable_initializer(s, "init");
  check(tw_scope_finish(s));
  char option[64];
  snprintf(option, sizeof option, "container=embedding%lld", (long long)rows);
  e->session = open_session(graph, option);
  const tw_signature what = {
      .size = sizeof what, .feeds = feeds, .n_feeds = 2, .fetches = &loss, .n_fetches = 1, .targets = &train, .n_targets = 1};
  check(tw_callable_create(e->session, &what, &e->step));
  e->rows = rows;
}

static embedding* table_with(const char* argument) {
  const int64_t rows = worker_number(argument);
  for (int i = 0; i < kTables; ++i)
    if (tables[i].rows == rows) return &tables[i];
  worker_fail("embedding_load %lld comes first", (long long)rows);
}

static void start(const embedding* e) {
  const tw_signature what = {.size = sizeof what, .targets = &e->init, .n_targets = 1};
  check(tw_session_run(e->session, &what, NULL, NULL, NULL));
}

static double run_step(const embedding* e, tw_tensor* list) {
  tw_tensor *const feeds[] = {list, factors}, *loss;
  check(tw_callable_run(e->step, feeds, NULL, &loss));
  const double value = (double)*(const float*)tw_tensor_data(loss);
  tw_tensor_release(loss);
  return value;
}

/* The argument of all three functions is the number of rows of the table. */
void answer_embedding_load(const char* argument) {
  embedding* e = tables;
  while (e < tables + kTables && e->rows) ++e;
  if (e == tables + kTables) worker_fail("no room for more than %d tables", kTables);
  if (!factors) factors = make_factors();
  make(e, worker_number(argument));
  start(e);
  worker_reply("%d", 1);
}

/* Replies with the losses of the first five steps. */
void answer_embedding_losses(const char* argument) {
  const embedding* e = table_with(argument);
  start(e);
  double losses[5];
  for (int i = 0; i < 5; ++i) {
    tw_tensor* list = list_of(e->rows, i % 2); /* lists repeat, so that the losses show the updates */
    losses[i] = run_step(e, list);
    tw_tensor_release(list);
  }
  worker_reply("%.9g %.9g %.9g %.9g %.9g", losses[0], losses[1], losses[2], losses[3], losses[4]);
}

typedef struct round {
  const embedding* table;
  tw_tensor* lists[kLists];
  int next;
} round;

static void run_next(void* user) {
  round* r = user;
  run_step(r->table, r->lists[r->next++ % kLists]);
}

void answer_embedding_step(const char* argument) {
  round r = {table_with(argument), {0}, 0};
  for (int k = 0; k < kLists; ++k) r.lists[k] = list_of(r.table->rows, k);
  worker_reply_time(run_next, &r, 400, 1, 1);
  for (int k = 0; k < kLists; ++k) tw_tensor_release(r.lists[k]);
}
