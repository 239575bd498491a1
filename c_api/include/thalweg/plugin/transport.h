/* Transports: calls between processes, and nothing else. A call is a request to a peer and its answer, each a message: a head (small,
 * copied) and a body (of any size, moved between the memory of the two hosts). A transport never looks into what it carries, and knows no
 * method, step, key, deadline, failure, graph or device: what is asked for, who waits how long, and what ends it is the host's business,
 * said in heads and with cancel (plugins/roles.md shows how). So a transport keeps nothing that nobody asked for, and holds nobody back:
 * calls may be answered in any order, or never, and what waits for its answer costs a few kilobytes.
 *
 * Memory: a body is borrowed until its message is done. Whoever is to get one says where it goes before it comes (`place`), so that no
 * byte has to be copied on the way, and no transport makes memory because a peer says so.
 * The end: every message that goes out is done once, whatever happens to the peer or the endpoint; after that nothing of it is touched.
 * A lost peer ends calls with UNAVAILABLE naming its address. There are no time limits but those by which a transport finds out about it.
 * Who is at the other end is proven by the transport (TLS), or it works only within one machine (sockets that know who connects,
 * loopback), or the program asked for an open one by name; see `security` below.
 * Addresses have no scheme before them.
 * Threads: any, several at once. No entry but close and poll blocks. The host's callbacks (place, serve, gone, done) come from the
 * transport's own threads, or from inside poll, never from inside another entry; they do not block, and may use every entry but close
 * and poll. */
#ifndef THALWEG_PLUGIN_TRANSPORT_H
#define THALWEG_PLUGIN_TRANSPORT_H
#include "thalweg/plugin/abi.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {                                 /* tw_transport_def.security: whom it lets in */
       TW_TRANSPORT_AUTHENTICATED = 1, /* peers prove who they are, and what is sent is encrypted */
       TW_TRANSPORT_SAME_HOST = 2,     /* only processes of this user on this machine */
       TW_TRANSPORT_OPEN = 3           /* anybody who reaches the port; the host uses it only when it is asked for by name */
};
enum {                        /* tw_endpoint_config.flags */
       TW_ENDPOINT_OPEN = 1u, /* a credential that is missing is no error: the program asked by name for peers that prove nothing */
       TW_ENDPOINT_CALLS = 2u /* only calls; nobody has to reach it, so `bound` may stay empty */
};
enum {                    /* tw_incoming.role: what a peer has proven that it is */
       TW_PEER_ANY = 0,   /* the transport tells none from another */
       TW_PEER_TASK = 1,  /* a task of the cluster */
       TW_PEER_CLIENT = 2 /* a program that uses it */
};
enum { TW_MESSAGE_HEAD = 4096 }; /* bytes of a head, at most; the host keeps to it, and whoever sends more is lost */

/* What comes in: a request, or an answer. */
typedef struct tw_incoming {
  TW_HEAD;
  uint64_t id;   /* of a request: no other of the endpoint has or will have it; of an answer: the call's */
  TW_TEXT(peer); /* who sent it, as far as it is proven (a name of a certificate, a user, an address), for logs and rules */
  const void* head;
  uint64_t head_bytes;
  const void* body;        /* what `place` gave; NULL during place, and where it gave none */
  uint64_t bytes;          /* of the body that was sent, wanted or not */
  void* self;              /* of a request: the transport's, for answer */
  uint32_t role, reserved; /* of who sent it: TW_PEER_* */
} tw_incoming;

/* The memory for a body, m->bytes of it at *out_data, plain or inside *out_region; both are NULL before. It is used until the message is
 * served or done, or gone. Called once for each message that comes in, also without a body. Left NULL: the body is not wanted; it is
 * dropped, and the message is there without it. */
typedef void (*tw_place_fn)(void* arg, const tw_incoming* m, void** out_data, void** out_region);

/* What goes out: a request, or an answer. */
typedef struct tw_message {
  TW_HEAD;
  const void* head; /* copied */
  uint64_t head_bytes;
  const void* body; /* host memory, or inside `region`; borrowed until done */
  uint64_t bytes;
  void* region; /* from register_memory; NULL: plain host memory */
  void* arg;
  TW_R tw_place_fn place; /* for the answer to a request, which is valid meanwhile; NULL in an answer */
  /* Exactly once, unless call answered an error. s: taken, may be NULL. NULL: of a request, its answer is there; of an answer, it is on its
   * way. Else UNAVAILABLE or CANCELLED: the answer will not come, or nobody waits for it; or PERMISSION_DENIED: the peer is not who it
   * should be, or does not let us in. */
  TW_R void (*done)(void* arg, tw_status* s);
} tw_message;

