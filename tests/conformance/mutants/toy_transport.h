/* A transport within one process: a list of what is under way, and a thread that looks through it. It takes nothing from a sender before
 * somebody asks for it, so it needs no window. */
#ifndef MUTANTS_TOY_TRANSPORT_H
#define MUTANTS_TOY_TRANSPORT_H
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "toy.h"

enum toy_kind { TOY_SEND, TOY_RECEIVE, TOY_CALL };
enum { TOY_MOST_ABORTED = 16 };

typedef struct toy_endpoint {
  struct toy_endpoint* next;
  const tw_host* host;
  char address[32];
  tw_endpoint_config config;
  uint64_t aborted[TOY_MOST_ABORTED];
  unsigned n_aborted;
} toy_endpoint;

typedef struct toy_peer {
  toy_endpoint* own;
  char other[32]; /* the address; whether somebody is there is looked up each time */
  int closed, items;
} toy_peer;

/* What is under way. */
typedef struct toy_item {
  struct toy_item* next;
  enum toy_kind kind;
  toy_peer* peer; /* NULL: only kept until it is answered */
  uint64_t step;
  char* key; /* or the method */
  uint64_t key_len;
  tw_message message;
  tw_receipt receipt;
  char* body; /* head, request, answer */
  uint64_t bytes;
  int64_t deadline;
  void (*done)(void* arg, tw_status* s, const void* body, uint64_t bytes);
  void* arg;
  int served, answered;
  tw_status* status;
  tw_incoming incoming;
} toy_item;

static struct {
  pthread_mutex_t mu;
  pthread_cond_t changed;
  pthread_t thread;
  toy_endpoint* endpoints;
  toy_item* items;
  unsigned named, running;
  int honours_deadlines, answers_twice; /* 0 in a mutant; 1 in a mutant */
} loop = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .honours_deadlines = 1};

static UNUSED char* toy_copy_of(const void* bytes, uint64_t n) {
  char* p = calloc(1, n + 1);
  if (n) memcpy(p, bytes, n);
  return p;
}

static UNUSED toy_endpoint* toy_at(const char* address) {
  toy_endpoint* e = loop.endpoints;
  while (e && strcmp(e->address, address) != 0) e = e->next;
  return e;
}

static UNUSED int toy_aborted(const toy_endpoint* e, uint64_t step) {
  for (unsigned i = 0; e && i < e->n_aborted; ++i) {
    if (e->aborted[i] == step) return 1;
  }
  return 0;
}

/* Why the item cannot go on; 0: it can. Under the lock. */
static UNUSED uint32_t toy_over(const toy_item* i, const char** why) {
  const tw_host* h = i->peer->own->host;
  *why = "the peer was closed";
  if (i->peer->closed) return TW_CANCELLED;
  *why = "the step was aborted";
  if (i->kind != TOY_CALL && toy_aborted(i->peer->own, i->step)) return TW_ABORTED;
  *why = "nobody is at that address";
  if (!toy_at(i->peer->other)) return TW_UNAVAILABLE;
  *why = "the deadline has passed";
  if (i->deadline && loop.honours_deadlines && h->run->now(h) > i->deadline) return TW_DEADLINE_EXCEEDED;
  return 0;
}

static UNUSED void toy_unlink(toy_item* item) {
  toy_item** at = &loop.items;
  while (*at != item) at = &(*at)->next;
  *at = item->next;
}

static UNUSED void toy_free(toy_item* i) {
  free(i->key);
  free(i->body);
  free(i);
}

/* Tells whoever waits, without the lock, and lets the item go. */
static UNUSED void toy_finish(toy_item* i, tw_status* s) {
  const tw_host* h = i->peer->own->host;
  toy_peer* peer = i->peer;
  pthread_mutex_unlock(&loop.mu);
  if (i->kind == TOY_CALL) {
    const int twice = loop.answers_twice && !s;
    i->done(i->arg, s, i->answered ? i->body : NULL, i->answered ? i->bytes : 0);
    if (twice) i->done(i->arg, NULL, NULL, 0);
  } else {
    tw_timeline* line = i->kind == TOY_SEND ? i->message.line : i->receipt.line;
    if (s) h->timeline->fail(line, s);
    h->timeline->signal(line, i->kind == TOY_SEND ? i->message.value : i->receipt.value);
    h->timeline->release(line);
  }
  pthread_mutex_lock(&loop.mu);
  --peer->items;
  i->peer = NULL;
  if (i->kind == TOY_CALL && i->served && !i->answered) {
    i->next = loop.items; /* its answer is still to come */
    loop.items = i;
  } else {
    toy_free(i);
  }
  pthread_cond_broadcast(&loop.changed);
}

