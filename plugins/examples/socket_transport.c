/* A complete transport over Unix-domain sockets, between processes of one user on one machine. Needs only the public headers:
 *
 *     cc -shared -fPIC -I<prefix>/include socket_transport.c -o libsocket_transport.so
 *
 * An address is a name of 1 to 106 bytes outside the file system (unix(7), "abstract"), so a process
 * that dies leaves nothing behind. An empty address makes listen choose one. Both ends ask the kernel
 * which user's process is at the other end.
 *
 * An endpoint has one thread and one lock. Only the thread reads, writes, frees and calls back; it
 * releases the lock meanwhile. An entry takes the lock, records its request in a call or connection,
 * and wakes the thread. So the objects that the thread uses stay in place, and callbacks may use the
 * entries.
 *
 * Packets keep their bounds (SOCK_SEQPACKET). A message is one packet with its head, then its body in
 * pieces; the pieces of several messages alternate. No packet is ever written in part, so a call that
 * has ended needs no cleanup: packets that still arrive for it are dropped. */
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
#include <sys/un.h>

#include "thalweg/plugin/plugin.h"

enum { REQUEST, ANSWER, PIECE, CANCEL };
enum { kConnections = 500, kCalls = 1 << 14, kPiece = 65536, kName = 106 }; /* kCalls: pending calls to one peer */

typedef struct frame {
  uint64_t kind, id, head, bytes; /* head: bytes of head that follow; bytes: bytes of body in pieces */
} frame;
typedef struct call { /* at both ends */
  struct call* next;
  struct connection* c;
  frame f;                   /* the outgoing frame, with m and head */
  tw_message m;              /* the request; at the serving end, the answer */
  tw_incoming in;            /* the incoming message */
  char* to;                  /* the destination of the next piece; NULL: none */
  uint64_t rest, sent, turn; /* rest: bytes still to arrive; sent: bytes written; turn: the lowest is written next */
  bool out, began;           /* out: has data to write; began: the frame is written */
  bool cancelled, placed, served, answered;
  char head[TW_MESSAGE_HEAD];
} call;
typedef struct connection {
  struct connection* next;
  struct endpoint* e;
  struct pollfd* p;     /* NULL: not polled yet */
  int fd;               /* -1: lost */
  bool mine, closing;   /* mine: made by connect, for our calls; else for the peer's calls */
  char name[kName + 2]; /* the address; or the peer's identity */
  call* calls;
  uint64_t n_calls;
} connection;
typedef struct endpoint {
  const tw_host* h;
  tw_endpoint_config config;
  bool closing;
  int listener, wake;
  pthread_t thread;
  pthread_mutex_t mu;
  uint64_t count, n_connections; /* count: the source of growing numbers */
  connection* all;
  char buffer[kPiece]; /* used only by the thread */
} endpoint;

#define EACH(type, x, first) for (type* x = first, *x##_next; x && (x##_next = x->next, true); x = x##_next)
#define UNLOCKED(e, what) (pthread_mutex_unlock(&(e)->mu), what, pthread_mutex_lock(&(e)->mu))

static tw_status* failure(const tw_host* h, uint32_t code, const char* who, const char* what) {
  char text[300];
  snprintf(text, sizeof text, "unix transport: '%s' %s", who, what);
  return h->status->make(h, code, text, strlen(text), NULL);
}
static tw_status* ended(const connection* c, bool lost) {
  return failure(c->e->h, lost ? TW_UNAVAILABLE : TW_CANCELLED, c->name, lost ? "is lost; connect again" : "is not waited for any more");
}
static void enter(endpoint* e) { pthread_mutex_lock(&e->mu); }
static void leave(endpoint* e) {
  (void)!write(e->wake, &(uint64_t){1}, 8);
  pthread_mutex_unlock(&e->mu);
}

