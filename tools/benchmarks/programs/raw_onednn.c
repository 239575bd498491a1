/* Calls oneDNN as its manual recommends: weights reordered in advance to its preferred layout;
 * images channels last. */
#include <stdlib.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>

#include "libraries_worker.h"
#include "worker.h"

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void ok(dnnl_status_t status, const char* what) {
  if (status != dnnl_success) worker_fail("oneDNN: %s: status %d", what, (int)status);
}

static void start(void) {
  if (engine) return;
  ok(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine");
  ok(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "stream");
}

/* ---- sgemm ---- */

static struct {
  product p;
  const float *a, *b;
  float* c;
} now;

static void multiply(void* state) {
  (void)state;
  const product* p = &now.p;
  dnnl_sgemm(p->trans_a ? 'T' : 'N', p->trans_b ? 'T' : 'N', p->m, p->n, p->k, 1, now.a, p->trans_a ? p->m : p->k, now.b,
             p->trans_b ? p->k : p->n, 0, now.c, p->n);
}

work sgemm_product(const product* p, const void* a, const void* b) {
  if (p->small) worker_fail("sgemm is for float");
  now.p = *p;
  now.a = a;
  now.b = b;
  now.c = operand_create(p->m * p->n, 0, 2);
  const work w = {multiply, NULL, now.c, p->m * p->n};
  return w;
}

/* ---- Primitives ---- */

typedef struct run {
  dnnl_primitive_t primitive;
  dnnl_exec_arg_t args[4];
  int n;
} run;

static void execute(void* state) {
  const run* r = state;
  ok(dnnl_primitive_execute(r->primitive, stream, r->n, r->args), "execute");
}

static dnnl_memory_t memory(const dnnl_memory_desc_t* d, void* data) {
  dnnl_memory_t m;
  ok(dnnl_memory_create(&m, d, engine, data ? data : DNNL_MEMORY_ALLOCATE), "memory");
  return m;
}

static void add(run* r, int what, dnnl_memory_t m) {
  r->args[r->n].arg = what;
  r->args[r->n++].memory = m;
}

static dnnl_memory_t reordered(const dnnl_memory_desc_t* from, void* data, const dnnl_memory_desc_t* to) {
  dnnl_primitive_desc_t d;
  run r = {0};
  ok(dnnl_reorder_primitive_desc_create(&d, from, engine, to, engine, NULL), "reorder");
  ok(dnnl_primitive_create(&r.primitive, d), "reorder");
  const dnnl_memory_t m = memory(to, NULL);
  add(&r, DNNL_ARG_FROM, memory(from, data));
  add(&r, DNNL_ARG_TO, m);
  execute(&r);
  return m;
}

static dnnl_memory_desc_t matrix(int64_t rows, int64_t columns, int turned, int small) {
  dnnl_memory_desc_t d;
  const dnnl_dims_t dims = {rows, columns}, strides = {turned ? 1 : columns, turned ? rows : 1};
  ok(dnnl_memory_desc_init_by_strides(&d, 2, dims, small ? dnnl_bf16 : dnnl_f32, strides), "matrix");
  return d;
}

work matmul_product(const product* p, const void* a, const void* b) {
  start();
  const dnnl_memory_desc_t x = matrix(p->m, p->k, p->trans_a, p->small), y = matrix(p->k, p->n, p->trans_b, p->small),
                           z = matrix(p->m, p->n, 0, p->small);
  dnnl_matmul_desc_t op;
  dnnl_primitive_desc_t d;
  run* r = calloc(1, sizeof *r);
  ok(dnnl_matmul_desc_init(&op, &x, &y, NULL, &z), "matmul");
  ok(dnnl_primitive_desc_create(&d, &op, NULL, engine, NULL), "matmul");
  ok(dnnl_primitive_create(&r->primitive, d), "matmul");
  void* c = operand_create(p->m * p->n, p->small, 2);
  add(r, DNNL_ARG_SRC, memory(&x, (void*)a));
  add(r, DNNL_ARG_WEIGHTS, memory(&y, (void*)b));
  add(r, DNNL_ARG_DST, memory(&z, c));
  const work w = {execute, r, c, p->m * p->n};
  return w;
}

/* ---- Convolutions ---- */

static dnnl_memory_desc_t tensor(int64_t n, int64_t c, int64_t h, int64_t w, int small, dnnl_format_tag_t tag) {
  dnnl_memory_desc_t d;
  const dnnl_dims_t dims = {n, c, h, w};
  ok(dnnl_memory_desc_init_by_tag(&d, 4, dims, small ? dnnl_bf16 : dnnl_f32, tag), "tensor");
  return d;
}

static dnnl_primitive_desc_t describe(const convolution* c, dnnl_prop_kind_t kind, const dnnl_memory_desc_t* x, const dnnl_memory_desc_t* w,
                                      const dnnl_memory_desc_t* y, dnnl_primitive_desc_t hint) {
  const int64_t after = (convolution_out_size(c) - 1) * c->stride + c->window - c->size - c->padding;
  const dnnl_dims_t strides = {c->stride, c->stride}, dilates = {0, 0}, left = {c->padding, c->padding}, right = {after, after};
  dnnl_convolution_desc_t op;
  dnnl_primitive_desc_t d;
  const dnnl_alg_kind_t direct = dnnl_convolution_direct;
  if (kind == dnnl_forward_training)
    ok(dnnl_dilated_convolution_forward_desc_init(&op, kind, direct, x, w, NULL, y, strides, dilates, left, right), "convolution");
  else if (kind == dnnl_backward_data)
    ok(dnnl_dilated_convolution_backward_data_desc_init(&op, direct, x, w, y, strides, dilates, left, right), "convolution");
  else
    ok(dnnl_dilated_convolution_backward_weights_desc_init(&op, direct, x, w, NULL, y, strides, dilates, left, right), "convolution");
  ok(dnnl_primitive_desc_create(&d, &op, NULL, engine, hint), "convolution");
  return d;
}

/* The result in our layout, so that sums can be compared; the conversion is not timed. */
typedef struct turned {
  run convolution, reorder;
  int is_turned;
} turned;

static void execute_both(void* state) {
  turned* t = state;
  execute(&t->convolution);
  if (!t->reorder.primitive || t->is_turned) return;
  execute(&t->reorder);
  t->is_turned = 1;
}

work onednn_convolution(const convolution* c) {
  start();
  const int filter = strcmp(c->kind, "filter") == 0, input = strcmp(c->kind, "input") == 0;
  const int64_t o = convolution_out_size(c), in = c->n * c->size * c->size * c->in, weights = c->window * c->window * c->in * c->out;
  const int64_t out = c->n * o * o * c->out;
  const dnnl_memory_desc_t x = tensor(c->n, c->in, c->size, c->size, c->small, dnnl_nhwc),
                           y = tensor(c->n, c->out, o, o, c->small, dnnl_nhwc),
                           plain = tensor(c->out, c->in, c->window, c->window, c->small, dnnl_hwio),
                           any = tensor(c->out, c->in, c->window, c->window, c->small, dnnl_format_tag_any);
  const dnnl_primitive_desc_t forward = describe(c, dnnl_forward_training, &x, &any, &y, NULL);
  const dnnl_primitive_desc_t d = filter  ? describe(c, dnnl_backward_weights, &x, &any, &y, forward)
                                  : input ? describe(c, dnnl_backward_data, &x, &any, &y, forward)
                                          : forward;
  const dnnl_memory_desc_t* best = dnnl_primitive_desc_query_md(d, filter ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
  turned* t = calloc(1, sizeof *t);
  ok(dnnl_primitive_create(&t->convolution.primitive, d), "convolution");
  void* result = operand_create(filter ? weights : input ? in : out, c->small, 2);
  if (filter) {
    const dnnl_memory_t mine = memory(best, NULL);
    dnnl_primitive_desc_t back;
    ok(dnnl_reorder_primitive_desc_create(&back, best, engine, &plain, engine, NULL), "reorder");
    ok(dnnl_primitive_create(&t->reorder.primitive, back), "reorder");
    add(&t->reorder, DNNL_ARG_FROM, mine);
    add(&t->reorder, DNNL_ARG_TO, memory(&plain, result));
    add(&t->convolution, DNNL_ARG_SRC, memory(&x, operand_create(in, c->small, 0)));
    add(&t->convolution, DNNL_ARG_DIFF_DST, memory(&y, operand_create(out, c->small, 1)));
    add(&t->convolution, DNNL_ARG_DIFF_WEIGHTS, mine);
  } else {
    add(&t->convolution, DNNL_ARG_WEIGHTS, reordered(&plain, operand_create(weights, c->small, input ? 0 : 1), best));
    if (input) {
      add(&t->convolution, DNNL_ARG_DIFF_DST, memory(&y, operand_create(out, c->small, 1)));
      add(&t->convolution, DNNL_ARG_DIFF_SRC, memory(&x, result));
    } else {
      add(&t->convolution, DNNL_ARG_SRC, memory(&x, operand_create(in, c->small, 0)));
      add(&t->convolution, DNNL_ARG_DST, memory(&y, result));
    }
  }
  const work w = {execute_both, t, result, filter ? weights : input ? in : out};
  return w;
}
