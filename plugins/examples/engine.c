/* Kernels that hand their work to an engine: here a thread that does it in order. One timeline, which
 * the plugin makes, says how far the engine is; the host ends each call when the timeline reaches the
 * call's value.
 *
 *     cc -std=c11 -shared -fPIC -I<prefix>/include engine.c -o libengine.so -lpthread
 *
 * A real engine would be a library or a service with a queue of its own. */
#include <pthread.h>
#include <stdlib.h>

#include "thalweg/plugin/plugin.h"
#include "thalweg/plugin/timeline.h"

/* y = by * x */
typedef struct job {
  struct job* next;
  const float* x;
  float* y;
  uint64_t n, value;
  float by;
} job;

typedef struct engine {
  const tw_host* h;
  const tw_timeline_set* set;
  tw_timeline* line;
  pthread_t thread;
  pthread_mutex_t mutex; /* guards the next fields */
  pthread_cond_t changed;
  job *first, **last;
  uint64_t given; /* the value of the newest job */
  int closing;
} engine;

static tw_status* full(const tw_host* h) { return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("no more memory")); }

/* ---- The thread ---- */

static job* take(engine* e) {
  pthread_mutex_lock(&e->mutex);
  while (!e->closing && !e->first) pthread_cond_wait(&e->changed, &e->mutex);
  job* j = e->first;
  if (j && !(e->first = j->next)) e->last = &e->first;
  pthread_mutex_unlock(&e->mutex);
  return j;
}

static void* work(void* arg) {
  engine* e = (engine*)arg;
  for (job* j; (j = take(e)) != NULL; free(j)) {
    for (uint64_t i = 0; i < j->n; ++i) j->y[i] = j->by * j->x[i];
    e->h->timeline->signal(e->line, j->value);
  }
  return NULL;
}

/* ---- The kernel ---- */

/* Values are given out in the order of the queue, so the timeline only grows. */
static tw_status* execute(const tw_frame* f) {
  engine* e = (engine*)f->state;
  job* j = (job*)malloc(sizeof *j);
  if (!j) return full(f->host);
  j->next = NULL;
  j->x = (const float*)f->in[0]->data;
  j->by = *(const float*)f->in[1]->data;
  j->y = (float*)f->out[0]->data;
  j->n = f->in[0]->count;
  pthread_mutex_lock(&e->mutex);
  j->value = e->given + 1;
  /* First, because it may fail: a job in the queue cannot be taken back. */
  tw_status* s = e->set->complete_at(f, e->line, j->value);
  if (!s) {
    e->given = j->value;
    *e->last = j;
    e->last = &j->next;
    pthread_cond_signal(&e->changed);
  }
  pthread_mutex_unlock(&e->mutex);
  if (s) free(j);
  return s;
}

/* ---- The plugin ---- */

static void end(engine* e) {
  if (e->line) e->h->timeline->release(e->line);
  pthread_cond_destroy(&e->changed);
  pthread_mutex_destroy(&e->mutex);
  free(e);
}

static tw_status* add(tw_registrar* r, engine* e) {
  const tw_op_def op = {TW_SIZED(tw_op_def),
                        TW_S("EngineScale(x: float[*s], by: float[]) -> (y: float[*s]);"
                             "no_gradient \"an example\"; doc \"by * x, computed by a thread of the plugin\""),
                        NULL, NULL, NULL};
  TW_TRY(tw_add_op(r, &op));
  const tw_kernel_def kernel = {TW_SIZED(tw_kernel_def), TW_S("EngineScale @CPU; async"), e, NULL, execute, NULL, NULL, NULL};
  return tw_add_kernel(r, &kernel);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_timeline_set* set = (const tw_timeline_set*)h->query(h, TW_S(TW_TIMELINE_SET), 1);
  if (!set) return tw_fail(h, TW_UNIMPLEMENTED, TW_S("the host has no timelines for plugins; it is older than this plugin"));
  engine* e = (engine*)calloc(1, sizeof *e);
  if (!e) return full(h);
  e->h = h;
  e->set = set;
  e->last = &e->first;
  pthread_mutex_init(&e->mutex, NULL);
  pthread_cond_init(&e->changed, NULL);
  tw_status* s = set->create(h, &e->line);
  if (!s) s = add(r, e);
  if (!s && pthread_create(&e->thread, NULL, work, e)) s = tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("there is no thread for the engine"));
  if (s) end(e);
  if (!s) *out_instance = e;
  return s;
}

static void shut(const tw_host* h, void* instance) {
  engine* e = (engine*)instance;
  (void)h;
  pthread_mutex_lock(&e->mutex);
  e->closing = 1;
  pthread_cond_signal(&e->changed);
  pthread_mutex_unlock(&e->mutex);
  pthread_join(e->thread, NULL);
  end(e);
}

TW_PLUGIN_WITH("org.example.engine", "1.0", init, shut)
