/* Devices. The smallest device has four functions: enumerate, allocate, release, copy. Streams make
 * it asynchronous; the other sets make it faster or report more about it. Each set is optional by
 * itself; the host works without it. Kinds are data: the host knows no device by name. */
#ifndef THALWEG_PLUGIN_DEVICE_H
#define THALWEG_PLUGIN_DEVICE_H
#include "thalweg/plugin/abi.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {                              /* tw_device_info.flags */
       TW_DEVICE_HOST_MEMORY = 1u,  /* allocate returns host addresses that any thread may read and write */
       TW_DEVICE_POOLS_ITSELF = 2u, /* allocate and release are cheap: the host caches no memory of this device */
       TW_DEVICE_ON_REQUEST = 4u    /* only nodes that name this kind run here */
};

typedef struct tw_device_info {
  TW_HEAD;
  TW_TEXT(uid);         /* stable over restarts, for people and caches */
  TW_TEXT(description); /* model, driver */
  void* self;           /* passed to every call */
  uint64_t memory;      /* bytes; 0: unknown */
  uint64_t largest;     /* bytes of the largest allocation; 0: as many as there is memory */
} tw_device_info;

typedef struct tw_device_list {
  TW_HEAD;
  TW_R tw_status* (*add)(struct tw_device_list* l, const tw_device_info* d); /* adds one device; d: copied */
} tw_device_list;

/* A request for memory. */
typedef struct tw_allocation {
  TW_HEAD;
  uint64_t bytes; /* more than 0 */
  uint64_t align; /* a power of two, at least 64 */
} tw_allocation;

/* A copy. from_host and to_host both 0: from one memory of this device to another, without overlap.
 * Both 1: on a device whose own memory is the host's; such a device also gets its own memory as
 * host addresses. bytes is never 0. */
typedef struct tw_copy {
  TW_HEAD;
  void* from;
  uint64_t from_offset;
  void* to;
  uint64_t to_offset;
  uint64_t bytes;
  uint32_t from_host, to_host; /* 1: a host address */
  void* stream;                /* NULL: the copy is complete on return */
} tw_copy;

/* A request for a stream. */
typedef struct tw_stream_config {
  TW_HEAD;
  tw_timeline* line; /* reports the stream's progress; borrowed; a stream that signals from its own thread retains it */
} tw_stream_config;

/* Queues of a device, each in order. The host serialises calls about one stream; two threads may
 * use two streams at once. If enqueued work fails later, the stream calls timeline->fail, and still
 * signals every value. A failed timeline stays failed: the host ends the step, destroys the stream
 * and makes another for the next step. */
typedef struct tw_stream_set {
  TW_HEAD;
  TW_R tw_status* (*create)(const tw_host* h, void* self, const tw_stream_config* c, void** out_stream);
  /* The last call about a stream. Returns when all its work has ended and none will touch memory
   * again; may block. */
  TW_R void (*destroy)(const tw_host* h, void* stream);
  /* Makes the stream call timeline->signal(line, value), from any thread, when all work enqueued
   * before this call has ended. Never waits. An error means that the value will not be signalled:
   * the host then destroys the stream before it reuses memory that the stream's work touched. */
  TW_R tw_status* (*signal)(const tw_host* h, void* stream, uint64_t value);
  TW_O tw_status* (*wait)(const tw_host* h, void* stream, tw_timeline* other, uint64_t value); /* default: the host delays later work */
} tw_stream_set;

/* Pinned host memory, which the device copies from and to directly. */
typedef struct tw_pinned_set {
  TW_HEAD;
  TW_R tw_status* (*allocate)(const tw_host* h, void* self, const tw_allocation* a, void** out_address); /* may block */
  TW_R void (*release)(const tw_host* h, void* self, void* address, uint64_t bytes);
} tw_pinned_set;

