/* A transport over Unix-domain sockets, whole: between processes of one user on one machine. It needs the public headers, nothing else:
 *
 *     cc -shared -fPIC -I<prefix>/include socket_transport.c -o libsocket_transport.so
 *
 * Addresses are paths of sockets, in folders that are our user's alone; listen with an empty one makes such a folder.
 *
 * Each endpoint has one thread, and only that touches connections. The entries make an item of what they are asked for, hand it over and
 * return. So there is one lock, for that list, and callbacks, which run on the thread, may call every entry that does not wait for it.
 *
 * A connection carries the requests of who made it: calls, and takes, which ask for a message. At the other end it is a guest, and answers
 * go back on it. A message stays with its sender until it is taken: nothing waits unasked at a receiver, and takes may come in any order.
 * Packets keep their bounds (SOCK_SEQPACKET): first a frame with its text and head, then its bytes in pieces. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "thalweg/plugin/plugin.h"

enum { HELLO, CALL, TAKE, ANSWER, ABORT, /* these stay here: */ SEND, FORGET, CLOSE_PEER, CLOSE };
enum { kConnections = 500, kItems = 1 << 16, kEnded = 1024, kText = 4096, kHead = 4096, kPiece = 65536, kPath = 108 };

typedef struct frame {
  uint32_t kind, code;
  uint64_t id, step, text, head, bytes; /* text, head, bytes: how many follow */
  int64_t left;                         /* nanoseconds to the deadline; 0: none */
} frame;
typedef struct item {
  struct item* next;
  struct connection *c, *peer; /* where it is; where it was sent from */
  bool out;                    /* to be written; else it waits for its other half */
  tw_timeline* line;
  uint64_t value;
  tw_status* (*place)(void* arg, const void* head, uint64_t head_bytes, uint64_t bytes, void** out_data, void** out_region);
  void (*done)(void* arg, tw_status* s, const void* body, uint64_t bytes);
  void* arg;
  int64_t deadline;
  char *data, *owned;
  tw_incoming call;
  frame f;
  char text[]; /* key, method, address or message; then the head */
} item;
typedef struct connection {
  struct connection* next;
  struct endpoint* e;
  int fd;
  pid_t pid;
  bool mine, lost, began;   /* mine: made by connect, the others are guests; began: the frame of what is being written is out */
  char address[kPath], *to; /* to: where the bytes that come go; NULL: nowhere */
  item *items, *in, *ask;   /* in: the call that is being read; ask: whose answer is */
  uint64_t n_items, written, rest, open; /* rest: bytes still to come; open: calls that the host has not answered yet */
} connection;
typedef struct endpoint {
  const tw_host* h;
  tw_endpoint_config config;
  struct sockaddr_un at;
  bool bound, own_folder, closing;
  int listener, wake;
  pthread_t thread;
  pthread_mutex_t mu; /* of these five */
  pthread_cond_t closed;
  item *asked, **asked_end;
  uint64_t ids, n_connections;
  connection* all;
  struct ended {
    uint64_t step;
    uint32_t code; /* 0: none */
    char why[500];
  } ended[kEnded]; /* by step % kEnded: steps that were aborted or forgotten, as long as no other needs the place */
  char buffer[kPiece];
} endpoint;

#define EACH(type, x, first) for (type* x = first, *x##_next; x && (x##_next = x->next, true); x = x##_next)

static tw_status* failure(const tw_host* h, uint32_t code, const char* who, const char* what) {
  char text[600];
  snprintf(text, sizeof text, "unix transport: '%s' %s", who, what);
  return h->status->make(h, code, text, strlen(text), NULL);
}
static tw_status* gone(const connection* c) { return failure(c->e->h, TW_UNAVAILABLE, c->address, "is lost; connect again"); }
static tw_status* full(const tw_host* h, const char* who) { return failure(h, TW_RESOURCE_EXHAUSTED, who, "found no memory"); }
static const struct ended* find_ended(const endpoint* e, uint64_t step) {
  const struct ended* x = &e->ended[step % kEnded];
  return x->code && x->step == step ? x : NULL;
}
static tw_status* ended(const endpoint* e, uint64_t step) {
  const struct ended* x = find_ended(e, step);
  return x ? e->h->status->make(e->h, x->code, x->why, strlen(x->why), NULL) : NULL;
}

