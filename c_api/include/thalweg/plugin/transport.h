/* Transports: bytes between processes. The host gives keyed messages for the tensors of a step and small calls for control; a transport
 * moves them and says on timelines when it is done. It never looks into what it carries, and knows no graph, device or collective.
 *
 * Addresses have no scheme before them. Steps and keys: a message is found by (step, key), once. Receive may be asked for before the
 * message is there or after, and in any order; a message that nobody has asked for yet waits at the sender or, at most `window` bytes of
 * them a peer, at the receiver (never an error, never unbounded memory).
 * Deadlines are on the clock of host->run->now, in nanoseconds; 0: none. Every wait of a transport ends by its deadline, by abort, or
 * when the peer is lost (UNAVAILABLE naming the address).
 * Who is at the other end is proven by the transport (TLS), or it works only within one machine (sockets in folders of the user alone,
 * loopback), or the program asked for an open one by name; see `security` below.
 * Threads: any, several at once. No entry but close and close_peer blocks: results come on timelines and callbacks, from the transport's
 * own threads, which callbacks must not hold up. */
#ifndef THALWEG_PLUGIN_TRANSPORT_H
#define THALWEG_PLUGIN_TRANSPORT_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {                                 /* tw_transport_def.security: whom it lets in */
       TW_TRANSPORT_AUTHENTICATED = 1, /* peers prove who they are, and what is sent is encrypted */
       TW_TRANSPORT_SAME_HOST = 2,     /* only processes of this user on this machine */
       TW_TRANSPORT_OPEN = 3           /* anybody who reaches the port; the host uses it only when it is asked for by name */
};

/* A call that came in. answer: exactly once, from any thread, during `serve` or later; takes s; body: copied. */
typedef struct tw_incoming {
  TW_HEAD;
  TW_TEXT(method);
  TW_TEXT(peer); /* the caller's address or proven name, for logs and rules */
  const void* body;
  uint64_t bytes;
  int64_t deadline; /* 0: none */
  void* self;       /* the transport's, for answer */
  TW_R void (*answer)(const tw_host* h, void* self, tw_status* s, const void* body, uint64_t bytes);
} tw_incoming;

/* What an endpoint needs from the host. Copied by listen. */
typedef struct tw_endpoint_config {
  TW_HEAD;
  TW_TEXT(address);    /* host:port, a path, whatever the scheme means; empty: a free one */
  TW_TEXT(credential); /* what the transport's documentation says: file names of keys, a token; empty: none */
  uint64_t window;     /* bytes a peer may have waiting here unasked; 0: the transport's choice */
  uint64_t largest;    /* bytes of the largest message or body that is taken; 0: 2^31 */
  void* arg;
  TW_R void (*serve)(void* arg, const tw_incoming* call); /* call: valid until it is answered */
} tw_endpoint_config;

/* One tensor on its way. */
typedef struct tw_message {
  TW_HEAD;
  uint64_t step;
  TW_TEXT(key);
  const void* head; /* small: what the receiver must know before it has memory (dtype and dims); at most 4096 bytes */
  uint64_t head_bytes;
  void* data; /* host address; or, with region, memory of a device or registered memory */
  uint64_t offset;
  uint64_t bytes;
  void* region;      /* from register_memory; NULL: plain host memory */
  tw_timeline* line; /* reaches `value` when `data` may be used again; fails if the peer is lost */
  uint64_t value;
} tw_message;

typedef struct tw_receipt {
  TW_HEAD;
  uint64_t step;
  TW_TEXT(key);
  void* arg;
  /* The memory that the message goes to, once its head is there; an error refuses it. */
  TW_R tw_status* (*place)(void* arg, const void* head, uint64_t head_bytes, uint64_t bytes, void** out_data, void** out_region);
  tw_timeline* line; /* reaches `value` when the data is there, or never will be: then it has failed */
  uint64_t value;
  int64_t deadline;
} tw_receipt;

typedef struct tw_transport_def {
  TW_HEAD;
  TW_TEXT(scheme); /* of addresses: unix, tcp, grpc */
  void* user;
  uint32_t security, reserved;
  /* address: the one it is reached at goes to `bound`. */
  TW_R tw_status* (*listen)(const tw_host* h, void* user, const tw_endpoint_config* c, tw_sink* bound, void** out_endpoint);
  /* Starts to connect. UNAVAILABLE: nobody there yet, ask again; every use of a peer whose connection fails later answers UNAVAILABLE. */
  TW_R tw_status* (*connect)(const tw_host* h, void* endpoint, const char* address, uint64_t len, void** out_peer);
  TW_R tw_status* (*send)(const tw_host* h, void* peer, const tw_message* m);    /* its line says when it is done */
  TW_R tw_status* (*receive)(const tw_host* h, void* peer, const tw_receipt* r); /* as send */
  /* done: exactly once unless call answered an error; takes s; body: valid during done. request: copied. */
  TW_R tw_status* (*call)(const tw_host* h, void* peer, const char* method, uint64_t len, const void* request, uint64_t bytes,
                          int64_t deadline, void (*done)(void* arg, tw_status* s, const void* body, uint64_t bytes), void* arg);
  /* Ends every send and receive of the step, here and at the peers: their timelines fail with `why` (borrowed). Later ones fail at once. */
  TW_R void (*abort)(const tw_host* h, void* endpoint, uint64_t step, const tw_status* why);
  /* Forgets a step that is over: messages that nobody asked for are dropped, uses that come later fail. */
  TW_R void (*forget)(const tw_host* h, void* endpoint, uint64_t step);
  TW_R void (*close_peer)(const tw_host* h, void* peer); /* what is under way fails with CANCELLED; returns when nothing of it runs */
  TW_R void (*close)(const tw_host* h, void* endpoint);  /* peers first; waits until calls that came in are answered */
  /* Memory that is sent from or received into without copies. device_kind: empty for host memory. */
  TW_C tw_status* (*register_memory)(const tw_host* h, void* endpoint, const char* device_kind, uint64_t len, void* memory, uint64_t bytes,
                                     void** out_region);
  TW_O void (*unregister_memory)(const tw_host* h, void* endpoint, void* region); /* frees the region, not the memory */
} tw_transport_def;

#ifdef __cplusplus
}
#endif
#endif
