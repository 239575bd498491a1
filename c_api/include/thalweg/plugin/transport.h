/* Transports carry calls between processes, and do nothing else. A call is a request to a peer and
 * its answer. Each is a message with a head (small, copied) and a body (of any size, moved between
 * the memory of the two hosts). A transport never inspects what it carries, and knows no method,
 * step, key, deadline, failure, graph or device. The host handles these, in heads and with cancel
 * (plugins/roles.md shows how). A transport therefore buffers nothing that nobody requested and
 * blocks nobody: calls may be answered in any order, or never, and a call that waits for its answer
 * costs a few kilobytes.
 *
 * Memory: a body is borrowed until its message is done. The receiver of a body provides its memory
 * before it arrives (`place`), so no byte has to be copied on the way, and no transport allocates
 * memory because a peer asks for it.
 * The end: every outgoing message is done once, whatever happens to the peer or the endpoint;
 * afterwards nothing of it is touched. If a peer is lost, its calls end with UNAVAILABLE naming its
 * address. The only time limits are those by which a transport detects a lost peer.
 * Identity: the transport authenticates the peer (TLS), or it works only within one machine
 * (sockets that know who connects, loopback), or the program asked for an open transport by name;
 * see `security` below.
 * Addresses are without the scheme.
 * Threads: any, several at once. No entry except close and poll blocks. The host's callbacks
 * (place, serve, gone, done) come from the transport's own threads, or from inside poll, never from
 * inside another entry; they do not block, and may use every entry except close and poll. */
#ifndef THALWEG_PLUGIN_TRANSPORT_H
#define THALWEG_PLUGIN_TRANSPORT_H
#include "thalweg/plugin/abi.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {                                 /* tw_transport_def.security: the peers that it admits */
       TW_TRANSPORT_AUTHENTICATED = 1, /* peers prove their identity, and traffic is encrypted */
       TW_TRANSPORT_SAME_HOST = 2,     /* only processes of this user on this machine */
       TW_TRANSPORT_OPEN = 3           /* anybody who reaches the port; the host uses it only if it is asked for by name */
};
enum {                        /* tw_endpoint_config.flags */
       TW_ENDPOINT_OPEN = 1u, /* a missing credential is no error: the program asked by name for unauthenticated peers */
       TW_ENDPOINT_CALLS = 2u /* only outgoing calls; nobody has to reach it, so `bound` may stay empty */
};
enum {                    /* tw_incoming.role: the role that a peer has proven */
       TW_PEER_ANY = 0,   /* the transport does not distinguish roles */
       TW_PEER_TASK = 1,  /* a task of the cluster */
       TW_PEER_CLIENT = 2 /* a program that uses the cluster */
};
enum { TW_MESSAGE_HEAD = 4096 }; /* largest head in bytes; the host obeys it, and a peer that sends more is lost */

/* An incoming message: a request, or an answer. */
typedef struct tw_incoming {
  TW_HEAD;
  uint64_t id;   /* of a request: unique in the life of the endpoint; of an answer: the call's */
  TW_TEXT(peer); /* sender, as far as it is proven (a name of a certificate, a user, an address), for logs and rules */
  const void* head;
  uint64_t head_bytes;
  const void* body;        /* memory from `place`; NULL during place, and if place gave none */
  uint64_t bytes;          /* of the sent body, wanted or not */
  void* self;              /* of a request: the transport's own, passed to answer */
  uint32_t role, reserved; /* role of the sender: TW_PEER_* */
} tw_incoming;

/* Memory for a body. */
typedef struct tw_placement {
  TW_HEAD;
  void* data;   /* as many bytes as the message has; host memory, or inside `region` */
  void* region; /* from register_memory; NULL: plain host memory */
} tw_placement;

/* Receives the memory for a body. */
typedef struct tw_placing {
  TW_HEAD;
  void* user;
  TW_R void (*put)(struct tw_placing* p, const tw_placement* at); /* at most once; at: copied */
} tw_placing;

/* Provides the memory for a body with to->put. It is used until the message is served or done, or
 * gone. Called once for each incoming message, also for one without a body. If place puts none, the
 * body is dropped and the message arrives without it. */
typedef void (*tw_place_fn)(void* arg, const tw_incoming* m, tw_placing* to);

/* For hosts: puts plain host memory. data: NULL puts none. */
static inline void tw_put_place(tw_placing* to, void* data) {
  tw_placement at;
  at.size = (uint32_t)sizeof at;
  at.flags = 0;
  at.data = data;
  at.region = NULL;
  if (data) to->put(to, &at);
}

/* Keeps a placement; see tw_ask_place. */
static inline void tw_keep_place(tw_placing* p, const tw_placement* at) {
  *(void**)p->user = at->data;
  ((void**)p->user)[1] = TW_HAS(at, region) ? at->region : NULL;
}

/* For transports: asks for the memory of a body. *out_data, *out_region: NULL if the body is not
 * wanted. */
static inline void tw_ask_place(tw_place_fn place, void* arg, const tw_incoming* m, void** out_data, void** out_region) {
  void* kept[2] = {NULL, NULL};
  tw_placing to;
  to.size = (uint32_t)sizeof to;
  to.flags = 0;
  to.user = kept;
  to.put = tw_keep_place;
  place(arg, m, &to);
  *out_data = kept[0];
  *out_region = kept[1];
}

