/* Devices: where operations run, as the plugins of a runtime found them.
 * Threads: a list does not change once made. Everything here: since 0.1. */
#ifndef THALWEG_DEVICE_H
#define THALWEG_DEVICE_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/runtime.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_devices tw_devices; /* a list of devices as it was when made */

/* runtime: NULL is the default one; it is kept alive. The caller owns *out_devices. */
TW_EXPORT tw_status* tw_devices_create(tw_runtime* runtime, tw_devices** out_devices);
TW_EXPORT void tw_devices_destroy(tw_devices* devices); /* NULL is fine */
TW_EXPORT uint32_t tw_devices_count(const tw_devices* devices);
/* About device i; the texts live as long as the list; NULL past the end. */
TW_EXPORT const char* tw_devices_name(const tw_devices* devices, uint32_t i); /* "/job:localhost/replica:0/task:0/device:CPU:0" */
TW_EXPORT const char* tw_devices_kind(const tw_devices* devices, uint32_t i); /* "CPU" */
TW_EXPORT const char* tw_devices_uid(const tw_devices* devices, uint32_t i);  /* the same after a restart */
TW_EXPORT const char* tw_devices_description(const tw_devices* devices, uint32_t i);
TW_EXPORT const char* tw_devices_plugin(const tw_devices* devices, uint32_t i); /* id of who provides it */
TW_EXPORT uint64_t tw_devices_memory(const tw_devices* devices, uint32_t i);    /* bytes; 0: unknown */
/* Bytes that the runtime's pool for the device has handed out now, at most so far, and may hold at all (0: no limit). Read when called.
 * Any output may be NULL. Errors: OUT_OF_RANGE. */
TW_EXPORT tw_status* tw_devices_memory_use(const tw_devices* devices, uint32_t i, uint64_t* out_now, uint64_t* out_peak,
                                           uint64_t* out_limit);
/* Gives back what the runtime's pools for the device keep for later; what is in use stays. Sessions do so when they are closed. NULL and
 * numbers past the end are fine. Threads: any. */
TW_EXPORT void tw_devices_give_back(const tw_devices* devices, uint32_t i);
/* What device i can do beside running kernels, for people: of "host memory", "on request", "streams", "wait", "pinned", "peer", "events",
 * "statistics", "capture", "profile" and "dlpack" (see plugin/device.h) what it has, separated by ", ". Lives as long as the list; NULL
 * past the end. */
TW_EXPORT const char* tw_devices_capabilities(const tw_devices* devices, uint32_t i);
/* What device i itself tells, read when called, as JSON: an object of whole numbers. Names in use: memory_used, memory_peak,
 * memory_largest_free (bytes, of all that use the device), temperature (degrees C), busy (percent); devices may have others. The caller
 * owns *out_json. Errors: OUT_OF_RANGE; UNIMPLEMENTED for a device that tells nothing. Threads: any. */
TW_EXPORT tw_status* tw_devices_statistics_json(const tw_devices* devices, uint32_t i, tw_buffer** out_json);

#ifdef __cplusplus
}
#endif
#endif
