/* A transport within one process: a list of calls, and a thread that walks through it. */
#ifndef MUTANTS_TOY_TRANSPORT_H
#define MUTANTS_TOY_TRANSPORT_H
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "toy.h"

typedef struct toy_endpoint {
  struct toy_endpoint* next;
  const tw_host* host;
  tw_endpoint_config config;
  char address[32];
  int closing, telling; /* telling: callbacks in progress */
} toy_endpoint;

typedef struct toy_peer {
  toy_endpoint* own;
  char other[32]; /* the peer's address, looked up at each call */
  int closed, calls;
} toy_peer;

typedef struct toy_item {
  struct toy_item* next;
  toy_peer* peer; /* NULL: the call is over, its answer is not */
  toy_endpoint* at;
  uint64_t id;
  tw_message request, answer;
  tw_incoming in;
  char head[TW_MESSAGE_HEAD];
  int cancelled, served, answered, told;
} toy_item;

static struct {
  pthread_mutex_t mu;
  pthread_cond_t changed;
  pthread_t thread;
  toy_endpoint* endpoints;
  toy_item* items; /* in the order of the calls */
  unsigned named, running;
  int lent, busy; /* lent: a lent thread does the work; busy: a thread is at work */
  char* late;     /* memory of a call that is over */
  /* Each is 1 in one mutant: */
  int no_address, waits_for_nobody, answers_twice, cuts_bodies, in_order, never_cancels, writes_late, needs_room, keeps_calls, leaves_early,
      inside, sleeps_on;
} loop = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static UNUSED toy_endpoint* toy_at(const char* address) {
  toy_endpoint* e = loop.endpoints;
  while (e && strcmp(e->address, address) != 0) e = e->next;
  return e && !e->closing ? e : NULL;
}

static UNUSED void toy_drop(toy_item* item) {
  toy_item** at = &loop.items;
  while (*at != item) at = &(*at)->next;
  *at = item->next;
  free(item);
  pthread_cond_broadcast(&loop.changed);
}

/* Calls the caller's callback, without the lock. */
static UNUSED void toy_done(toy_item* i, tw_status* s) {
  toy_peer* peer = i->peer;
  toy_endpoint* own = peer->own;
  i->peer = NULL;
  ++own->telling;
  pthread_mutex_unlock(&loop.mu);
  i->request.done(i->request.arg, s);
  if (loop.answers_twice && !s) i->request.done(i->request.arg, NULL);
  pthread_mutex_lock(&loop.mu);
  --own->telling;
  if (!--peer->calls && peer->closed) free(peer);
  pthread_cond_broadcast(&loop.changed);
}
static UNUSED void toy_answer_done(toy_item* i, tw_status* s) {
  pthread_mutex_unlock(&loop.mu);
  i->answer.done(i->answer.arg, s);
  pthread_mutex_lock(&loop.mu);
  toy_drop(i);
}

static UNUSED int toy_move(tw_place_fn place, void* arg, tw_incoming* in, const tw_message* m) {
  void *data = NULL, *region = NULL;
  tw_ask_place(place, arg, in, &data, &region);
  if (data && m->bytes) memcpy(data, m->body, loop.cuts_bodies && m->bytes > 65536 ? 65536 : m->bytes);
  in->body = data;
  return data || !m->bytes || !loop.needs_room;
}

static UNUSED void toy_serve(toy_item* i) {
  const tw_endpoint_config* c = &i->at->config;
  i->served = 1;
  pthread_mutex_unlock(&loop.mu);
  if (loop.late) *loop.late = 1;
  loop.late = NULL;
  if (toy_move(c->place, c->arg, &i->in, &i->request)) c->serve(c->arg, &i->in);
  pthread_mutex_lock(&loop.mu);
}

static UNUSED void toy_deliver(toy_item* i) {
  tw_incoming in = {TW_SIZED(tw_incoming), i->id, "loop", 4, i->head, i->answer.head_bytes, NULL, i->answer.bytes, NULL};
  pthread_mutex_unlock(&loop.mu);
  const int there = toy_move(i->request.place, i->request.arg, &in, &i->answer);
  if (loop.writes_late && in.body && in.bytes) loop.late = (char*)(uintptr_t)in.body;
  pthread_mutex_lock(&loop.mu);
  if (there) toy_done(i, NULL);
  toy_answer_done(i, NULL);
}

