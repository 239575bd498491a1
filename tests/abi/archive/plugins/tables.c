/* Ops that lean on many entries of the host's tables, for the archive: if one of them changes, these no longer answer what they did. */
#include <stdlib.h>

#include "thalweg/plugin/plugin.h"

/* Names(x) -> y: strings, scratch memory and an attribute of a list. */
static tw_status* prepare_names(const tw_node* n, void* state, uint64_t* out_scratch) {
  (void)n, (void)state;
  *out_scratch = 64;
  return NULL;
}

static tw_status* create_names(const tw_node* n, void** out_state) {
  const tw_attr* words = tw_find_attr(n->attrs, n->n_attrs, TW_S("words"));
  if (!words || words->count == 0) return tw_fail(n->host, TW_INVALID_ARGUMENT, TW_S("there are no words"));
  *out_state = malloc(1);
  if (!*out_state) return tw_fail(n->host, TW_RESOURCE_EXHAUSTED, TW_S("out of memory"));
  *(char*)*out_state = ((const tw_string*)words->data)[0].data[0];
  return NULL;
}

static tw_status* names(const tw_frame* f) {
  const int32_t* x = f->in[0]->data;
  for (uint64_t i = 0; i < f->in[0]->count; ++i) {
    char* text = f->scratch;
    text[0] = *(const char*)f->state;
    text[1] = (char)('0' + x[i]);
    TW_TRY(f->host->tensor->set_string(f->out[0]->tensor, i, text, 2));
  }
  return NULL;
}

static void destroy_names(const tw_host* h, void* state) {
  (void)h;
  free(state);
}

/* Positive(x) -> y: an output whose size only the values tell. */
static tw_status* positive(const tw_frame* f) {
  const float* x = f->in[0]->data;
  int64_t n = 0;
  for (uint64_t i = 0; i < f->in[0]->count; ++i) n += x[i] > 0;
  TW_TRY(f->host->tensor->allocate(f, 0, &n, 1));
  float* y = f->out[0]->data;
  for (uint64_t i = 0; i < f->in[0]->count; ++i) {
    if (x[i] > 0) *y++ = x[i];
  }
  return NULL;
}

/* Repeat(x) -> y: a shape rule, pieces on several threads, a gradient of constants and other ops. */
static tw_status* repeat_shape(const tw_shape_call* c) {
  const tw_graph_api* g = c->host->graph;
  const tw_attr* times = tw_find_attr(c->attrs, c->n_attrs, TW_S("times"));
  const int64_t n = g->dim(c->b, '*', c->in[0].dims[0], *(const int64_t*)times->data);
  g->set_shape(c->b, 0, &n, 1);
  return NULL;
}

static void copy_part(void* arg, uint64_t begin, uint64_t end) {
  const tw_frame* f = arg;
  const uint64_t n = f->in[0]->count;
  for (uint64_t i = begin; i < end; ++i) ((float*)f->out[0]->data)[i] = ((const float*)f->in[0]->data)[i % n];
}

static tw_status* repeat(const tw_frame* f) {
  TW_TRY(f->host->run->cancelled(f));
  if (f->in[0]->count == 0) return NULL;
  f->host->run->parallel(f, f->out[0]->count, 1, copy_part, (void*)f);
  return f->host->run->threads(f) && f->host->run->now(f->host) ? NULL : tw_fail(f->host, TW_INTERNAL, TW_S("no threads or no clock"));
}

static tw_status* repeat_gradient(const tw_grad_call* c) {
  const tw_graph_api* g = c->host->graph;
  const int64_t times = *(const int64_t*)tw_find_attr(c->attrs, c->n_attrs, TW_S("times"))->data;
  const int32_t rows[] = {(int32_t)times, -1}, axis = 0;
  const int64_t two = 2;
  tw_edge shaped[] = {g->dy(c->b, 0), g->constant(c->b, TW_INT32, &two, 1, rows, sizeof rows)};
  tw_edge summed[] = {g->emit(c->b, TW_S("Reshape"), shaped, 2, NULL, 0), g->constant(c->b, TW_INT32, NULL, 0, &axis, sizeof axis)};
  g->dx(c->b, 0, g->emit(c->b, TW_S("Sum"), summed, 2, NULL, 0));
  return NULL;
}

