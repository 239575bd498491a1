/* Devices. The smallest device is four functions: enumerate, allocate, release, copy. Streams make it asynchronous.
 * Kinds are data: the host knows no device by name. */
#ifndef THALWEG_PLUGIN_DEVICE_H
#define THALWEG_PLUGIN_DEVICE_H
#include "thalweg/plugin/abi.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { TW_DEVICE_HOST_MEMORY = 1u }; /* tw_device_info.flags: allocate answers host addresses that any thread may read and write */

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
  TW_R tw_status* (*add)(struct tw_device_list* l, const tw_device_info* d);
} tw_device_list;

/* Both of from_host and to_host 0: from one memory of this device to another, which may not overlap. Both 1: a device whose own memory is
 * the host's; such a device also gets its own memory as host addresses. */
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

typedef struct tw_device_def {
  TW_HEAD;
  TW_TEXT(kind); /* upper case by custom: CPU, OPENCL */
  void* user;
  TW_R tw_status* (*enumerate)(const tw_host* h, void* user, tw_device_list* to);                               /* may block */
  TW_R tw_status* (*allocate)(const tw_host* h, void* self, uint64_t bytes, uint64_t align, void** out_memory); /* may block */
  TW_R void (*release)(const tw_host* h, void* self, void* memory, uint64_t bytes); /* never before the timeline has passed its last use */
  TW_R tw_status* (*copy)(const tw_host* h, void* self, const tw_copy* c); /* one side is this device; without a stream it may block */
  TW_C const tw_stream_set* streams;                                       /* copied and sealed too */
} tw_device_def;

/* A timeline says when work is over and, apart, how it went. Values are signalled after a failure too: memory is used again on signal.
 * `when` callbacks run on whatever thread signals, so they may not block, and may not call into the device whose thread that is. */
typedef struct tw_timeline_api {
  TW_HEAD;
  TW_R void (*retain)(tw_timeline* t);
  TW_R void (*release)(tw_timeline* t);
  TW_R void (*signal)(tw_timeline* t, uint64_t value); /* a lost device signals UINT64_MAX after its last access */
  TW_R void (*fail)(tw_timeline* t, tw_status* why);   /* takes why; the first one stays, for good */
  /* done(arg, why) once value is reached, at once (inside `when`) if it is already; why: NULL or the failure, borrowed. */
  TW_R void (*when)(tw_timeline* t, uint64_t value, void (*done)(void* arg, const tw_status* why), void* arg);
} tw_timeline_api;

#ifdef __cplusplus
}
#endif
#endif