static call* find(const connection* c, uint64_t id) {
  EACH(call, i, c->calls) if (i->f.id == id) return i;
  return NULL;
}
static call* next_out(const connection* c) {
  call* first = NULL;
  EACH(call, i, c->calls) if (i->out && (!first || i->turn < first->turn)) first = i;
  return first;
}
static call* new_call(connection* c, frame f, const tw_message* m, const void* head) {
  call* i = calloc(1, sizeof *i);
  if (!i) return NULL;
  i->c = c, i->f = f, i->m = *m, i->turn = ++c->e->count, i->out = c->mine;
  if (f.head) memcpy(i->head, head, f.head);
  i->next = c->calls, c->calls = i, ++c->n_calls;
  return i;
}
/* Ends the wait for the call. A peer that may still work on it is told so by a CANCEL, which reuses
 * the call. why: taken over. */
static void end(call* i, tw_status* why) {
  const bool tell = i->m.done && i->c->mine && i->began && i->c->fd >= 0 && (why || (i->in.bytes && !i->in.body));
  call** at = &i->c->calls;
  if (i->m.done) UNLOCKED(i->c->e, i->m.done(i->m.arg, why));
  i->f = (frame){.kind = CANCEL, .id = i->f.id}, i->m = (tw_message){0};
  i->to = NULL, i->sent = 0, i->out = tell, i->began = i->cancelled = false;
  if (tell) return;
  while (*at != i) at = &(*at)->next;
  *at = i->next, --i->c->n_calls;
  free(i);
}

