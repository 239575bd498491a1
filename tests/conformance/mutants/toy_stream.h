/* Streams for the toy: one thread each, which runs enqueued work late and in order. Only copies
 * are enqueued. */
#ifndef MUTANTS_TOY_STREAM_H
#define MUTANTS_TOY_STREAM_H
#include <pthread.h>
#include <time.h>

#include "toy.h"

enum toy_work { TOY_COPY, TOY_SIGNAL, TOY_WAIT, TOY_CALL };

typedef struct toy_job {
  struct toy_job* next;
  enum toy_work work;
  tw_copy copy;
  tw_timeline* line;
  uint64_t value;
  void (*call)(void* arg);
  void* arg;
} toy_job;

typedef struct toy_stream {
  const tw_host* host;
  tw_timeline* line;
  pthread_t thread;
  pthread_mutex_t mu;
  pthread_cond_t changed;
  toy_job *first, **end;
  int closing, open_gates;
} toy_stream;

static UNUSED void toy_gate_opens(void* arg, const tw_status* why) {
  toy_stream* s = arg;
  (void)why;
  pthread_mutex_lock(&s->mu);
  ++s->open_gates;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mu);
}

static UNUSED void toy_do(toy_stream* s, const toy_job* j) {
  const struct timespec late = {0, 200000};
  if (j->work == TOY_COPY) {
    nanosleep(&late, NULL);
    toy_copy(s->host, NULL, &j->copy);
  } else if (j->work == TOY_CALL) {
    j->call(j->arg);
  } else if (j->work == TOY_SIGNAL) {
    s->host->timeline->signal(s->line, j->value);
  } else {
    if (j->line) s->host->timeline->when(j->line, j->value, toy_gate_opens, s); /* NULL: another call opens the gate */
    pthread_mutex_lock(&s->mu);
    while (!s->open_gates) pthread_cond_wait(&s->changed, &s->mu);
    --s->open_gates;
    pthread_mutex_unlock(&s->mu);
  }
}

static UNUSED void* toy_stream_run(void* arg) {
  toy_stream* s = arg;
  for (;;) {
    pthread_mutex_lock(&s->mu);
    while (!s->first && !s->closing) pthread_cond_wait(&s->changed, &s->mu);
    toy_job* j = s->first;
    if (j && !(s->first = j->next)) s->end = &s->first;
    pthread_mutex_unlock(&s->mu);
    if (!j) return NULL;
    toy_do(s, j);
    free(j);
  }
}

static UNUSED tw_status* toy_enqueue(const tw_host* h, toy_stream* s, toy_job job) {
  toy_job* j = malloc(sizeof *j);
  if (!j) return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("no memory for a job"));
  *j = job;
  pthread_mutex_lock(&s->mu);
  *s->end = j;
  s->end = &j->next;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mu);
  return NULL;
}

static UNUSED tw_status* toy_stream_create(const tw_host* h, void* self, const tw_stream_config* c, void** out_stream) {
  (void)self;
  toy_stream* s = calloc(1, sizeof *s);
  if (!s) return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("no memory for a stream"));
  s->host = h;
  s->line = c->line;
  s->end = &s->first;
  h->timeline->retain(c->line);
  pthread_mutex_init(&s->mu, NULL);
  pthread_cond_init(&s->changed, NULL);
  pthread_create(&s->thread, NULL, toy_stream_run, s);
  *out_stream = s;
  return NULL;
}

static UNUSED void toy_stream_destroy(const tw_host* h, void* stream) {
  toy_stream* s = stream;
  pthread_mutex_lock(&s->mu);
  s->closing = 1;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mu);
  pthread_join(s->thread, NULL);
  h->timeline->release(s->line);
  free(s);
}

static UNUSED tw_status* toy_stream_signal(const tw_host* h, void* stream, uint64_t value) {
  return toy_enqueue(h, stream, (toy_job){.work = TOY_SIGNAL, .value = value});
}

static UNUSED tw_status* toy_stream_wait(const tw_host* h, void* stream, tw_timeline* other, uint64_t value) {
  return toy_enqueue(h, stream, (toy_job){.work = TOY_WAIT, .line = other, .value = value});
}

static UNUSED tw_status* toy_stream_copy(const tw_host* h, void* self, const tw_copy* c) {
  return c->stream ? toy_enqueue(h, c->stream, (toy_job){.work = TOY_COPY, .copy = *c}) : toy_copy(h, self, c);
}

static UNUSED tw_stream_set toy_streams(void) {
  const tw_stream_set set = {TW_SIZED(tw_stream_set), toy_stream_create, toy_stream_destroy, toy_stream_signal, toy_stream_wait};
  return set;
}

/* A device with these streams; all other parts are correct. */
static UNUSED tw_status* toy_register_streams(tw_registrar* r, const tw_stream_set* set) {
  tw_device_def d = toy_device();
  d.copy = toy_stream_copy;
  d.streams = set;
  return tw_add_device(r, &d);
}
#endif