/* Later(x) -> y: an asynchronous kernel. */
static tw_status* later(const tw_frame* f) {
  for (uint64_t i = 0; i < f->in[0]->count; ++i) ((float*)f->out[0]->data)[i] = ((const float*)f->in[0]->data)[i] + 1;
  f->host->run->complete(f->host, f->token, NULL);
  return NULL;
}

/* Tally() -> handle, Count(handle, x) -> n: a resource that lives between steps. */
static tw_status* make_tally(const tw_host* h, void* arg, void** out_object) {
  (void)arg;
  *out_object = calloc(1, sizeof(int64_t));
  return *out_object ? NULL : tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("out of memory"));
}

static void destroy_tally(const tw_host* h, void* object) {
  (void)h;
  free(object);
}

static tw_status* tally(const tw_frame* f) {
  const tw_resource_key key = {TW_SIZED(tw_resource_key), TW_S("org.example.tally"), TW_S(""), TW_S("tally")};
  return f->host->resource->open(f, &key, make_tally, NULL, 0);
}

static tw_status* count(const tw_frame* f) {
  int64_t* total = f->in[0]->data;
  *total += *(const int64_t*)f->in[1]->data;
  *(int64_t*)f->out[0]->data = *total;
  return NULL;
}

/* Refuse(x) -> y: a failure with a cause. */
static tw_status* refuse(const tw_frame* f) {
  const tw_status_api* s = f->host->status;
  f->host->run->log(f->host, 0, TW_S("refusing"));
  tw_status* cause = s->make(f->host, TW_DATA_LOSS, TW_S("the cause"), NULL);
  if (s->code(cause) != TW_DATA_LOSS) return cause;
  return s->make(f->host, TW_OUT_OF_RANGE, TW_S("refused on purpose"), cause);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_op_def ops[] = {{TW_SIZED(tw_op_def), TW_S("Names(x: int32[*s]) -> (y: string[*s]); words: list(string)")},
                           {TW_SIZED(tw_op_def), TW_S("Positive(x: float[n]) -> (y: float[m])")},
                           {TW_SIZED(tw_op_def), TW_S("Repeat(x: float[n]) -> (y: float[m]); times: int >= 1"), .shape = repeat_shape,
                            .gradient = repeat_gradient},
                           {TW_SIZED(tw_op_def), TW_S("Later(x: float[*s]) -> (y: float[*s])")},
                           {TW_SIZED(tw_op_def), TW_S("Tally() -> (handle: resource[]); stateful; once")},
                           {TW_SIZED(tw_op_def), TW_S("Count(handle: resource[], x: int64[]) -> (n: int64[]); stateful")},
                           {TW_SIZED(tw_op_def), TW_S("Refuse(x: float[*s]) -> (y: float[*s])")}};
  const tw_kernel_def kernels[] = {{TW_SIZED(tw_kernel_def), TW_S("Names @CPU"), NULL, create_names, names, destroy_names, prepare_names},
                                   {TW_SIZED(tw_kernel_def), TW_S("Positive @CPU"), .execute = positive},
                                   {TW_SIZED(tw_kernel_def), TW_S("Repeat @CPU"), .execute = repeat},
                                   {TW_SIZED(tw_kernel_def), TW_S("Later @CPU; async"), .execute = later},
                                   {TW_SIZED(tw_kernel_def), TW_S("Tally @CPU; cheap"), .execute = tally},
                                   {TW_SIZED(tw_kernel_def), TW_S("Count @CPU; update handle"), .execute = count},
                                   {TW_SIZED(tw_kernel_def), TW_S("Refuse @CPU"), .execute = refuse}};
  const tw_resource_def resource = {TW_SIZED(tw_resource_def), TW_S("org.example.tally"), .format = 1, .destroy = destroy_tally};
  (void)out_instance;
  if (h->query(h, TW_S("no such set"), 1)) return tw_fail(h, TW_INTERNAL, TW_S("the host has a set that there is not"));
  TW_TRY(tw_add_resource(r, &resource));
  for (unsigned i = 0; i < sizeof ops / sizeof *ops; ++i) TW_TRY(tw_add_op(r, &ops[i]));
  for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; ++i) TW_TRY(tw_add_kernel(r, &kernels[i]));
  return NULL;
}
TW_PLUGIN("org.example.tables", "1.0", init)