/* Copies between two devices of one kind and plugin that bypass the host. */
typedef struct tw_peer_set {
  TW_HEAD;
  TW_R uint32_t (*reaches)(const tw_host* h, void* self,
                           void* other); /* 1: copy works from self to other; constant for the process's life */
  /* c->from is memory of self, c->to of other; c->stream is self's, or NULL: complete on return.
   * With streams the host makes each of the two streams wait for the other's work. */
  TW_R tw_status* (*copy)(const tw_host* h, void* self, void* other, const tw_copy* c);
} tw_peer_set;

/* Native events and queues, for work that other libraries enqueue on the same device. */
typedef struct tw_event_set {
  TW_HEAD;
  TW_TEXT(kind);                                                               /* API of `event` and queue: cuda, opencl */
  TW_R tw_status* (*wait)(const tw_host* h, void* stream, void* event);        /* later work of the stream waits for it; borrowed */
  TW_R tw_status* (*record)(const tw_host* h, void* stream, void** out_event); /* reached when the work enqueued so far has ended */
  TW_R void (*release)(const tw_host* h, void* self, void* event);             /* of an event from record; the stream may be gone */
  TW_C void* (*queue)(const tw_host* h, void* stream);                         /* the native queue of the stream; work enqueued there is
                                                                                  in the stream's order */
} tw_event_set;

/* Statistics of a device, for reports. Names in use: memory_used, memory_peak, memory_largest_free
 * (bytes), temperature (degrees C), busy (percent); others are shown unchanged. */
typedef struct tw_number_list {
  TW_HEAD;
  TW_R tw_status* (*add)(struct tw_number_list* l, const char* name, uint64_t len, int64_t value);
} tw_number_list;
typedef struct tw_statistics_set {
  TW_HEAD;
  TW_R tw_status* (*read)(const tw_host* h, void* self, tw_number_list* to); /* current values */
} tw_statistics_set;

/* A request to record work. */
typedef struct tw_capture_config {
  TW_HEAD;
  void* stream; /* whose work is recorded */
} tw_capture_config;

/* Recorded work: work enqueued between begin and end is not run but recorded, to be enqueued again
 * any number of times, with the same memory. The host calls only capture_safe kernels meanwhile.
 * The last three entries are optional, all or none. With them the host also records kernels whose
 * arguments in host memory change from step to step, such as a learning rate: it names their work,
 * and before a replay it calls those kernels again whose arguments have changed. */
typedef struct tw_capture_set {
  TW_HEAD;
  TW_R tw_status* (*begin)(const tw_host* h, const tw_capture_config* c);
  TW_R tw_status* (*end)(const tw_host* h, void* stream, void** out_recording); /* after a failure the stream is as before begin */
  TW_R tw_status* (*replay)(const tw_host* h, void* stream, void* recording);
  TW_R void (*release)(const tw_host* h, void* self, void* recording); /* never during a replay */
  /* As end, but replaces the work in `recording`, of the same device; never during a replay. After
   * a failure the recording may only be released. Default: the host calls end, and releases the old
   * recording. */
  TW_O tw_status* (*end_into)(const tw_host* h, void* stream, void* recording);
  /* Between begin and end: the work enqueued from now on, up to the next mark, is part `part` of the
   * recording. A part is named once; 0: the work has no name. */
  TW_C tw_status* (*mark)(const tw_host* h, void* stream, uint64_t part);
  /* Work enqueued between update and updated is not run but takes the place of the part in the
   * recording, of the same device; never during a replay. It is the work that the part had, with
   * other values of arguments. After a failure of either the recording may only be released, and
   * the stream is as before update. */
  TW_C tw_status* (*update)(const tw_host* h, void* stream, void* recording, uint64_t part);
  TW_C tw_status* (*updated)(const tw_host* h, void* stream, void* recording, uint64_t part); /* ends the update; see update */
} tw_capture_set;

/* A time in which work ran on the device, on the clock of host->run->now. If a span names its
 * stream, and is added before that stream signals a value larger than `after`, the host assigns it
 * to the node that enqueued the work. */
