/* Single products and convolutions, fed and not fetched, so that a step is the kernel plus the
 * runtime's overhead. */
#include <stdlib.h>
#include <string.h>

#include "operands.h"
#include "thalweg_worker.h"

/* One node with two fed inputs. */
typedef struct node {
  tw_graph* graph;
  tw_session* session;
  tw_scope* scope;
  tw_output feeds[2];
  tw_output result;
  const tw_operation* operation;
  tw_tensor* values[2];
} node;

static void begin(node* n) {
  check(tw_graph_create(runtime, &n->graph));
  n->scope = tw_scope_create(n->graph, NULL);
}

static void feed(node* n, int i, const int64_t* dims, uint32_t rank, int small) {
  int64_t count = 1;
  for (uint32_t d = 0; d < rank; ++d) count *= dims[d];
  void* data = operand_create(count, small, i);
  n->feeds[i] = tw_scope_placeholder(n->scope, i ? "b" : "a", small ? TW_BFLOAT16 : TW_FLOAT, dims, rank);
  check(tw_tensor_create_copy(small ? TW_BFLOAT16 : TW_FLOAT, dims, rank, data, (uint64_t)count * (small ? 2 : 4), &n->values[i]));
  free(data);
}

static void end(node* n, tw_op* op) {
  n->operation = tw_scope_end_operation(n->scope, op);
  check(tw_scope_finish(n->scope));
  n->result = tw_operation_output(n->operation, 0);
  n->session = open_session(n->graph, NULL);
}

static void reply_sum(node* n, int small) {
  const tw_signature what = {.size = sizeof what, .feeds = n->feeds, .n_feeds = 2, .fetches = &n->result, .n_fetches = 1};
  tw_tensor* fetched;
  check(tw_session_run(n->session, &what, n->values, NULL, &fetched));
  worker_reply("%.17g", operand_sum(tw_tensor_data(fetched), (int64_t)tw_tensor_count(fetched), small));
  tw_tensor_release(fetched);
}

static void reply_time(node* n, int samples) {
  const tw_signature what = {.size = sizeof what, .feeds = n->feeds, .n_feeds = 2, .targets = &n->operation, .n_targets = 1};
  prepared p = {.feeds = {n->values[0], n->values[1]}};
  check(tw_callable_create(n->session, &what, &p.callable));
  worker_reply_time(run_prepared, &p, samples, worker_calls(run_prepared, &p), 1);
  tw_callable_destroy(p.callable);
}

static void forget(node* n) {
  tw_tensor_release(n->values[0]);
  tw_tensor_release(n->values[1]);
  tw_session_destroy(n->session);
  tw_graph_destroy(n->graph);
}

/* ---- Products ---- */

static node make_product(const product* p) {
  node n;
  begin(&n);
  const int64_t a[] = {p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k}, b[] = {p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n};
  feed(&n, 0, a, 2, p->small);
  feed(&n, 1, b, 2, p->small);
  tw_op* op = tw_scope_begin(n.scope, "MatMul", NULL);
  tw_op_add_input(op, n.feeds[0]);
  tw_op_add_input(op, n.feeds[1]);
  tw_op_set_bool(op, "transpose_a", (uint8_t)p->trans_a);
  tw_op_set_bool(op, "transpose_b", (uint8_t)p->trans_b);
  end(&n, op);
  return n;
}

void answer_product(const char* argument) {
  const product p = product_parse(argument);
  node n = make_product(&p);
  reply_time(&n, 9);
  forget(&n);
}

void answer_product_sum(const char* argument) {
  const product p = product_parse(argument);
  node n = make_product(&p);
  reply_sum(&n, p.small);
  forget(&n);
}

/* ---- Convolutions ---- */

static node make_convolution(const convolution* c) {
  node n;
  begin(&n);
  const int64_t o = convolution_out_size(c);
  const int64_t x[] = {c->n, c->size, c->size, c->in}, w[] = {c->window, c->window, c->in, c->out}, y[] = {c->n, o, o, c->out};
  const int filter = strcmp(c->kind, "filter") == 0, input = strcmp(c->kind, "input") == 0;
  feed(&n, 0, input ? w : x, 4, c->small);
  feed(&n, 1, filter || input ? y : w, 4, c->small);
  tw_op* op = tw_scope_begin(n.scope, input ? "Conv2DBackpropInput" : filter ? "Conv2DBackpropFilter" : "Conv2D", NULL);
  int32_t sizes[4];
  for (int i = 0; i < 4; ++i) sizes[i] = (int32_t)(input ? x[i] : w[i]);
  if (input) tw_op_add_input(op, tw_scope_ints(n.scope, sizes, 4));
  tw_op_add_input(op, n.feeds[0]);
  if (filter) tw_op_add_input(op, tw_scope_ints(n.scope, sizes, 4));
  tw_op_add_input(op, n.feeds[1]);
  const int64_t strides[] = {1, c->stride, c->stride, 1}, pads[] = {0, 0, c->padding, c->padding, c->padding, c->padding, 0, 0};
  tw_op_set_ints(op, "strides", strides, 4);
  tw_op_set_string(op, "padding", "EXPLICIT", 8);
  tw_op_set_ints(op, "explicit_paddings", pads, 8);
  end(&n, op);
  return n;
}

void answer_convolution(const char* argument) {
  const convolution c = convolution_parse(argument);
  node n = make_convolution(&c);
  reply_time(&n, 5);
  forget(&n);
}

void answer_convolution_sum(const char* argument) {
  const convolution c = convolution_parse(argument);
  node n = make_convolution(&c);
  reply_sum(&n, c.small);
  forget(&n);
}