static item* new_item(connection* c, frame f, const void* text, const void* head) {
  item* i = calloc(1, sizeof *i + f.text + f.head);
  if (!i) return NULL;
  i->c = i->peer = c, i->f = f, i->out = true;
  if (f.text) memcpy(i->text, text, f.text);
  if (f.head) memcpy(i->text + f.text, head, f.head);
  return i;
}
static void add(item* i) {
  item** end = &i->c->items;
  while (*end) end = &(*end)->next;
  *end = i;
  i->c->lost |= ++i->c->n_items > kItems && !i->c->mine;
}
static void cut(item* i) {
  item** at = &i->c->items;
  while (*at && *at != i) at = &(*at)->next;
  if (*at) *at = i->next, --i->c->n_items;
  i->next = NULL;
}
static void reply(connection* c, frame f, const char* text) {
  item* i = c->fd >= 0 ? new_item(c, f, text, NULL) : NULL;
  c->lost |= !i;
  if (i) add(i);
}
/* Hands an item to the thread. */
static tw_status* ask(endpoint* e, item* i) {
  pthread_mutex_lock(&e->mu);
  if (i->f.kind == CALL || i->f.kind == TAKE) i->f.id = ++e->ids;
  *e->asked_end = i, e->asked_end = &i->next;
  (void)!write(e->wake, &(uint64_t){1}, 8);
  pthread_mutex_unlock(&e->mu);
  return NULL;
}
static void ask_and_wait(endpoint* e, connection* c, uint32_t kind) {
  item i = {.c = c, .f.kind = kind};
  ask(e, &i);
  pthread_mutex_lock(&e->mu);
  while (!i.value) pthread_cond_wait(&e->closed, &e->mu);
  pthread_mutex_unlock(&e->mu);
}
/* Says how it ended to whoever waits for it. why: taken. */
static void settle(item* i, tw_status* why) {
  const tw_host* h = i->c->e->h;
  tw_timeline* line = i->line;
  if (i->c->ask == i) i->c->ask = NULL, i->c->to = NULL;
  i->line = NULL;
  if (line && why) h->timeline->fail(line, why);
  if (line) h->timeline->signal(line, i->value), h->timeline->release(line);
  if (!line && i->done) i->done(i->arg, why, why ? NULL : i->data, why ? 0 : i->f.bytes);
  if (!line && !i->done) h->status->release(why);
  i->done = NULL;
}
static void drop(item* i, tw_status* why) {
  settle(i, why);
  cut(i);
  free(i->owned);
  free(i);
}
/* As drop, but what is being written has to go out whole: it goes on with memory of its own. */
static void give_up(item* i, tw_status* why) {
  if (!i->out) return drop(i, why);
  if (i->f.kind == ANSWER && i->f.bytes && !i->owned) {
    i->c->lost |= !(i->owned = malloc(i->f.bytes));
    if (i->owned) memcpy(i->owned, i->data, i->f.bytes);
    i->data = i->owned;
  }
  settle(i, why);
}
static void end_step(endpoint* e, uint64_t step, uint32_t code, const char* why, uint64_t n, bool forget) {
  struct ended* x = &e->ended[step % kEnded];
  if (!find_ended(e, step)) {
    x->step = step, x->code = code ? code : TW_UNKNOWN;
    snprintf(x->why, sizeof x->why, "%.*s", (int)n, why);
  }
  EACH(connection, c, e->all) {
    EACH(item, i, c->items) {
      if (i->f.step != step || (i->f.kind != SEND && i->f.kind != TAKE && !i->line) || (forget && i->f.kind == ANSWER)) continue;
      if (i->f.kind == TAKE && !c->mine) reply(c, (frame){.kind = ANSWER, .code = code, .id = i->f.id, .text = n}, why);
      give_up(i, ended(e, step));
    }
  }
}

/* The other half of a message or a take: what is at the other end's connection, or ours. */
static item* other_half(const item* i, uint32_t kind) {
  EACH(connection, c, i->c->e->all) {
    if (c->mine == i->c->mine || c->pid != i->c->pid || strcmp(c->address, i->c->address)) continue;
    EACH(item, x, c->items) {
      if (x->f.kind == kind && !x->out && x->f.step == i->f.step && x->f.text == i->f.text && !memcmp(x->text, i->text, i->f.text))
        return x;
    }
  }
  return NULL;
}
static void meet(item* message, item* take) {
  if (!message || !take) return;
  cut(message);
  message->c = take->c, message->out = true;
  message->f.kind = ANSWER, message->f.id = take->f.id;
  add(message);
  drop(take, NULL);
}

