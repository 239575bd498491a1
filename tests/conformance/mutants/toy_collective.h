/* Collectives through the store: each member stores its values and reads those of the others, on
 * a thread per operation. */
#ifndef MUTANTS_TOY_COLLECTIVE_H
#define MUTANTS_TOY_COLLECTIVE_H
#include <pthread.h>
#include <stdio.h>

#include "toy.h"

enum toy_operation { TOY_REDUCE, TOY_BROADCAST, TOY_GATHER, TOY_SCATTER, TOY_EXCHANGE };

typedef struct toy_group {
  const tw_host* host;
  tw_group_config config;
  char name[64];
  unsigned operations;
  pthread_t thread;
  int busy, aborted;
} toy_group;

typedef struct toy_work {
  toy_group* group;
  enum toy_operation operation;
  tw_collective_call call;
  tw_view in, out;
  unsigned number;
} toy_work;

static UNUSED tw_status* toy_take(tw_sink* to, const void* bytes, uint64_t n) {
  char** at = to->user;
  memcpy(*at, bytes, n);
  *at += n;
  return NULL;
}

static UNUSED uint64_t toy_key(const toy_work* w, uint32_t rank, char* key, uint64_t room) {
  return (uint64_t)snprintf(key, room, "%s/%u/%u", w->group->name, w->number, rank);
}

/* Waits for the values of member `rank`. */
static UNUSED tw_status* toy_values(const toy_work* w, uint32_t rank, void* to) {
  const toy_group* g = w->group;
  const tw_host* h = g->host;
  const int64_t begin = h->run->now(h);
  char key[96];
  const uint64_t len = toy_key(w, rank, key, sizeof key);
  for (;;) {
    char* at = to;
    tw_sink sink = {TW_SIZED(tw_sink), &at, toy_take};
    const int64_t now = h->run->now(h);
    if (__atomic_load_n(&g->aborted, __ATOMIC_SEQ_CST)) return tw_fail(h, TW_ABORTED, TW_S("the group was aborted"));
    if (g->config.deadline && now - begin > g->config.deadline) return tw_fail(h, TW_DEADLINE_EXCEEDED, TW_S("a member did not come"));
    tw_status* s = g->config.store->get(g->config.store_self, key, len, now + 5000000, &sink);
    if (h->status->code(s) != TW_DEADLINE_EXCEEDED) return s;
    h->status->release(s);
  }
}

#define TOY_REDUCE_AS(T)                                                    \
  do {                                                                      \
    T *y = (T*)to, x;                                                       \
    memcpy(&x, from, sizeof x);                                             \
    switch (how) {                                                          \
      case TW_REDUCE_PROD: *y = *y * x; break;                              \
      case TW_REDUCE_MIN: *y = x < *y ? x : *y; break;                      \
      case TW_REDUCE_MAX: *y = x > *y ? x : *y; break;                      \
      default: *y = *y + x;                                                 \
    }                                                                       \
    if (how == TW_REDUCE_MEAN && rank + 1 == members) *y = *y / (T)members; \
  } while (0)

static UNUSED void toy_reduce(uint32_t dtype, uint32_t how, uint32_t rank, uint32_t members, void* to, const void* from) {
  switch (dtype) {
    case TW_FLOAT: TOY_REDUCE_AS(float); break;
    case TW_DOUBLE: TOY_REDUCE_AS(double); break;
    case TW_INT32: TOY_REDUCE_AS(int32_t); break;
    default: TOY_REDUCE_AS(int64_t);
  }
}