/* n more bytes of the body have arrived. */
static void advance(call* i, uint64_t n) {
  i->rest -= n, i->served = i->rest == 0;
  i->to = i->served ? NULL : i->to + n;
  if (i->served && !i->c->mine) UNLOCKED(i->c->e, i->c->e->config.serve(i->c->e->config.arg, &i->in));
  if (i->served && i->c->mine) end(i, NULL);
}
/* The head has arrived. */
static bool begin(const connection* c, call* i, const frame* f, const void* head) {
  void *data = NULL, *region = NULL;
  const uint64_t id = c->mine ? f->id : ++c->e->count;
  i->in = (tw_incoming){TW_SIZED(tw_incoming), id, c->name, strlen(c->name), head, f->head, NULL, f->bytes, i, TW_PEER_ANY, 0};
  UNLOCKED(c->e, tw_ask_place(i->m.place, i->m.arg, &i->in, &data, &region));
  i->in.body = i->to = data, i->rest = data ? f->bytes : 0, i->placed = true;
  if (!i->rest) advance(i, 0);
  return true;
}
/* Takes a packet from the buffer that is not a piece. Returns false if the packet is invalid. */
static bool take(connection* c, call* i, const frame* f) {
  const tw_message request = {.arg = c->e->config.arg, .place = c->e->config.place};
  if (c->mine && i && i->m.done) i->out = false; /* an answer, even to an incomplete request */
  if (c->mine) return f->kind == ANSWER && (!i || !i->m.done || (!i->placed && begin(c, i, f, c->e->buffer)));
  if (f->kind == CANCEL) return !i || (i->cancelled = true);
  if (f->kind != REQUEST || i || c->n_calls >= 2 * kCalls) return false;
  i = new_call(c, *f, &request, c->e->buffer);
  return i && begin(c, i, f, i->head);
}
static bool lose(connection* c) { return close(c->fd), c->fd = -1, false; }
/* Reads a packet. Returns false if there is none, or if the connection is lost. */
static bool read_one(connection* c) {
  frame f = {0};
  const ssize_t n = recv(c->fd, &f, sizeof f, MSG_PEEK | MSG_TRUNC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  call* i = find(c, f.id);
  const bool piece = f.kind == PIECE, wanted = piece && i && i->to;
  const uint64_t more = (uint64_t)n - sizeof f, most = wanted ? i->rest : piece ? kPiece : TW_MESSAGE_HEAD;
  if (n < (ssize_t)sizeof f || more > most || (!piece && more != f.head)) return lose(c);
  struct iovec v[2] = {{&f, sizeof f}, {wanted ? i->to : c->e->buffer, more}};
  UNLOCKED(c->e, (void)!recvmsg(c->fd, &(struct msghdr){.msg_iov = v, .msg_iovlen = 2}, 0));
  if (wanted) advance(i, more);
  return piece || take(c, i, &f) || lose(c);
}
/* Writes a packet. Returns false if that is not possible now, or if the connection is lost. */
static bool write_one(connection* c, call* i) {
  frame piece = {.kind = PIECE, .id = i->f.id};
  const uint64_t rest = i->m.bytes - i->sent, n = !i->began ? 0 : rest < kPiece ? rest : kPiece;
  struct iovec v[2] = {{&i->f, sizeof piece}, {i->head, i->f.head}};
  if (i->began) v[0].iov_base = &piece, v[1] = (struct iovec){(char*)i->m.body + i->sent, n};
  ssize_t written;
  UNLOCKED(c->e, written = sendmsg(c->fd, &(struct msghdr){.msg_iov = v, .msg_iovlen = 2}, MSG_NOSIGNAL));
  if (written < 0) return errno != EAGAIN && errno != EINTR && lose(c);
  i->began = true, i->sent += n, i->turn = ++c->e->count, i->out = i->sent < i->m.bytes;
  if (!i->out && i->f.kind != REQUEST) end(i, NULL);
  return true;
}

static void tend(connection* c) {
  endpoint* e = c->e;
  connection** at = &e->all;
  const bool closing = c->closing || e->closing;
  if (closing && c->fd >= 0) lose(c);
  for (int turn = 0; turn < 64 && c->fd >= 0 && next_out(c) && write_one(c, next_out(c)); ++turn) continue;
  EACH(call, i, c->calls) {
    const bool over = c->mine || i->answered;
    if (c->fd >= 0 && !i->cancelled) continue;
    if (!over && i->placed) i->placed = false, UNLOCKED(e, e->config.gone(e->config.arg, i->in.id));
    if (over || !i->served) end(i, i->m.done ? ended(c, c->fd < 0 && !closing) : NULL);
  }
  if (c->fd >= 0 || c->calls || (c->mine && !closing)) return;
  while (*at != c) at = &(*at)->next;
  *at = c->next, --e->n_connections;
  free(c);
}
static connection* new_connection(endpoint* e, int fd, const char* name, bool mine) {
  struct ucred who = {0};
  const bool ours = !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &(socklen_t){sizeof who}) && who.uid == geteuid();
  connection* c = ours && e->n_connections < kConnections ? calloc(1, sizeof *c) : NULL;
  if (!c) return close(fd), NULL;
  snprintf(c->name, sizeof c->name, "%s", name);
  c->e = e, c->fd = fd, c->mine = mine, c->next = e->all, e->all = c, ++e->n_connections;
  return c;
}
static void* progress(void* arg) {
  endpoint* e = arg;
  struct pollfd p[kConnections + 2];
  sigset_t signals;
  sigfillset(&signals);
  pthread_sigmask(SIG_SETMASK, &signals, NULL); /* this thread takes no signals */
  enter(e);
  for (nfds_t n = 2;; n = 2) {
    EACH(connection, c, e->all) tend(c);
    if (e->closing && !e->all) return leave(e), NULL;
    p[0] = (struct pollfd){e->wake, POLLIN, 0}, p[1] = (struct pollfd){e->closing ? -1 : e->listener, POLLIN, 0};
    EACH(connection, c, e->all) c->p = &p[n], p[n++] = (struct pollfd){c->fd, next_out(c) ? POLLIN | POLLOUT : POLLIN, 0};
    UNLOCKED(e, poll(p, n, -1));
    if (p[0].revents) (void)!read(e->wake, &(uint64_t){0}, 8);
    EACH(connection, c, e->all) for (int turn = 0; c->p && c->p->revents && turn < 64 && read_one(c); ++turn) continue;
    const int fd = p[1].revents ? accept4(e->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
    if (fd >= 0) new_connection(e, fd, "a process of this user", false);
    if (p[1].revents && fd < 0) UNLOCKED(e, usleep(1000)); /* no descriptors left: do not spin */
  }
}

/* Returns a socket that is bound or connected to the name, or -1 with errno set. */
static int open_socket(struct sockaddr_un* at, const char* name, uint64_t n, bool binds) {
  const int fd = n <= kName ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
  const socklen_t size = (socklen_t)(sizeof at->sun_family + (n ? n + 1 : 0));
  *at = (struct sockaddr_un){.sun_family = AF_UNIX};
  if (n) memcpy(at->sun_path + 1, name, n < kName ? n : kName);
  if (n > kName) errno = ENAMETOOLONG;
  return fd < 0 || !(binds ? bind(fd, (struct sockaddr*)at, size) : connect(fd, (struct sockaddr*)at, size)) ? fd : (close(fd), -1);
}
static tw_status* no_socket(const tw_host* h, const struct sockaddr_un* at) {
  return failure(h, errno == EINVAL || errno == ENAMETOOLONG ? TW_INVALID_ARGUMENT : TW_UNAVAILABLE, at->sun_path + 1, strerror(errno));
}
static void close_endpoint(const tw_host* h, void* self) {
  endpoint* e = self;
  (void)h, enter(e);
  e->closing = true;
  leave(e);
  pthread_join(e->thread, NULL);
  close(e->listener), close(e->wake), pthread_mutex_destroy(&e->mu);
  free(e);
}
static tw_status* listen_at(const tw_host* h, void* user, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint) {
  struct sockaddr_un at;
  socklen_t n = sizeof at;
  endpoint* e = calloc(1, sizeof *e);
  (void)user;
  if (e) e->h = h, e->config = *c, pthread_mutex_init(&e->mu, NULL), enter(e); /* the thread waits until it is complete */
  if (!e || pthread_create(&e->thread, NULL, progress, e)) return free(e), failure(h, TW_RESOURCE_EXHAUSTED, "listen", "found no memory");
  e->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), e->listener = open_socket(&at, c->address, c->address_len, true);
  const bool bad = e->wake < 0 || e->listener < 0 || listen(e->listener, 128) || getsockname(e->listener, (struct sockaddr*)&at, &n);
  tw_status* why = bad ? no_socket(h, &at) : NULL;
  e->closing = bad;
  leave(e);
  if (!bad) why = bound->put(bound, at.sun_path + 1, strlen(at.sun_path + 1));
  if (why) return close_endpoint(h, e), why;
  *out_endpoint = e;
  return NULL;
}
static tw_status* connect_to(const tw_host* h, void* self, const char* address, uint64_t len, void** out_peer) {
  struct sockaddr_un at;
  const int fd = open_socket(&at, address, len, false);
  if (fd < 0) return no_socket(h, &at);
  enter(self);
  connection* c = new_connection(self, fd, at.sun_path + 1, true);
  leave(self);
  if (c) *out_peer = c;
  return c ? NULL : failure(h, TW_PERMISSION_DENIED, at.sun_path + 1, "is another user's, or there are too many connections");
}
static void close_peer(const tw_host* h, void* peer) {
  connection* c = peer;
  endpoint* e = c->e;
  (void)h, enter(e);
  c->closing = true;
  leave(e);
}
static tw_status* call_peer(const tw_host* h, void* peer, uint64_t id, const tw_message* m) {
  connection* c = peer;
  enter(c->e);
  const bool lost = c->fd < 0;
  call* i = lost || c->n_calls >= kCalls ? NULL : new_call(c, (frame){REQUEST, id, m->head_bytes, m->bytes}, m, m->head);
  leave(c->e);
  return i ? NULL : lost ? ended(c, true) : failure(h, TW_RESOURCE_EXHAUSTED, c->name, "takes no more calls now");
}
static void cancel_call(const tw_host* h, void* peer, uint64_t id) {
  connection* c = peer;
  (void)h, enter(c->e);
  call* i = find(c, id);
  if (i && i->m.done) i->cancelled = true;
  leave(c->e);
}
static void answer_call(const tw_host* h, void* self, const tw_message* m) {
  call* i = self;
  endpoint* e = i->c->e;
  (void)h, enter(e);
  i->f = (frame){ANSWER, i->f.id, m->head_bytes, m->bytes}, i->m = *m, i->out = i->answered = true;
  if (m->head_bytes) memmove(i->head, m->head, m->head_bytes);
  leave(e);
}

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  const tw_transport_def d = {TW_SIZED(tw_transport_def), TW_S("unix"),          .security = TW_TRANSPORT_SAME_HOST,
                              .listen = listen_at,        .connect = connect_to, .call = call_peer,
                              .cancel = cancel_call,      .answer = answer_call, .close_peer = close_peer,
                              .close = close_endpoint};
  (void)h, (void)out_instance;
  return tw_add_transport(r, &d);
}
TW_PLUGIN("org.example.unix", "1.0", init)