typedef struct message {
  uint64_t n;
  char text[496];
} message;
static tw_status* append(tw_sink* s, const void* bytes, uint64_t n) {
  message* m = s->user;
  if (n > sizeof m->text - m->n) n = sizeof m->text - m->n;
  memcpy(m->text + m->n, bytes, n);
  m->n += n;
  return NULL;
}
static message text_of(const tw_host* h, const tw_status* s) {
  message m = {0};
  tw_sink to = {TW_SIZED(tw_sink), &m, append};
  if (s) h->status->release(h->status->text(s, &to));
  return m;
}
static void answer(const tw_host* h, void* self, tw_status* s, const void* body, uint64_t bytes) {
  item* call = self;
  endpoint* e = call->c->e;
  const message m = text_of(h, s);
  frame f = {.kind = ANSWER, .code = h->status->code(s), .id = call->f.id, .text = m.n, .bytes = s ? 0 : bytes};
  item* i = new_item(call->c, f, m.text, NULL);
  if (i && f.bytes && (i->data = i->owned = malloc(f.bytes))) memcpy(i->data, body, f.bytes);
  h->status->release(s);
  if (!i || (f.bytes && !i->data)) { /* the call itself goes back, without the answer */
    free(i);
    call->f = (frame){.kind = ANSWER, .code = TW_RESOURCE_EXHAUSTED, .id = f.id}, call->out = true;
    i = call;
  } else {
    free(call->owned), free(call);
  }
  ask(e, i);
}

/* A frame is here, in the buffer: where do its bytes go? 0 if it makes no sense. */
static bool begin(connection* c, uint64_t n) {
  endpoint* e = c->e;
  frame f;
  const char *text = e->buffer + sizeof f, *head;
  if (n < sizeof f) return false;
  memcpy(&f, e->buffer, sizeof f);
  if (f.text > kText || f.head > kHead || n != sizeof f + f.text + f.head || f.bytes > INT64_MAX) return false;
  if (f.kind > ABORT || (f.kind == ANSWER) != c->mine || (f.kind == HELLO) == (c->mine || *c->address)) return false;
  head = text + f.text, c->rest = f.bytes, c->to = NULL;
  if (f.kind == HELLO) return f.text && f.text < kPath && memcpy(c->address, text, f.text);
  if (f.kind == ABORT) return end_step(e, f.step, f.code, text, f.text, false), true;
  if (f.kind != ANSWER) {
    const struct ended* x = f.kind == TAKE ? find_ended(e, f.step) : NULL;
    if (x) return reply(c, (frame){.kind = ANSWER, .code = x->code, .id = f.id, .text = strlen(x->why)}, x->why), true;
    item* i = new_item(c, f, text, head);
    const bool fits = f.bytes <= e->config.largest;
    if (!i || (fits && f.bytes && !(i->data = i->owned = malloc(f.bytes)))) return free(i), false;
    i->out = false, c->to = i->data;
    if (f.kind == CALL) return c->in = i, true;
    add(i);
    return meet(other_half(i, SEND), i), true;
  }
  EACH(item, i, c->items) {
    void *to = NULL, *region = NULL;
    if (i->f.id != f.id || i->out) continue;
    if (f.code) return drop(i, e->h->status->make(e->h, f.code, text, f.text, NULL)), true;
    if (f.bytes > e->config.largest) return drop(i, failure(e->h, TW_RESOURCE_EXHAUSTED, c->address, "sent more than the largest")), true;
    tw_status* why = i->place ? i->place(i->arg, head, f.head, f.bytes, &to, &region) : NULL;
    if (!i->place) free(i->owned), i->owned = NULL; /* the request */
    if (!i->place && f.bytes && !(to = i->owned = malloc(f.bytes))) why = full(e->h, c->address);
    if (why) return drop(i, why), true;
    i->f.bytes = f.bytes, i->data = c->to = to, c->ask = i;
    return true;
  }
  return true; /* nobody waits for it any more */
}
/* The bytes are here too. */
static void finish(connection* c) {
  item* i = c->in;
  endpoint* e = c->e;
  if (c->ask) return drop(c->ask, NULL);
  if (!i) return;
  const int64_t deadline = i->f.left > 0 && i->f.left < INT64_MAX / 2 ? e->h->run->now(e->h) + i->f.left : 0;
  c->in = NULL, ++c->open;
  i->call =
      (tw_incoming){TW_SIZED(tw_incoming), i->text, i->f.text, c->address, strlen(c->address), i->data, i->f.bytes, deadline, i, answer};
  if (i->f.bytes <= e->config.largest) return e->config.serve(e->config.arg, &i->call);
  answer(e->h, i, failure(e->h, TW_RESOURCE_EXHAUSTED, c->address, "sent a call above the largest"), NULL, 0);
}
static void read_in(connection* c) {
  for (int turn = 0; turn < 64 && !c->lost; ++turn) {
    const uint64_t most = c->rest && c->rest < kPiece ? c->rest : kPiece;
    const ssize_t n = recv(c->fd, c->to ? c->to : c->e->buffer, most, 0);
    if (n <= 0) c->lost |= n == 0 || (errno != EAGAIN && errno != EINTR);
    if (n <= 0) return;
    if (c->rest)
      c->rest -= (uint64_t)n, c->to += c->to ? n : 0;
    else
      c->lost |= !begin(c, (uint64_t)n);
    if (!c->rest && !c->lost) finish(c), c->to = NULL;
  }
}
static void write_out(connection* c) {
  EACH(item, i, c->items) {
    if (!i->out) continue;
    do {
      const uint64_t rest = i->f.bytes - c->written, n = rest < kPiece ? rest : kPiece;
      const ssize_t sent = c->began ? send(c->fd, i->data + c->written, n, MSG_NOSIGNAL)
                                    : send(c->fd, &i->f, sizeof i->f + i->f.text + i->f.head, MSG_NOSIGNAL);
      if (sent < 0) c->lost |= errno != EAGAIN && errno != EINTR;
      if (sent < 0) return;
      c->written += c->began ? (uint64_t)sent : 0;
      c->began = true;
    } while (c->written < i->f.bytes);
    c->began = false, c->written = 0, i->out = false;
    if ((i->f.kind != CALL && i->f.kind != TAKE) || (!i->done && !i->line)) drop(i, NULL); /* else an answer will come */
  }
}

