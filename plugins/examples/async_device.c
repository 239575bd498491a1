/* An asynchronous device. Kernels and copies only enqueue work. Each stream has a thread that does the
 * work in order, and a timeline that tells when the work is complete.
 *
 *     cc -std=c11 -shared -fPIC -I<prefix>/include async_device.c -o libasync_device.so -lpthread
 *
 * A real device would use its hardware queue instead of the threads. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "thalweg/plugin/plugin.h"

/* A work item: work on up to three places in memory, a wait for another timeline, or a value to
 * signal. */
typedef struct item {
  struct item* next;
  struct stream* stream;
  void (*work)(const struct item* i); /* NULL: see is_wait */
  char *a, *b, *y;
  int64_t m, n, k, how;
  uint64_t value; /* the value to signal */
  int is_wait, reached;
  uint32_t failure; /* of the timeline that it waited for */
} item;

typedef struct stream {
  const tw_host* h;
  tw_timeline* line;
  pthread_t thread;
  pthread_mutex_t mutex; /* guards the next fields */
  pthread_cond_t changed;
  item *first, **last;
  int closing;
} stream;

static tw_status* full(const tw_host* h) { return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("no more memory")); }

/* ---- The thread ---- */

static item* take(stream* s) {
  pthread_mutex_lock(&s->mutex);
  while (!s->closing && !s->first) pthread_cond_wait(&s->changed, &s->mutex);
  item* i = s->first;
  if (i && !(s->first = i->next)) s->last = &s->first;
  pthread_mutex_unlock(&s->mutex);
  return i;
}
static uint32_t wait_for(stream* s, item* i) {
  pthread_mutex_lock(&s->mutex);
  while (!i->reached) pthread_cond_wait(&s->changed, &s->mutex);
  pthread_mutex_unlock(&s->mutex);
  return i->failure;
}
/* After a failure no work runs, but every value is signalled, because the host reuses memory after
 * that signal. */
static void* run(void* arg) {
  stream* s = arg;
  uint32_t failed = 0;
  for (item* i; (i = take(s)); free(i)) {
    if (i->is_wait) {
      const uint32_t code = wait_for(s, i);
      if (code && !failed) s->h->timeline->fail(s->line, tw_fail(s->h, failed = code, TW_S("the stream that was waited for failed")));
    } else if (!i->work) {
      s->h->timeline->signal(s->line, i->value);
    } else if (!failed) {
      i->work(i);
    }
  }
  return NULL;
}

/* ---- Streams ---- */

static void put(stream* s, item* i) {
  pthread_mutex_lock(&s->mutex);
  i->stream = s;
  *s->last = i;
  s->last = &i->next;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mutex);
}
static tw_status* stream_create(const tw_host* h, void* self, const tw_stream_config* c, void** out_stream) {
  stream* s = calloc(1, sizeof *s);
  (void)self;
  if (!s) return full(h);
  s->h = h, s->line = c->line, s->last = &s->first;
  pthread_mutex_init(&s->mutex, NULL);
  pthread_cond_init(&s->changed, NULL);
  h->timeline->retain(c->line);
  if (pthread_create(&s->thread, NULL, run, s) == 0) return *out_stream = s, NULL;
  h->timeline->release(c->line);
  free(s);
  return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("no thread for a stream"));
}
static void stream_destroy(const tw_host* h, void* stream_) {
  stream* s = stream_;
  pthread_mutex_lock(&s->mutex);
  s->closing = 1;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mutex);
  pthread_join(s->thread, NULL);
  h->timeline->release(s->line);
  pthread_cond_destroy(&s->changed);
  pthread_mutex_destroy(&s->mutex);
  free(s);
}
static tw_status* stream_signal(const tw_host* h, void* s, uint64_t value) {
  item* i = calloc(1, sizeof *i);
  if (!i) return full(h);
  i->value = value;
  return put(s, i), NULL;
}
static void reached(void* arg, const tw_status* why) {
  item* i = arg;
  stream* s = i->stream;
  pthread_mutex_lock(&s->mutex);
  i->failure = s->h->status->code(why);
  i->reached = 1;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mutex);
}
static tw_status* stream_wait(const tw_host* h, void* s, tw_timeline* other, uint64_t value) {
  item* i = calloc(1, sizeof *i);
  if (!i) return full(h);
  i->is_wait = 1;
  put(s, i);
  h->timeline->when(other, value, reached, i);
  return NULL;
}
/* Enqueues the item in the stream, or runs it at once if there is no stream. */
static tw_status* submit(const tw_host* h, void* queue, const item* what) {
  if (!queue) return what->work(what), NULL;
  item* i = malloc(sizeof *i);
  if (!i) return full(h);
  *i = *what;
  return put(queue, i), NULL;
}

/* ---- The device ---- */