static UNUSED toy_item* toy_match(const toy_item* r) {
  for (toy_item* s = loop.items; s; s = s->next) {
    if (s->kind == TOY_SEND && s->step == r->step && s->key_len == r->key_len && memcmp(s->key, r->key, r->key_len) == 0 &&
        strcmp(s->peer->own->address, r->peer->other) == 0 && strcmp(s->peer->other, r->peer->own->address) == 0) {
      return s;
    }
  }
  return NULL;
}

static UNUSED void toy_deliver(toy_item* s, toy_item* r) {
  void *data = NULL, *region = NULL;
  toy_unlink(s);
  toy_unlink(r);
  pthread_mutex_unlock(&loop.mu);
  tw_status* refused = r->receipt.place(r->receipt.arg, s->body, s->bytes, s->message.bytes, &data, &region);
  if (!refused && s->message.bytes) memcpy(data, (const char*)s->message.data + s->message.offset, s->message.bytes);
  pthread_mutex_lock(&loop.mu);
  toy_finish(r, refused);
  toy_finish(s, NULL);
}

static UNUSED void toy_serve(toy_item* i) {
  const tw_endpoint_config config = toy_at(i->peer->other)->config;
  i->served = 1;
  i->incoming.method = i->key;
  i->incoming.method_len = i->key_len;
  i->incoming.body = i->body;
  i->incoming.bytes = i->bytes;
  pthread_mutex_unlock(&loop.mu);
  config.serve(config.arg, &i->incoming);
  pthread_mutex_lock(&loop.mu);
}

/* Does one thing of what can be done; 0: nothing. Under the lock, which it lets go meanwhile. */
static UNUSED int toy_step(void) {
  for (toy_item* i = loop.items; i; i = i->next) {
    const char* why = NULL;
    if (!i->peer) continue;
    const uint32_t code = i->answered ? 0 : toy_over(i, &why);
    const tw_host* h = i->peer->own->host;
    if (code || i->answered) {
      toy_unlink(i);
      toy_finish(i, code ? tw_fail(h, code, why, strlen(why)) : i->status);
      return 1;
    }
    if (i->kind == TOY_CALL && !i->served) {
      toy_serve(i);
      return 1;
    }
    toy_item* s = i->kind == TOY_RECEIVE ? toy_match(i) : NULL;
    if (s) {
      toy_deliver(s, i);
      return 1;
    }
  }
  return 0;
}

static UNUSED void* toy_loop(void* arg) {
  pthread_mutex_lock(&loop.mu);
  while (loop.running) {
    struct timespec until;
    if (toy_step()) continue;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 2000000;
    if (until.tv_nsec >= 1000000000) ++until.tv_sec, until.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&loop.changed, &loop.mu, &until);
  }
  pthread_mutex_unlock(&loop.mu);
  return arg;
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
  return bound->put(bound, e->address, strlen(e->address));
}

static UNUSED tw_status* toy_connect(const tw_host* h, void* endpoint, const char* address, uint64_t len, void** out_peer) {
  toy_peer* p = calloc(1, sizeof *p);
  p->own = endpoint;
  memcpy(p->other, address, len < sizeof p->other ? len : sizeof p->other - 1);
  pthread_mutex_lock(&loop.mu);
  const int there = toy_at(p->other) != NULL;
  pthread_mutex_unlock(&loop.mu);
  if (there) {
    *out_peer = p;
    return NULL;
  }
  free(p);
  return tw_fail(h, TW_UNAVAILABLE, TW_S("nobody is at that address"));
}

static UNUSED tw_status* toy_add(void* peer, toy_item item) {
  toy_item* i = malloc(sizeof *i);
  *i = item;
  i->peer = peer;
  pthread_mutex_lock(&loop.mu);
  ++i->peer->items;
  toy_item** end = &loop.items;
  while (*end) end = &(*end)->next;
  *end = i;
  pthread_cond_broadcast(&loop.changed);
  pthread_mutex_unlock(&loop.mu);
  return NULL;
}

static UNUSED tw_status* toy_send(const tw_host* h, void* peer, const tw_message* m) {
  h->timeline->retain(m->line);
  return toy_add(peer, (toy_item){.kind = TOY_SEND,
                                  .step = m->step,
                                  .key = toy_copy_of(m->key, m->key_len),
                                  .key_len = m->key_len,
                                  .message = *m,
                                  .body = toy_copy_of(m->head, m->head_bytes),
                                  .bytes = m->head_bytes});
}