/* Ends what is under way there. */
static void lose(connection* c, uint32_t code) {
  if (c->fd >= 0) close(c->fd);
  if (c->in) free(c->in->owned), free(c->in);
  c->fd = -1, c->in = NULL, c->rest = 0;
  EACH(item, i, c->items) drop(i, code == TW_UNAVAILABLE ? gone(c) : failure(c->e->h, code, c->address, "was closed"));
}
static void free_connection(connection* c) {
  pthread_mutex_lock(&c->e->mu);
  --c->e->n_connections;
  pthread_mutex_unlock(&c->e->mu);
  if (c->fd >= 0) close(c->fd);
  free(c);
}
static void leave(connection* c) {
  connection** at = &c->e->all;
  if (c->fd >= 0) write_out(c); /* what still fits, as an abort */
  lose(c, TW_CANCELLED);
  EACH(connection, guest, c->e->all) {
    EACH(item, i, guest->items) if (i->peer == c) give_up(i, failure(c->e->h, TW_CANCELLED, c->address, "was closed"));
  }
  while (*at != c) at = &(*at)->next;
  *at = c->next;
  free_connection(c);
}
/* Ends what has waited too long; milliseconds until something else has. */
static int end_late(endpoint* e) {
  const int64_t now = e->h->run->now(e->h);
  int64_t next = now + 60000000000;
  EACH(connection, c, e->all) {
    EACH(item, i, c->items) {
      if (!i->deadline || (!i->done && !i->line)) continue;
      if (i->deadline <= now)
        give_up(i, failure(e->h, TW_DEADLINE_EXCEEDED, c->address, "did not answer in time"));
      else if (i->deadline < next)
        next = i->deadline;
    }
  }
  return (int)((next - now) / 1000000) + 1;
}
static connection* new_connection(endpoint* e, int fd, bool mine) {
  struct ucred who = {0};
  const bool ours = !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &(socklen_t){sizeof who}) && who.uid == geteuid();
  connection* c = ours ? calloc(1, sizeof *c) : NULL;
  pthread_mutex_lock(&e->mu);
  if (e->n_connections == kConnections) free(c), c = NULL;
  e->n_connections += c != NULL;
  pthread_mutex_unlock(&e->mu);
  if (!c) return close(fd), NULL;
  c->e = e, c->fd = fd, c->pid = who.pid, c->mine = mine;
  return c;
}

