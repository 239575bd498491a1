/* Devices. The smallest device is four functions: enumerate, allocate, release, copy. Streams make it asynchronous; the other sets make it
 * faster or tell more of it. Each set may be left out on its own: the host does without it. Kinds are data: the host knows no device by
 * name. */
#ifndef THALWEG_PLUGIN_DEVICE_H
#define THALWEG_PLUGIN_DEVICE_H
#include "thalweg/plugin/abi.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {                              /* tw_device_info.flags */
       TW_DEVICE_HOST_MEMORY = 1u,  /* allocate answers host addresses that any thread may read and write */
       TW_DEVICE_POOLS_ITSELF = 2u, /* allocate and release are cheap: the host keeps no memory of this device back for later */
       TW_DEVICE_ON_REQUEST = 4u    /* nothing runs here but what names this kind */
};

typedef struct tw_device_info {
  TW_HEAD;
  TW_TEXT(uid);         /* stable over restarts, for people and caches */
  TW_TEXT(description); /* model, driver */
  void* self;           /* handed to every call */
  uint64_t memory;      /* bytes; 0: unknown */
  uint64_t largest;     /* bytes that one allocation may have; 0: as many as there is memory */
} tw_device_info;

typedef struct tw_device_list {
  TW_HEAD;
  TW_R tw_status* (*add)(struct tw_device_list* l, const tw_device_info* d); /* there is this one; d: copied */
} tw_device_list;

/* Both of from_host and to_host 0: from one memory of this device to another, which may not overlap. Both 1: a device whose own memory is
 * the host's; such a device also gets its own memory as host addresses. Never of 0 bytes. */
typedef struct tw_copy {
  TW_HEAD;
  void* from;
  uint64_t from_offset;
  void* to;
  uint64_t to_offset;
  uint64_t bytes;
  uint32_t from_host, to_host; /* 1: a host address */
  void* stream;                /* NULL: done on return */
} tw_copy;

/* Queues of a device, in order each. Calls about one stream are serialised by the host; two streams are used from two threads at once.
 * When an error of enqueued work turns up later, the stream says so with timeline->fail, and still signals every value. A line that has
 * failed stays failed: the host ends the step, destroys the stream and makes another for the next step. */
typedef struct tw_stream_set {
  TW_HEAD;
  /* line: lent; a stream that signals from a thread of its own retains it. */
  TW_R tw_status* (*create)(const tw_host* h, void* self, tw_timeline* line, void** out_stream);
  /* The last call about a stream. Returns when all its work is over and nothing of it will touch memory again; may block. */
  TW_R void (*destroy)(const tw_host* h, void* stream);
  /* timeline->signal(line, value) once all work enqueued before this call is over, from any thread. Never waits for it. An error means that
   * the value will not be signalled: the host then destroys the stream before it uses again any memory that the stream's work touched. */
  TW_R tw_status* (*signal)(const tw_host* h, void* stream, uint64_t value);
  TW_O tw_status* (*wait)(const tw_host* h, void* stream, tw_timeline* other, uint64_t value); /* default: the host holds later work back */
} tw_stream_set;

/* Host memory that the device copies from and to without a detour. */
typedef struct tw_pinned_set {
  TW_HEAD;
  TW_R tw_status* (*allocate)(const tw_host* h, void* self, uint64_t bytes, void** out_address); /* 64-byte aligned; may block */
  TW_R void (*release)(const tw_host* h, void* self, void* address, uint64_t bytes);
} tw_pinned_set;

/* Copies between two devices of one kind and plugin that leave the host out. */
typedef struct tw_peer_set {
  TW_HEAD;
  TW_R uint32_t (*reaches)(const tw_host* h, void* self,
                           void* other); /* 1: copy works from self to other; the same for the process's life */
  /* c->from is memory of self, c->to of other; c->stream is self's, or NULL: done on return. With streams the host makes it wait for what
   * other's stream holds, and other's stream for it. */
  TW_R tw_status* (*copy)(const tw_host* h, void* self, void* other, const tw_copy* c);
} tw_peer_set;

/* Native events and queues, for work that other libraries enqueue on the same device. */
typedef struct tw_event_set {
  TW_HEAD;
  TW_TEXT(kind);                                                               /* whose `event` and queue are: cuda, opencl */
  TW_R tw_status* (*wait)(const tw_host* h, void* stream, void* event);        /* later work of the stream waits for it; borrowed */
  TW_R tw_status* (*record)(const tw_host* h, void* stream, void** out_event); /* reached when what was enqueued so far is over */
  TW_R void (*release)(const tw_host* h, void* self, void* event);             /* of record; the stream may be gone */
  TW_C void* (*queue)(const tw_host* h, void* stream);                         /* what is enqueued there stands in the stream's order */
} tw_event_set;

/* Numbers about a device, for reports. Names in use: memory_used, memory_peak, memory_largest_free (bytes), temperature (degrees C),
 * busy (percent); others are shown as they are. */
typedef struct tw_number_list {
  TW_HEAD;
  TW_R tw_status* (*add)(struct tw_number_list* l, const char* name, uint64_t len, int64_t value);
} tw_number_list;
typedef struct tw_statistics_set {
  TW_HEAD;
  TW_R tw_status* (*read)(const tw_host* h, void* self, tw_number_list* to); /* as they are now */
} tw_statistics_set;