/* An outgoing message: a request, or an answer. */
typedef struct tw_message {
  TW_HEAD;
  const void* head; /* copied */
  uint64_t head_bytes;
  const void* body; /* host memory, or inside `region`; borrowed until done */
  uint64_t bytes;
  void* region; /* from register_memory; NULL: plain host memory */
  void* arg;
  TW_R tw_place_fn place; /* for the answer to a request, which stays valid meanwhile; NULL in an answer */
  /* Called exactly once, unless call returned an error. s: taken, may be NULL. NULL: the answer of
   * a request has arrived, or an answer is on its way. UNAVAILABLE or CANCELLED: the answer will
   * not arrive, or nobody waits for it. PERMISSION_DENIED: the peer is not the expected one, or
   * does not admit us. */
  TW_R void (*done)(void* arg, tw_status* s);
} tw_message;

/* Configuration of an endpoint. listen copies it, but not its texts. */
typedef struct tw_endpoint_config {
  TW_HEAD;
  TW_TEXT(address);    /* host:port, a path, or what the scheme defines; empty: a free one */
  TW_TEXT(credential); /* as the transport's documentation defines: file names of keys, a token; empty: none */
  uint64_t largest;    /* largest body in bytes: a transport that has to buffer bodies before it calls `place` drops peers that send more */
  void* arg;
  TW_R tw_place_fn place; /* for requests */
  /* Called for each request. The request must be answered once, now or later, from any thread;
   * `request` is valid until then. */
  TW_R void (*serve)(void* arg, const tw_incoming* request);
  /* Reports that nobody waits for the answer any more: the call was cancelled, its peer is lost, or
   * the endpoint closes. Called at most once a request, after its place or serve has returned (the
   * three never overlap), possibly while it is being answered. A request that was not served yet is
   * over and will not be served; any other must still be answered. */
  TW_R void (*gone)(void* arg, uint64_t id);
} tw_endpoint_config;

typedef struct tw_transport_def {
  TW_HEAD;
  TW_TEXT(scheme); /* of addresses: unix, tcp, grpc */
  void* user;
  uint32_t security, reserved;
  /* Starts an endpoint and writes its reachable address to `bound`. Requests may arrive before
   * listen returns. */
  TW_R tw_status* (*listen)(const tw_host* h, void* user, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint);
  /* Starts to connect; a peer may be this endpoint itself. Errors: UNAVAILABLE (nobody there yet,
   * try again; a transport may find this out only at the first call); INVALID_ARGUMENT (no such
   * address); PERMISSION_DENIED (a peer that is not admitted); RESOURCE_EXHAUSTED. If the
   * connection fails later, every call to the peer ends with UNAVAILABLE. A lost peer stays lost,
   * even if the engine below reconnects by itself, perhaps to a new process: close it and connect
   * again. */
  TW_R tw_status* (*connect)(const tw_host* h, void* endpoint, const char* address, uint64_t len, void** out_peer);
  /* Sends a request. id: the caller's number of the call, for cancel; unique for this peer. Calls
   * may overtake one another. Errors: RESOURCE_EXHAUSTED (too many calls at once); done reports a
   * later loss of the peer. */
  TW_R tw_status* (*call)(const tw_host* h, void* peer, uint64_t id, const tw_message* request);
  /* Ends the call with CANCELLED as soon as its memory is no longer touched, whatever the peer
   * does; the peer's `gone` is called. No effect if the call is over, or unknown. */
  TW_R void (*cancel)(const tw_host* h, void* peer, uint64_t id);
  TW_R void (*answer)(const tw_host* h, void* self, const tw_message* m); /* self: of the request */
  TW_R void (*close_peer)(const tw_host* h, void* peer); /* its calls end with CANCELLED soon; the host does not use the peer again */
  /* Closes the endpoint and its peers. Blocks until outgoing messages are done and incoming
   * requests are answered; then nothing of the endpoint runs. */
  TW_R void (*close)(const tw_host* h, void* endpoint);
  /* Registers memory that bodies may be sent from and received into without copies. device_kind:
   * empty for host memory. */
  TW_C tw_status* (*register_memory)(const tw_host* h, void* endpoint, const char* device_kind, uint64_t len, void* memory, uint64_t bytes,
                                     void** out_region);
  TW_O void (*unregister_memory)(const tw_host* h, void* endpoint, void* region); /* frees the region, not the memory */
  /* Lends this thread, which has to wait anyway, to the transport. It does the work of the
   * transport's own threads, callbacks included, so that the event that it waits for wakes it and
   * no other thread. Returns when over(arg) is not 0, or after ns nanoseconds. over is called at
   * first, after each piece of work of this thread and after each wake, possibly under a lock of
   * the transport's. The transport's own threads may rest meanwhile, and for less than a
   * millisecond afterwards. Returns 0 at once if there is no use for the thread now, because
   * another one is lent: wait without poll; else 1. The endpoint is not closed meanwhile. Absent:
   * returns 0. Since 0.1. */
  TW_O uint32_t (*poll)(const tw_host* h, void* endpoint, uint64_t ns, uint32_t (*over)(void* arg), void* arg);
  TW_O void (*wake)(const tw_host* h, void* endpoint); /* makes poll, in another thread, call `over` again. Absent: does nothing. Since
                                                          0.1. */
} tw_transport_def;

#ifdef __cplusplus
}
#endif
#endif