static UNUSED tw_status* toy_collect(toy_work* w) {
  const tw_group_config* c = &w->group->config;
  const uint64_t bytes = w->in.bytes, size = w->in.count ? bytes / w->in.count : 1, part = bytes / c->members;
  char *out = w->out.data, *values = malloc(bytes + 1), key[96];
  tw_status* s = c->store->put(c->store_self, key, toy_key(w, c->rank, key, sizeof key), w->in.data, bytes);
  for (uint32_t r = 0; r < c->members && !s; ++r) {
    s = toy_values(w, r, values);
    if (s) break;
    const char* from = w->operation == TOY_SCATTER || w->operation == TOY_EXCHANGE ? values + c->rank * part : values;
    const uint64_t n = w->operation == TOY_SCATTER || w->operation == TOY_EXCHANGE ? part : bytes;
    if (w->operation == TOY_BROADCAST) {
      if (r == w->call.root) memcpy(out, from, n);
    } else if (w->operation == TOY_GATHER || w->operation == TOY_EXCHANGE) {
      memcpy(out + r * n, from, n);
    } else if (r == 0) {
      memcpy(out, from, n);
    } else {
      for (uint64_t i = 0; i < n; i += size) toy_reduce(w->in.dtype, w->call.reduce, r, c->members, out + i, from + i);
    }
  }
  free(values);
  return s;
}

static UNUSED void* toy_work_run(void* arg) {
  toy_work* w = arg;
  const tw_timeline_api* t = w->group->host->timeline;
  tw_status* s = toy_collect(w);
  if (s) t->fail(w->call.line, s);
  t->signal(w->call.line, w->call.value);
  t->release(w->call.line);
  free(w);
  return NULL;
}

static UNUSED void toy_join(toy_group* g) {
  if (g->busy) pthread_join(g->thread, NULL);
  g->busy = 0;
}

static UNUSED tw_status* toy_start(const tw_host* h, void* group, const tw_collective_call* c, enum toy_operation operation) {
  toy_group* g = group;
  toy_work* w = calloc(1, sizeof *w);
  toy_join(g); /* one at a time */
  *w = (toy_work){g, operation, *c, *c->in, *c->out, ++g->operations};
  h->timeline->retain(c->line);
  g->busy = 1;
  pthread_create(&g->thread, NULL, toy_work_run, w);
  return NULL;
}

static UNUSED tw_status* toy_all_reduce(const tw_host* h, void* g, const tw_collective_call* c) { return toy_start(h, g, c, TOY_REDUCE); }
static UNUSED tw_status* toy_broadcast(const tw_host* h, void* g, const tw_collective_call* c) { return toy_start(h, g, c, TOY_BROADCAST); }
static UNUSED tw_status* toy_all_gather(const tw_host* h, void* g, const tw_collective_call* c) { return toy_start(h, g, c, TOY_GATHER); }
static UNUSED tw_status* toy_scatter(const tw_host* h, void* g, const tw_collective_call* c) { return toy_start(h, g, c, TOY_SCATTER); }
static UNUSED tw_status* toy_exchange(const tw_host* h, void* g, const tw_collective_call* c) { return toy_start(h, g, c, TOY_EXCHANGE); }

static UNUSED tw_status* toy_group_create(const tw_host* h, void* user, const tw_group_config* c, void** out_group) {
  toy_group* g = calloc(1, sizeof *g);
  (void)user;
  g->host = h;
  g->config = *c;
  snprintf(g->name, sizeof g->name, "%.*s", (int)c->name_len, c->name);
  *out_group = g;
  return NULL;
}

static UNUSED void toy_group_abort(const tw_host* h, void* group, const tw_status* why) {
  toy_group* g = group;
  (void)h, (void)why;
  __atomic_store_n(&g->aborted, 1, __ATOMIC_SEQ_CST);
}

static UNUSED void toy_group_destroy(const tw_host* h, void* group) {
  toy_group_abort(h, group, NULL);
  toy_join(group);
  free(group);
}

static UNUSED tw_collective_def toy_collective(void) {
  const tw_collective_def d = {TW_SIZED(tw_collective_def),
                               TW_S("toy"),
                               TW_S("CPU"),
                               NULL,
                               toy_group_create,
                               toy_group_destroy,
                               toy_group_abort,
                               toy_all_reduce,
                               toy_broadcast,
                               toy_all_gather,
                               toy_scatter,
                               toy_exchange,
                               NULL};
  return d;
}
#endif