static UNUSED tw_status* toy_receive(const tw_host* h, void* peer, const tw_receipt* r) {
  h->timeline->retain(r->line);
  return toy_add(peer, (toy_item){.kind = TOY_RECEIVE,
                                  .step = r->step,
                                  .key = toy_copy_of(r->key, r->key_len),
                                  .key_len = r->key_len,
                                  .receipt = *r,
                                  .deadline = r->deadline});
}

static UNUSED void toy_answer(const tw_host* h, void* self, tw_status* s, const void* body, uint64_t bytes) {
  toy_item* i = self;
  pthread_mutex_lock(&loop.mu);
  if (i->peer) {
    char* copy = toy_copy_of(body, bytes);
    free(i->body);
    i->body = copy;
    i->bytes = bytes;
    i->status = s;
    i->answered = 1;
    pthread_cond_broadcast(&loop.changed);
  } else { /* too late */
    toy_unlink(i);
    toy_free(i);
    h->status->release(s);
  }
  pthread_mutex_unlock(&loop.mu);
}

static UNUSED tw_status* toy_call(const tw_host* h, void* peer, const char* method, uint64_t len, const void* request, uint64_t bytes,
                                  int64_t deadline, void (*done)(void* arg, tw_status* s, const void* body, uint64_t bytes), void* arg) {
  (void)h;
  toy_item i = {.kind = TOY_CALL,
                .key = toy_copy_of(method, len),
                .key_len = len,
                .body = toy_copy_of(request, bytes),
                .bytes = bytes,
                .deadline = deadline,
                .done = done,
                .arg = arg};
  i.incoming = (tw_incoming){TW_SIZED(tw_incoming), .peer = "loop", .peer_len = 4, .deadline = deadline, .answer = toy_answer};
  toy_item* made = malloc(sizeof *made);
  *made = i;
  made->peer = peer;
  made->incoming.self = made;
  pthread_mutex_lock(&loop.mu);
  ++made->peer->items;
  made->next = loop.items;
  loop.items = made;
  pthread_cond_broadcast(&loop.changed);
  pthread_mutex_unlock(&loop.mu);
  return NULL;
}

/* Here, and at all others: there is but one process. */
static UNUSED void toy_abort(const tw_host* h, void* endpoint, uint64_t step, const tw_status* why) {
  (void)h, (void)endpoint, (void)why;
  pthread_mutex_lock(&loop.mu);
  for (toy_endpoint* e = loop.endpoints; e; e = e->next) e->aborted[e->n_aborted++ % TOY_MOST_ABORTED] = step;
  pthread_cond_broadcast(&loop.changed);
  pthread_mutex_unlock(&loop.mu);
}

static UNUSED void toy_forget(const tw_host* h, void* endpoint, uint64_t step) { (void)h, (void)endpoint, (void)step; }

static UNUSED void toy_close_peer(const tw_host* h, void* peer) {
  toy_peer* p = peer;
  (void)h;
  pthread_mutex_lock(&loop.mu);
  p->closed = 1;
  while (p->items) {
    pthread_cond_broadcast(&loop.changed);
    pthread_cond_wait(&loop.changed, &loop.mu);
  }
  pthread_mutex_unlock(&loop.mu);
  free(p);
}

static UNUSED void toy_close_endpoint(const tw_host* h, void* endpoint) {
  toy_endpoint** at = &loop.endpoints;
  (void)h;
  pthread_mutex_lock(&loop.mu);
  while (*at != endpoint) at = &(*at)->next;
  *at = (*at)->next;
  const int last = !--loop.running;
  pthread_cond_broadcast(&loop.changed);
  pthread_mutex_unlock(&loop.mu);
  if (last) pthread_join(loop.thread, NULL);
  free(endpoint);
}

static UNUSED tw_transport_def toy_transport(void) {
  const tw_transport_def d = {TW_SIZED(tw_transport_def),
                              TW_S("loop"),
                              NULL,
                              TW_TRANSPORT_SAME_HOST,
                              0,
                              toy_listen,
                              toy_connect,
                              toy_send,
                              toy_receive,
                              toy_call,
                              toy_abort,
                              toy_forget,
                              toy_close_peer,
                              toy_close_endpoint};
  return d;
}
#endif
