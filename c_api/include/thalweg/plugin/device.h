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
} tw_device_info;

typedef struct tw_device_list {
  TW_HEAD;
  TW_R tw_status* (*add)(struct tw_device_list* l, const tw_device_info* d);
} tw_device_list;

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

/* Calls about one stream are serialised by the host. */
typedef struct tw_stream_set {
  TW_HEAD;
  TW_R tw_status* (*create)(const tw_host* h, void* self, tw_timeline* line, void** out_stream);
  TW_R void (*destroy)(const tw_host* h, void* stream); /* drains; may block */
  /* timeline->signal(line, value) once all work enqueued before this call is over, from any thread. Never waits for it. */
  TW_R tw_status* (*signal)(const tw_host* h, void* stream, uint64_t value);
  TW_O tw_status* (*wait)(const tw_host* h, void* stream, tw_timeline* other, uint64_t value); /* default: the host holds later work back */
} tw_stream_set;

typedef struct tw_device_def {
  TW_HEAD;
  TW_TEXT(kind); /* upper case by custom: CPU, OPENCL */
  void* user;
  TW_R tw_status* (*enumerate)(const tw_host* h, void* user, tw_device_list* to); /* may block */
  TW_R tw_status* (*allocate)(const tw_host* h, void* self, uint64_t bytes, uint64_t align, void** out_memory); /* may block */
  TW_R void (*release)(const tw_host* h, void* self, void* memory, uint64_t bytes); /* never before the timeline has passed its last use */
  TW_R tw_status* (*copy)(const tw_host* h, void* self, const tw_copy* c); /* one side is this device; without a stream it may block */
  TW_C const tw_stream_set* streams; /* copied and sealed too */
} tw_device_def;

/* A timeline says when work is over and, apart, how it went. Values are signalled after a failure too: memory is used again on signal. */
typedef struct tw_timeline_api {
  TW_HEAD;
  TW_R void (*retain)(tw_timeline* t);
  TW_R void (*release)(tw_timeline* t);
  TW_R void (*signal)(tw_timeline* t, uint64_t value); /* a lost device signals UINT64_MAX after its last access */
  TW_R void (*fail)(tw_timeline* t, tw_status* why);   /* takes why; the first one stays */
  /* done(arg, why) once value is reached, at once if it is already; why: NULL or the failure, borrowed. May run inside signal. */
  TW_R void (*when)(tw_timeline* t, uint64_t value, void (*done)(void* arg, const tw_status* why), void* arg);
} tw_timeline_api;

#ifdef __cplusplus
}
#endif
#endif
