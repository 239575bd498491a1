/* The toy's own resource, a tally of numbers, with ops that make it, add to it and read it. */
#ifndef MUTANTS_TOY_STATE_H
#define MUTANTS_TOY_STATE_H
#include "toy.h"

#define TOY_TALLY "org.example.mutant.tally"

typedef struct toy_tally {
  uint64_t numbers;
  double sum;
} toy_tally;

static UNUSED void toy_tally_destroy(const tw_host* h, void* object) {
  (void)h;
  free(object);
}

static UNUSED tw_status* toy_tally_save(const tw_host* h, const void* object, tw_sink* to) {
  (void)h;
  return to->put(to, object, sizeof(toy_tally));
}

static UNUSED tw_status* toy_tally_restore(const tw_host* h, void* user, uint64_t format, tw_source* from, void** out_object) {
  toy_tally t;
  uint64_t n = 0, got = 1;
  (void)user, (void)format;
  for (; got && n < sizeof t; n += got) TW_TRY(from->get(from, (char*)&t + n, sizeof t - n, &got));
  if (n != sizeof t) return tw_fail(h, TW_DATA_LOSS, TW_S("these bytes are no tally"));
  toy_tally* copy = malloc(sizeof t);
  if (!copy) return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("no memory for a tally"));
  *copy = t;
  *out_object = copy;
  return NULL;
}

static UNUSED tw_status* toy_tally_make(const tw_host* h, void* arg, void** out_object) {
  (void)arg;
  *out_object = calloc(1, sizeof(toy_tally));
  return *out_object ? NULL : tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("no memory for a tally"));
}

/* The node's name is the name of the resource. */
typedef struct toy_name {
  uint64_t len;
  char text[64];
} toy_name;

static UNUSED tw_status* toy_name_create(const tw_node* n, void** out_state) {
  toy_name* name = calloc(1, sizeof *name);
  name->len = n->name_len < sizeof name->text ? n->name_len : sizeof name->text;
  memcpy(name->text, n->name, name->len);
  *out_state = name;
  return NULL;
}
static UNUSED void toy_name_destroy(const tw_host* h, void* state) {
  (void)h;
  free(state);
}
static UNUSED tw_status* toy_tally_open(const tw_frame* f) {
  const toy_name* name = f->state;
  const tw_resource_key key = {TW_SIZED(tw_resource_key), TW_S(TOY_TALLY), "", 0, name->text, name->len};
  return f->host->resource->open(f, &key, toy_tally_make, NULL, 0);
}

static UNUSED tw_status* toy_tally_add(const tw_frame* f) {
  toy_tally* t = f->in[0]->data;
  if (f->in[0]->dtype != TW_RESOURCE || !t) return tw_fail(f->host, TW_INVALID_ARGUMENT, TW_S("it is no tally"));
  for (uint64_t i = 0; i < f->in[1]->count; ++i) t->sum += (double)toy_in(f, 1)[i];
  t->numbers += f->in[1]->count;
  return NULL;
}

static UNUSED tw_status* toy_tally_sum(const tw_frame* f) {
  const toy_tally* t = f->in[0]->data;
  if (f->in[0]->dtype != TW_RESOURCE) return tw_fail(f->host, TW_INVALID_ARGUMENT, TW_S("it is no tally"));
  toy_out(f, 0)[0] = (float)t->sum;
  return NULL;
}

static UNUSED tw_resource_def toy_tally_type(void) {
  const tw_resource_def d = {TW_SIZED(tw_resource_def), TW_S(TOY_TALLY), 1, NULL, toy_tally_destroy, toy_tally_save, toy_tally_restore};
  return d;
}

static UNUSED tw_status* toy_register_tally(tw_registrar* r, const tw_resource_def* type, tw_status* (*add)(const tw_frame* f),
                                            tw_status* (*sum)(const tw_frame* f)) {
  const tw_op_def make_op = {TW_SIZED(tw_op_def), TW_S("Tally() -> (tally: resource[]); stateful; once; no_gradient \"no inputs\"")};
  const tw_op_def add_op = {TW_SIZED(tw_op_def),
                            TW_S("TallyAdd(tally: resource[], x: float[*s]) -> (); stateful; no_gradient \"no outputs\"")};
  const tw_op_def sum_op = {TW_SIZED(tw_op_def), TW_S("TallySum(tally: resource[]) -> (sum: float[]); stateful; no_gradient \"of state\"")};
  const tw_kernel_def make_kernel = {TW_SIZED(tw_kernel_def), TW_S("Tally @CPU"), .create = toy_name_create, .execute = toy_tally_open,
                                     .destroy = toy_name_destroy};
  const tw_kernel_def add_kernel = {TW_SIZED(tw_kernel_def), TW_S("TallyAdd @CPU; update tally"), .execute = add ? add : toy_tally_add};
  const tw_kernel_def sum_kernel = {TW_SIZED(tw_kernel_def), TW_S("TallySum @CPU; read tally"), .execute = sum ? sum : toy_tally_sum};
  TW_TRY(tw_add_resource(r, type));
  TW_TRY(tw_add_op(r, &make_op));
  TW_TRY(tw_add_op(r, &add_op));
  TW_TRY(tw_add_op(r, &sum_op));
  TW_TRY(tw_add_kernel(r, &make_kernel));
  TW_TRY(tw_add_kernel(r, &add_kernel));
  return tw_add_kernel(r, &sum_kernel);
}
#endif