/* What an entry asked for. */
static void act(endpoint* e, item* i) {
  connection* c = i->c;
  const uint32_t kind = i->f.kind;
  const bool dead = c && c->fd < 0;
  tw_status* why = kind == SEND || kind == TAKE ? ended(e, i->f.step) : NULL;
  if (!why && dead && (kind == SEND || kind == TAKE || kind == CALL)) why = gone(c);
  if (kind == ANSWER) --c->open;
  if (why || (kind == ANSWER && dead)) return drop(i, why);
  if (kind == HELLO) c->next = e->all, e->all = c;
  if (kind <= ANSWER || kind == SEND) add(i);
  if (kind == SEND) meet(i, other_half(i, TAKE));
  if (kind <= ANSWER || kind == SEND) return;
  if (kind == ABORT) EACH(connection, to, e->all) if (to->mine) reply(to, i->f, i->text);
  if (kind == ABORT || kind == FORGET) return end_step(e, i->f.step, i->f.code, i->text, i->f.text, kind == FORGET), free(i);
  if (kind == CLOSE_PEER) leave(c);
  e->closing |= kind == CLOSE;
  pthread_mutex_lock(&e->mu);
  i->value = 1; /* close or close_peer waits for it */
  pthread_cond_broadcast(&e->closed);
  pthread_mutex_unlock(&e->mu);
}