/* Recorded work: what is enqueued between begin and end is not run but kept, to be enqueued again as often as wanted, with the same
 * memory. Only kernels that say capture_safe are called meanwhile. */
typedef struct tw_capture_set {
  TW_HEAD;
  TW_R tw_status* (*begin)(const tw_host* h, void* stream);
  TW_R tw_status* (*end)(const tw_host* h, void* stream, void** out_recording); /* after a failure the stream is as before begin */
  TW_R tw_status* (*replay)(const tw_host* h, void* stream, void* recording);
  TW_R void (*release)(const tw_host* h, void* self, void* recording); /* never while a replay is under way */
  /* As end, but `recording`, of the same device, becomes what was enqueued; never while a replay is under way. After a failure it is good
   * for nothing but release. Default: the host ends, and releases the old one. */
  TW_O tw_status* (*end_into)(const tw_host* h, void* stream, void* recording);
} tw_capture_set;

/* When work ran on the device. Times on the clock of host->run->now. A span that says which stream's work it is, and is added before that
 * stream signals a value larger than `after`, is told of the node that enqueued it. */
typedef struct tw_span {
  TW_HEAD;
  TW_TEXT(queue); /* compute, copy in, ...: a row of the trace */
  TW_TEXT(name);
  int64_t begin, end;
  const void* stream; /* as create answered it; NULL: none, not said, or no work: a wait for another queue */
  uint64_t after;     /* the latest value that the stream had been told to signal when this was enqueued; 0: none */
} tw_span;
typedef struct tw_span_list {
  TW_HEAD;
  TW_R void (*add)(struct tw_span_list* l, const tw_span* s); /* any thread */
} tw_span_list;
typedef struct tw_profile_set {
  TW_HEAD;
  TW_R tw_status* (*start)(const tw_host* h, void* self, tw_span_list* to); /* what runs from now on goes to `to` */
  TW_R void (*stop)(const tw_host* h, void* self);                          /* returns when nothing will be added any more; may block */
} tw_profile_set;

/* Memory of the device that other libraries use too, as DLPack tells of it. */
typedef struct tw_dlpack_set {
  TW_HEAD;
  uint32_t type;                                    /* DLDeviceType of the kind: 2 CUDA, 4 OpenCL; 12 for one without a number */
  uint32_t handles;                                 /* 1: memory is an object, and what lies in it has an offset; 0: it is an address */
  TW_R int32_t (*id)(const tw_host* h, void* self); /* DLDevice.device_id */
  /* [memory + offset, + bytes), which another library made, is going to be read as this device's own: what is enqueued from now on waits
   * for what `queue` holds, a native one as of tw_event_set; NULL: nothing. memory: lives until the last work that reads it is over. queue:
   * borrowed. Errors: INVALID_ARGUMENT saying why this device cannot: of another context, too short. May block. */
  TW_R tw_status* (*take)(const tw_host* h, void* self, void* memory, uint64_t offset, uint64_t bytes, void* queue);
} tw_dlpack_set;

typedef struct tw_device_def {
  TW_HEAD;
  TW_TEXT(kind); /* upper case by custom: CPU, OPENCL */
  void* user;
  /* NOT_FOUND: there is none, and why; nothing to warn of. May block. */
  TW_R tw_status* (*enumerate)(const tw_host* h, void* user, tw_device_list* to);
  /* bytes: more than 0. align: a power of two. RESOURCE_EXHAUSTED: the host gives back what it keeps for later and asks once more. May
   * block. */
  TW_R tw_status* (*allocate)(const tw_host* h, void* self, uint64_t bytes, uint64_t align, void** out_memory);
  TW_R void (*release)(const tw_host* h, void* self, void* memory, uint64_t bytes); /* never before the timeline has passed its last use */
  TW_R tw_status* (*copy)(const tw_host* h, void* self, const tw_copy* c); /* one side is this device; without a stream it may block */
  TW_C const tw_stream_set* streams;                                       /* this and the sets below: copied and sealed too */
  TW_C const tw_pinned_set* pinned;
  TW_C const tw_peer_set* peer;
  TW_C const tw_event_set* events;
  TW_C const tw_statistics_set* statistics;
  TW_C const tw_capture_set* capture;
  TW_C const tw_profile_set* profile;
  TW_C const tw_dlpack_set* dlpack;
} tw_device_def;

/* A timeline says when work is over and, apart, how it went. Values are signalled after a failure too: memory is used again on signal.
 * `when` callbacks run on whatever thread signals, so they may not block, and may not call into the device whose thread that is. */
typedef struct tw_timeline_api {
  TW_HEAD;
  TW_R void (*retain)(tw_timeline* t);
  TW_R void (*release)(tw_timeline* t);
  TW_R void (*signal)(tw_timeline* t, uint64_t value); /* a lost device signals UINT64_MAX after its last access */
  TW_R void (*fail)(tw_timeline* t, tw_status* why);   /* takes why; the first one stays, for good */
  /* done(arg, why) once value is reached, at once (inside `when`) if it is already; why: NULL or the failure, borrowed. Called once, with
   * the failure or UNAVAILABLE where the timeline ends before that. */
  TW_R void (*when)(tw_timeline* t, uint64_t value, void (*done)(void* arg, const tw_status* why), void* arg);
} tw_timeline_api;

#ifdef __cplusplus
}
#endif
#endif