typedef struct tw_span {
  TW_HEAD;
  TW_TEXT(queue); /* compute, copy in, ...: a row of the trace */
  TW_TEXT(name);
  int64_t begin, end;
  const void* stream; /* the stream from create; NULL: none, unknown, or a wait for another queue */
  uint64_t after;     /* the latest value that the stream had been told to signal when the work was enqueued; 0: none */
} tw_span;
typedef struct tw_span_list {
  TW_HEAD;
  TW_R void (*add)(struct tw_span_list* l, const tw_span* s); /* any thread */
} tw_span_list;
typedef struct tw_profile_set {
  TW_HEAD;
  TW_R tw_status* (*start)(const tw_host* h, void* self, tw_span_list* to); /* work that runs from now on is reported to `to` */
  TW_R void (*stop)(const tw_host* h, void* self);                          /* returns when no more spans will be added; may block */
} tw_profile_set;

/* Memory of the device that is shared with other libraries through DLPack. */
typedef struct tw_dlpack_set {
  TW_HEAD;
  uint32_t type;                                    /* DLDeviceType of the kind: 2 CUDA, 4 OpenCL; 12 for one without a number */
  uint32_t handles;                                 /* 1: memory is an object, and data in it has an offset; 0: it is an address */
  TW_R int32_t (*id)(const tw_host* h, void* self); /* DLDevice.device_id */
  /* Announces that the device will read [memory + offset, + bytes), which another library made, as
   * its own memory. Work enqueued from now on waits for the work in `queue`, a native one as of
   * tw_event_set; queue: borrowed; NULL: no wait. memory: lives until the last work that reads it
   * has ended. Errors: INVALID_ARGUMENT saying why this device cannot use it: of another context,
   * too short. May block. */
  TW_R tw_status* (*take)(const tw_host* h, void* self, void* memory, uint64_t offset, uint64_t bytes, void* queue);
} tw_dlpack_set;

typedef struct tw_device_def {
  TW_HEAD;
  TW_TEXT(kind); /* upper case by convention: CPU, OPENCL */
  void* user;
  /* Adds each device to `to`. NOT_FOUND, with the reason, if there is none; the host does not warn
   * then. May block. */
  TW_R tw_status* (*enumerate)(const tw_host* h, void* user, tw_device_list* to);
  /* After RESOURCE_EXHAUSTED the host frees its cached memory and calls once more. May block. */
  TW_R tw_status* (*allocate)(const tw_host* h, void* self, const tw_allocation* a, void** out_memory);
  TW_R void (*release)(const tw_host* h, void* self, void* memory, uint64_t bytes); /* never before the timeline has passed the memory's
                                                                                       last use */
  TW_R tw_status* (*copy)(const tw_host* h, void* self, const tw_copy* c); /* one side is this device; without a stream it may block */
  TW_C const tw_stream_set* streams;                                       /* this set and those below are copied and sealed, too */
  TW_C const tw_pinned_set* pinned;
  TW_C const tw_peer_set* peer;
  TW_C const tw_event_set* events;
  TW_C const tw_statistics_set* statistics;
  TW_C const tw_capture_set* capture;
  TW_C const tw_profile_set* profile;
  TW_C const tw_dlpack_set* dlpack;
} tw_device_def;

/* A timeline reports when work ends and, separately, whether it failed. Values are signalled after
 * a failure too, because the signal permits reuse of memory. `when` callbacks run on the signalling
 * thread, so they may not block, and may not call into the device of that thread. */
typedef struct tw_timeline_api {
  TW_HEAD;
  TW_R void (*retain)(tw_timeline* t);
  TW_R void (*release)(tw_timeline* t);
  TW_R void (*signal)(tw_timeline* t, uint64_t value); /* a lost device signals UINT64_MAX after its last access */
  TW_R void (*fail)(tw_timeline* t, tw_status* why);   /* takes why; the first failure stays */
  /* Calls done(arg, why) once, when value is reached; inside `when` if it is reached already. why:
   * NULL or the failure, borrowed. If the timeline ends first, why is its failure or UNAVAILABLE. */
  TW_R void (*when)(tw_timeline* t, uint64_t value, void (*done)(void* arg, const tw_status* why), void* arg);
} tw_timeline_api;

#ifdef __cplusplus
}
#endif
#endif