static void close_all(endpoint* e) {
  if (e->listener >= 0) close(e->listener);
  e->listener = -1;
  EACH(connection, c, e->all) {
    if (c->mine || !c->open)
      leave(c);
    else
      lose(c, TW_CANCELLED);
  }
}
static bool writes(const connection* c) {
  EACH(item, i, c->items) if (i->out) return true;
  return false;
}
static void* progress(void* arg) {
  endpoint* e = arg;
  struct pollfd p[kConnections + 2];
  for (;;) {
    nfds_t n = 2;
    pthread_mutex_lock(&e->mu);
    item* asked = e->asked;
    e->asked = NULL, e->asked_end = &e->asked;
    pthread_mutex_unlock(&e->mu);
    EACH(item, i, asked) i->next = NULL, act(e, i);
    if (e->closing) close_all(e);
    if (e->closing && !e->all) return NULL;
    p[0] = (struct pollfd){e->wake, POLLIN, 0}, p[1] = (struct pollfd){e->listener, POLLIN, 0};
    EACH(connection, c, e->all) {
      if (c->fd >= 0 && !c->lost) write_out(c);
      if (c->fd >= 0 && c->lost) lose(c, TW_UNAVAILABLE);
      if (c->fd < 0 && !c->mine && !c->open) leave(c);
    }
    const int wait = end_late(e);
    EACH(connection, c, e->all) p[n++] = (struct pollfd){c->fd, (short)(writes(c) ? POLLIN | POLLOUT : POLLIN), 0};
    if (poll(p, n, wait) < 0) continue;
    n = 2;
    EACH(connection, c, e->all) if (p[n++].revents & (POLLIN | POLLHUP | POLLERR)) read_in(c);
    if (p[0].revents) (void)!read(e->wake, &(uint64_t){0}, 8);
    const int fd = p[1].revents ? accept4(e->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
    connection* guest = fd >= 0 ? new_connection(e, fd, false) : NULL;
    if (guest) guest->next = e->all, e->all = guest;
    if (p[1].revents && fd < 0) usleep(1000); /* no descriptors left: do not spin */
  }
}

static void free_endpoint(endpoint* e) {
  if (e->listener >= 0) close(e->listener);
  if (e->wake >= 0) close(e->wake);
  if (e->bound) unlink(e->at.sun_path);
  if (e->own_folder) *strrchr(e->at.sun_path, '/') = 0, rmdir(e->at.sun_path);
  pthread_mutex_destroy(&e->mu), pthread_cond_destroy(&e->closed);
  free(e);
}
static bool set_path(struct sockaddr_un* at, const char* path, uint64_t n) {
  *at = (struct sockaddr_un){.sun_family = AF_UNIX};
  return n > 0 && n < sizeof at->sun_path && !memchr(path, 0, n) && memcpy(at->sun_path, path, n);
}
static int open_socket(void) { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }
static bool folder_is_ours(const char* path) {
  char folder[kPath];
  struct stat st;
  snprintf(folder, sizeof folder, "%s", path);
  char* slash = strrchr(folder, '/');
  if (slash) slash[slash == folder] = 0;
  return !stat(slash ? folder : ".", &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077);
}
static bool try_bind(const endpoint* e) { return !bind(e->listener, (const struct sockaddr*)&e->at, sizeof e->at); }
/* A socket that nobody listens on any more is removed. */
static bool is_stale(const endpoint* e) {
  const int fd = errno == EADDRINUSE ? open_socket() : -1;
  const bool stale = fd >= 0 && connect(fd, (const struct sockaddr*)&e->at, sizeof e->at) && errno == ECONNREFUSED;
  if (fd >= 0) close(fd);
  errno = EADDRINUSE;
  return stale && !unlink(e->at.sun_path);
}
static tw_status* start(endpoint* e, const tw_endpoint_config* c) {
  const tw_host* h = e->h;
  sigset_t all, before;
  char folder[] = "/tmp/thalweg-XXXXXX/s";
  if (!c->address_len) {
    folder[19] = 0, e->own_folder = mkdtemp(folder), folder[19] = '/';
    if (!e->own_folder) return failure(h, TW_UNAVAILABLE, folder, strerror(errno));
  }
  if (!set_path(&e->at, c->address_len ? c->address : folder, c->address_len ? c->address_len : sizeof folder - 1))
    return failure(h, TW_INVALID_ARGUMENT, "address", "is no path of 1 to 107 bytes");
  if (!folder_is_ours(e->at.sun_path))
    return failure(h, TW_PERMISSION_DENIED, e->at.sun_path, "must be in a folder of this user, of mode 0700");
  e->listener = open_socket(), e->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  e->bound = e->listener >= 0 && e->wake >= 0 && (try_bind(e) || (is_stale(e) && try_bind(e)));
  if (!e->bound || listen(e->listener, 128)) return failure(h, TW_UNAVAILABLE, e->at.sun_path, strerror(errno));
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread takes no signals */
  const int error = pthread_create(&e->thread, NULL, progress, e);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error ? failure(h, TW_RESOURCE_EXHAUSTED, e->at.sun_path, strerror(error)) : NULL;
}

static void close_endpoint(const tw_host* h, void* self) {
  endpoint* e = self;
  (void)h;
  ask_and_wait(e, NULL, CLOSE);
  pthread_join(e->thread, NULL);
  free_endpoint(e);
}
static tw_status* listen_at(const tw_host* h, void* user, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint) {
  endpoint* e = calloc(1, sizeof *e);
  (void)user;
  if (!e) return full(h, "listen");
  e->h = h, e->config = *c, e->listener = e->wake = -1, e->asked_end = &e->asked;
  if (!e->config.largest) e->config.largest = UINT64_C(1) << 31;
  pthread_mutex_init(&e->mu, NULL), pthread_cond_init(&e->closed, NULL);
  tw_status* why = start(e, c);
  if (why) return free_endpoint(e), why;
  if ((why = bound->put(bound, e->at.sun_path, strlen(e->at.sun_path)))) return close_endpoint(h, e), why;
  *out_endpoint = e;
  return NULL;
}
static tw_status* connect_to(const tw_host* h, void* self, const char* address, uint64_t len, void** out_peer) {
  endpoint* e = self;
  struct sockaddr_un at;
  if (!set_path(&at, address, len)) return failure(h, TW_INVALID_ARGUMENT, "address", "is no path of 1 to 107 bytes");
  const int fd = open_socket();
  if (fd < 0 || connect(fd, (const struct sockaddr*)&at, sizeof at)) {
    tw_status* why = failure(h, TW_UNAVAILABLE, at.sun_path, strerror(errno));
    if (fd >= 0) close(fd);
    return why;
  }
  connection* c = new_connection(e, fd, true);
  item* hello = c ? new_item(c, (frame){.kind = HELLO, .text = strlen(e->at.sun_path)}, e->at.sun_path, NULL) : NULL;
  if (c && !hello) free_connection(c);
  if (!hello) return failure(h, TW_PERMISSION_DENIED, at.sun_path, "is another user's, or there are too many connections");
  memcpy(c->address, at.sun_path, kPath);
  *out_peer = c;
  return ask(e, hello);
}
static tw_status* send_message(const tw_host* h, void* peer, const tw_message* m) {
  connection* c = peer;
  if (m->region || !m->key_len || m->key_len > kText || m->head_bytes > kHead)
    return failure(h, TW_INVALID_ARGUMENT, c->address, "takes keys of 1 to 4096 bytes, heads of at most 4096, and no regions");
  item* i =
      new_item(c, (frame){.kind = SEND, .step = m->step, .text = m->key_len, .head = m->head_bytes, .bytes = m->bytes}, m->key, m->head);
  if (!i) return full(h, c->address);
  i->out = false, i->data = m->bytes ? (char*)m->data + m->offset : NULL;
  i->line = m->line, i->value = m->value;
  h->timeline->retain(m->line);
  return ask(c->e, i);
}
static tw_status* receive_message(const tw_host* h, void* peer, const tw_receipt* r) {
  connection* c = peer;
  if (!r->key_len || r->key_len > kText) return failure(h, TW_INVALID_ARGUMENT, c->address, "takes keys of 1 to 4096 bytes");
  item* i = new_item(c, (frame){.kind = TAKE, .step = r->step, .text = r->key_len}, r->key, NULL);
  if (!i) return full(h, c->address);
  i->place = r->place, i->arg = r->arg, i->deadline = r->deadline;
  i->line = r->line, i->value = r->value;
  h->timeline->retain(r->line);
  return ask(c->e, i);
}
static tw_status* call_peer(const tw_host* h, void* peer, const char* method, uint64_t len, const void* request, uint64_t bytes,
                            int64_t deadline, void (*done)(void* arg, tw_status* s, const void* body, uint64_t bytes), void* arg) {
  connection* c = peer;
  const int64_t left = deadline ? deadline - h->run->now(h) : 0;
  if (!len || len > kText) return failure(h, TW_INVALID_ARGUMENT, c->address, "takes methods of 1 to 4096 bytes");
  item* i = new_item(c, (frame){.kind = CALL, .text = len, .bytes = bytes, .left = left}, method, NULL);
  if (!i || (bytes && !(i->data = i->owned = malloc(bytes)))) return free(i), full(h, c->address);
  if (bytes) memcpy(i->data, request, bytes);
  i->done = done, i->arg = arg, i->deadline = deadline;
  return ask(c->e, i);
}
static void hand_over_end(endpoint* e, uint32_t kind, uint64_t step, uint32_t code, message m) {
  item* i = new_item(NULL, (frame){.kind = kind, .step = step, .code = code, .text = m.n}, m.text, NULL);
  if (i)
    ask(e, i);
  else
    e->h->run->log(e->h, 3, TW_S("unix transport: no memory to end a step"));
}
static void abort_step(const tw_host* h, void* self, uint64_t step, const tw_status* why) {
  hand_over_end(self, ABORT, step, h->status->code(why), text_of(h, why));
}
static void forget_step(const tw_host* h, void* self, uint64_t step) {
  (void)h;
  hand_over_end(self, FORGET, step, TW_CANCELLED, (message){22, "the step was forgotten"});
}
static void close_peer(const tw_host* h, void* peer) {
  (void)h;
  ask_and_wait(((connection*)peer)->e, peer, CLOSE_PEER);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_transport_def d = {
      TW_SIZED(tw_transport_def), TW_S("unix"),          .security = TW_TRANSPORT_SAME_HOST, .listen = listen_at,
      .connect = connect_to,      .send = send_message,  .receive = receive_message,         .call = call_peer,
      .abort = abort_step,        .forget = forget_step, .close_peer = close_peer,           .close = close_endpoint};
  (void)h, (void)out_instance;
  return r->transport(r, &d);
}
TW_PLUGIN("org.example.unix", "1.0", init)