/* Returns why the call cannot continue; 0: it can. */
static UNUSED uint32_t toy_over(const toy_item* i, const char** why) {
  *why = "the call was cancelled";
  if ((i->peer->closed || i->peer->own->closing) && !loop.keeps_calls) return TW_CANCELLED;
  if (i->cancelled && !loop.never_cancels) return TW_CANCELLED;
  *why = i->peer->other;
  return (i->at ? i->at->closing : !loop.waits_for_nobody) ? TW_UNAVAILABLE : 0;
}

static UNUSED int toy_is_first(const toy_item* i) {
  for (const toy_item* x = loop.items; x != i; x = x->next) {
    if (x->peer == i->peer) return 0;
  }
  return 1;
}

/* Does one pending action of a call, releasing the lock meanwhile; returns 0 if there is none.
 * REQUIRES: the lock. */
static UNUSED int toy_step(toy_item* i) {
  const char* why = NULL;
  const uint32_t code = i->peer && !(i->answered && !i->cancelled) ? toy_over(i, &why) : 0;
  if (code) {
    char text[64];
    snprintf(text, sizeof text, "%s", why);
    const int left = i->served;
    toy_done(i, tw_fail(i->at ? i->at->host : loop.endpoints->host, code, text, strlen(text)));
    if (!left) toy_drop(i);
    return 1;
  }
  if (i->peer && !i->served && i->at) return toy_serve(i), 1;
  if (i->peer && i->answered && (!loop.in_order || toy_is_first(i))) return toy_deliver(i), 1;
  if (!i->peer && i->answered) return toy_answer_done(i, tw_fail(i->at->host, TW_CANCELLED, TW_S("nobody waits"))), 1;
  if (i->peer || i->told) return 0;
  i->told = 1;
  pthread_mutex_unlock(&loop.mu);
  i->at->config.gone(i->at->config.arg, i->in.id);
  pthread_mutex_lock(&loop.mu);
  return 1;
}

/* Returns 0 if there was nothing to do. */
static UNUSED int toy_work(void) {
  toy_item* i = loop.items;
  if (loop.busy) return 0;
  loop.busy = 1;
  while (i && !toy_step(i)) i = i->next;
  loop.busy = 0;
  if (i) pthread_cond_broadcast(&loop.changed);
  return i != NULL;
}

static UNUSED void* toy_loop(void* arg) {
  pthread_mutex_lock(&loop.mu);
  while (loop.running) {
    if (loop.lent || !toy_work()) pthread_cond_wait(&loop.changed, &loop.mu);
  }
  pthread_mutex_unlock(&loop.mu);
  return arg;
}

static UNUSED uint32_t toy_poll(const tw_host* h, void* endpoint, uint64_t ns, uint32_t (*over)(void* arg), void* arg) {
  struct timespec until;
  int late = 0;
  (void)h, (void)endpoint;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec += (long)(ns % 1000000000);
  if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, ++until.tv_sec;
  pthread_mutex_lock(&loop.mu);
  const uint32_t taken = !loop.lent;
  loop.lent = 1;
  while (taken && !late && !over(arg)) {
    if (!toy_work()) late = pthread_cond_timedwait(&loop.changed, &loop.mu, &until) != 0;
  }
  if (taken) {
    loop.lent = 0;
    pthread_cond_broadcast(&loop.changed);
  }
  pthread_mutex_unlock(&loop.mu);
  return taken;
}
static UNUSED void toy_wake(const tw_host* h, void* endpoint) {
  (void)h, (void)endpoint;
  pthread_mutex_lock(&loop.mu);
  if (!loop.sleeps_on) pthread_cond_broadcast(&loop.changed);
  pthread_mutex_unlock(&loop.mu);
}

static UNUSED tw_status* toy_listen(const tw_host* h, void* user, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint) {
  toy_endpoint* e = calloc(1, sizeof *e);
  (void)user;
  e->host = h;
  e->config = *c;
  pthread_mutex_lock(&loop.mu);
  snprintf(e->address, sizeof e->address, "loop-%u", ++loop.named);
  e->next = loop.endpoints;
  loop.endpoints = e;
  if (!loop.running++) pthread_create(&loop.thread, NULL, toy_loop, NULL);
  pthread_mutex_unlock(&loop.mu);
  *out_endpoint = e;
  return loop.no_address ? NULL : bound->put(bound, e->address, strlen(e->address));
}