/* What an endpoint needs from the host. Copied by listen; the texts are not kept. */
typedef struct tw_endpoint_config {
  TW_HEAD;
  TW_TEXT(address);    /* host:port, a path, whatever the scheme means; empty: a free one */
  TW_TEXT(credential); /* what the transport's documentation says: file names of keys, a token; empty: none */
  uint64_t largest;    /* bytes of a body: a transport that has to hold bodies before it can ask where they go loses peers that send more */
  void* arg;
  TW_R tw_place_fn place; /* for requests */
  /* A request is there. It must be answered once, now or later, from any thread; `request` is valid until then. */
  TW_R void (*serve)(void* arg, const tw_incoming* request);
  /* Nobody waits for the answer any more: the call was cancelled, its peer is lost, or the endpoint closes. At most once a request, when
   * its place or serve has returned (the three never overlap), perhaps while it is answered. If it was not served, it is over and will not
   * be; else it still must be answered. */
  TW_R void (*gone)(void* arg, uint64_t id);
} tw_endpoint_config;

typedef struct tw_transport_def {
  TW_HEAD;
  TW_TEXT(scheme); /* of addresses: unix, tcp, grpc */
  void* user;
  uint32_t security, reserved;
  /* address: the one it is reached at goes to `bound`. Requests may come in before listen returns. */
  TW_R tw_status* (*listen)(const tw_host* h, void* user, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint);
  /* Starts to connect, also to this endpoint itself. Errors: UNAVAILABLE (nobody there yet, ask again; a transport may find it out only
   * by the first call); INVALID_ARGUMENT (no such address); PERMISSION_DENIED (it is somebody who is not let in); RESOURCE_EXHAUSTED.
   * Every call to a peer whose connection fails later ends with UNAVAILABLE. A peer that was lost stays lost, also where the engine below
   * connects again by itself, perhaps to a process that knows nothing: close it and connect again. */
  TW_R tw_status* (*connect)(const tw_host* h, void* endpoint, const char* address, uint64_t len, void** out_peer);
  /* id: the caller's name for the call, for cancel; no other to this peer had it. Calls may overtake one another. Errors:
   * RESOURCE_EXHAUSTED (more calls than it keeps); what becomes of the peer later is told by done. */
  TW_R tw_status* (*call)(const tw_host* h, void* peer, uint64_t id, const tw_message* request);
  /* Ends the call with CANCELLED as soon as its memory is no longer touched, whatever the peer does, which is told by `gone`. Nothing
   * happens if the call is over, or not known. */
  TW_R void (*cancel)(const tw_host* h, void* peer, uint64_t id);
  TW_R void (*answer)(const tw_host* h, void* self, const tw_message* m); /* self: of the request */
  TW_R void (*close_peer)(const tw_host* h, void* peer); /* its calls end with CANCELLED, soon; for the host there is no such peer now */
  /* With its peers. Waits until what went out is done and what came in is answered; then nothing of the endpoint runs. */
  TW_R void (*close)(const tw_host* h, void* endpoint);
  /* Memory with addresses that bodies may lie in and go to without copies. device_kind: empty for host memory. */
  TW_C tw_status* (*register_memory)(const tw_host* h, void* endpoint, const char* device_kind, uint64_t len, void* memory, uint64_t bytes,
                                     void** out_region);
  TW_O void (*unregister_memory)(const tw_host* h, void* endpoint, void* region); /* frees the region, not the memory */
  /* Lends this thread, which has to wait anyway, to the transport: it does what the transport's own threads do, callbacks included, so that
   * what it waits for wakes it and no other. Until over(arg) is not 0, which is asked at first, whenever this thread has done something
   * and after each wake; it may be asked under a lock of the transport's. Or until ns nanoseconds are over. The transport's own threads
   * may rest meanwhile, and for less than a millisecond afterwards. Answers 0 at once if there is no use for the thread now, as another
   * one is lent: wait without; else 1. The endpoint is not closed meanwhile. Absent: answers 0. Since 0.1. */
  TW_O uint32_t (*poll)(const tw_host* h, void* endpoint, uint64_t ns, uint32_t (*over)(void* arg), void* arg);
  TW_O void (*wake)(const tw_host* h, void* endpoint); /* poll, in another thread, asks `over` again. Absent: does nothing. Since 0.1. */
} tw_transport_def;

#ifdef __cplusplus
}
#endif
#endif