static tw_status* enumerate(const tw_host* h, void* user, tw_device_list* to) {
  const tw_device_info d = {TW_SIZED(tw_device_info), TW_S("async-0"), TW_S("a thread that plays a device"), user, 0, 0};
  (void)h;
  return to->add(to, &d);
}
static tw_status* allocate(const tw_host* h, void* self, const tw_allocation* a, void** out_memory) {
  (void)self;
  void* memory = a->bytes > SIZE_MAX - a->align ? NULL : aligned_alloc(a->align, (a->bytes + a->align - 1) / a->align * a->align);
  if (!memory) return full(h);
  *out_memory = memory;
  return NULL;
}
static void release(const tw_host* h, void* self, void* memory, uint64_t bytes) {
  (void)h, (void)self, (void)bytes;
  free(memory);
}
static void copy_work(const item* i) { memcpy(i->y, i->a, (size_t)i->n); }
static tw_status* copy(const tw_host* h, void* self, const tw_copy* c) {
  (void)self;
  return submit(h, c->stream,
                &(item){.work = copy_work, .y = (char*)c->to + c->to_offset, .a = (char*)c->from + c->from_offset, .n = (int64_t)c->bytes});
}

/* ---- Kernels. The frame ends before the work is done, so the work's data is copied. ---- */

static char* at(const tw_view* v) { return (char*)v->data + v->offset; }
static tw_status* unary(const tw_frame* f, void (*work)(const item* i)) {
  return submit(f->host, f->stream, &(item){.work = work, .a = at(f->in[0]), .y = at(f->out[0]), .n = (int64_t)f->in[0]->count});
}
#define UNARY(name, expression)                       \
  static void name##_work(const item* i) {            \
    for (int64_t k = 0; k < i->n; ++k) {              \
      const float x = ((const float*)(void*)i->a)[k]; \
      ((float*)(void*)i->y)[k] = (expression);        \
    }                                                 \
  }                                                   \
  static tw_status* name(const tw_frame* f) { return unary(f, name##_work); }
UNARY(negate, -x)
UNARY(square, x* x)
UNARY(relu, x < 0 ? 0 : x)

static tw_status* matmul_create(const tw_node* n, void** out_state) {
  const uint8_t* a = tw_find_attr(n->attrs, n->n_attrs, TW_S("transpose_a"))->data;
  const uint8_t* b = tw_find_attr(n->attrs, n->n_attrs, TW_S("transpose_b"))->data;
  *out_state = (void*)(uintptr_t)(*a + 2 * *b);
  return NULL;
}
static void matmul_work(const item* w) {
  const float *a = (const void*)w->a, *b = (const void*)w->b;
  const int64_t ta = w->how & 1, tb = w->how & 2;
  for (int64_t i = 0; i < w->m; ++i) {
    for (int64_t j = 0; j < w->n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < w->k; ++p) sum += (double)a[ta ? p * w->m + i : i * w->k + p] * (double)b[tb ? j * w->k + p : p * w->n + j];
      ((float*)(void*)w->y)[i * w->n + j] = (float)sum;
    }
  }
}
static tw_status* matmul(const tw_frame* f) {
  const int64_t how = (int64_t)(uintptr_t)f->state, *sizes = f->out[0]->dims, k = f->in[0]->dims[!(how & 1)];
  const item w = {
      .work = matmul_work, .a = at(f->in[0]), .b = at(f->in[1]), .y = at(f->out[0]), .m = sizes[0], .n = sizes[1], .k = k, .how = how};
  return submit(f->host, f->stream, &w);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_stream_set streams = {TW_SIZED(tw_stream_set), stream_create, stream_destroy, stream_signal, stream_wait};
  const tw_device_def d = {TW_SIZED(tw_device_def), TW_S("ASYNC"), .enumerate = enumerate, .allocate = allocate,
                           .release = release,      .copy = copy,  .streams = &streams};
  const tw_kernel_def kernels[] = {
      {TW_SIZED(tw_kernel_def), TW_S("Neg(float) @ASYNC; capture_safe; inplace y=x"), .execute = negate},
      {TW_SIZED(tw_kernel_def), TW_S("Square(float) @ASYNC; capture_safe; inplace y=x"), .execute = square},
      {TW_SIZED(tw_kernel_def), TW_S("Relu(float) @ASYNC; capture_safe"), .execute = relu},
      {TW_SIZED(tw_kernel_def), TW_S("MatMul(float, float) @ASYNC; capture_safe"), .create = matmul_create, .execute = matmul}};
  (void)h, (void)out_instance;
  TW_TRY(tw_add_device(r, &d));
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; ++i) TW_TRY(tw_add_kernel(r, &kernels[i]));
  return NULL;
}
TW_PLUGIN("org.example.async", "1.0", init)