static UNUSED tw_status* toy_connect(const tw_host* h, void* endpoint, const char* address, uint64_t len, void** out_peer) {
  toy_peer* p = calloc(1, sizeof *p);
  p->own = endpoint;
  memcpy(p->other, address, len < sizeof p->other ? len : sizeof p->other - 1);
  pthread_mutex_lock(&loop.mu);
  const int there = toy_at(p->other) || loop.waits_for_nobody;
  pthread_mutex_unlock(&loop.mu);
  if (there) {
    *out_peer = p;
    return NULL;
  }
  free(p);
  return tw_fail(h, TW_UNAVAILABLE, TW_S("nobody is at that address"));
}

static UNUSED tw_status* toy_call(const tw_host* h, void* peer, uint64_t id, const tw_message* request) {
  toy_item *i = calloc(1, sizeof *i), **end = &loop.items;
  (void)h;
  pthread_mutex_lock(&loop.mu);
  i->peer = peer;
  i->at = toy_at(i->peer->other);
  i->id = id;
  i->request = *request;
  i->in =
      (tw_incoming){TW_SIZED(tw_incoming), ++loop.named, "loop", 4, i->head, request->head_bytes, NULL, request->bytes, i, TW_PEER_ANY, 0};
  if (request->head_bytes) memcpy(i->head, request->head, request->head_bytes);
  ++i->peer->calls;
  while (*end) end = &(*end)->next;
  *end = i;
  pthread_cond_broadcast(&loop.changed);
  pthread_mutex_unlock(&loop.mu);
  return NULL;
}

static UNUSED void toy_cancel(const tw_host* h, void* peer, uint64_t id) {
  (void)h;
  pthread_mutex_lock(&loop.mu);
  for (toy_item* i = loop.items; i; i = i->next) {
    if (i->peer != peer || i->id != id) continue;
    i->cancelled = 1;
    if (loop.inside) toy_done(i, tw_fail(h, TW_CANCELLED, TW_S("cancelled")));
    break;
  }
  pthread_cond_broadcast(&loop.changed);
  pthread_mutex_unlock(&loop.mu);
}

static UNUSED void toy_answer(const tw_host* h, void* self, const tw_message* m) {
  toy_item* i = self;
  (void)h;
  pthread_mutex_lock(&loop.mu);
  i->answer = *m;
  if (m->head_bytes) memmove(i->head, m->head, m->head_bytes);
  i->answered = 1;
  pthread_cond_broadcast(&loop.changed);
  pthread_mutex_unlock(&loop.mu);
}

static UNUSED void toy_close_peer(const tw_host* h, void* peer) {
  toy_peer* p = peer;
  (void)h;
  pthread_mutex_lock(&loop.mu);
  p->closed = 1;
  if (!p->calls) free(p);
  pthread_cond_broadcast(&loop.changed);
  pthread_mutex_unlock(&loop.mu);
}

static UNUSED int toy_used(const toy_endpoint* e) {
  if (e->telling) return 1;
  for (const toy_item* i = loop.items; i; i = i->next) {
    if (i->at == e || (i->peer && i->peer->own == e)) return 1;
  }
  return 0;
}
static UNUSED void toy_close_endpoint(const tw_host* h, void* endpoint) {
  toy_endpoint *e = endpoint, **at = &loop.endpoints;
  (void)h;
  pthread_mutex_lock(&loop.mu);
  e->closing = !loop.leaves_early;
  pthread_cond_broadcast(&loop.changed);
  while (toy_used(e) && !loop.leaves_early) pthread_cond_wait(&loop.changed, &loop.mu);
  while (*at != e) at = &(*at)->next;
  if (!loop.leaves_early) *at = e->next;
  const int last = !--loop.running;
  pthread_cond_broadcast(&loop.changed);
  pthread_mutex_unlock(&loop.mu);
  if (last) pthread_join(loop.thread, NULL);
  if (!loop.leaves_early) free(e);
}

static UNUSED tw_transport_def toy_transport(void) {
  const tw_transport_def d = {TW_SIZED(tw_transport_def),
                              TW_S("loop"),
                              NULL,
                              TW_TRANSPORT_SAME_HOST,
                              0,
                              toy_listen,
                              toy_connect,
                              toy_call,
                              toy_cancel,
                              toy_answer,
                              toy_close_peer,
                              toy_close_endpoint,
                              NULL,
                              NULL,
                              toy_poll,
                              toy_wake};
  return d;
}
#define TOY_TRANSPORT(what)                                                        \
  static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) { \
    const tw_transport_def d = toy_transport();                                    \
    (void)h, (void)out_instance;                                                   \
    what;                                                                          \
    return tw_add_transport(r, &d);                                                \
  }                                                                                \
  TOY_PLUGIN(init, NULL)
#endif
