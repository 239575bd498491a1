/* Devices run operations; the plugins of a runtime provide them.
 * Threads: any; a list does not change once made. Everything here: since 0.1. */
#ifndef THALWEG_DEVICE_H
#define THALWEG_DEVICE_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/runtime.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_devices tw_devices; /* a snapshot of the runtime's devices */

/* Makes a list of the runtime's devices. runtime: NULL means the default one; kept alive by the
 * list. The caller owns *out_devices. */
TW_EXPORT tw_status* tw_devices_create(tw_runtime* runtime, tw_devices** out_devices);
TW_EXPORT void tw_devices_destroy(tw_devices* devices); /* NULL is fine */
TW_EXPORT uint32_t tw_devices_count(const tw_devices* devices);
/* Properties of device i. Texts live as long as the list; NULL past the end. */
TW_EXPORT const char* tw_devices_name(const tw_devices* devices, uint32_t i); /* "/job:localhost/replica:0/task:0/device:CPU:0" */
TW_EXPORT const char* tw_devices_kind(const tw_devices* devices, uint32_t i); /* "CPU" */
TW_EXPORT const char* tw_devices_uid(const tw_devices* devices, uint32_t i);  /* stays the same after a restart */
TW_EXPORT const char* tw_devices_description(const tw_devices* devices, uint32_t i);
TW_EXPORT const char* tw_devices_plugin(const tw_devices* devices, uint32_t i); /* id of the plugin that provides it */
TW_EXPORT uint64_t tw_devices_memory(const tw_devices* devices, uint32_t i);    /* bytes; 0: unknown */
/* Returns the bytes of the device that buffers of the runtime have in use now, the most so far, and
 * the limit (0: none), all at the time of the call. Devices whose capabilities name "host memory"
 * share the memory of the process. For these, the bytes are those of all tensors and plans of the
 * process that are in host memory, whatever their runtime; the limit is that of this device's plans
 * only. Memory that is cached for reuse, the characters of texts, and host memory that the program
 * lends to tensors are not counted. Any output may be NULL. Errors: OUT_OF_RANGE. */
TW_EXPORT tw_status* tw_devices_memory_use(const tw_devices* devices, uint32_t i, uint64_t* out_now, uint64_t* out_peak,
                                           uint64_t* out_limit);
/* Returns the unused memory that the runtime's pools for the device keep for later to the device.
 * Memory in use stays. Sessions do this when they are closed. NULL and numbers past the end are
 * fine. Threads: any. */
TW_EXPORT void tw_devices_give_back(const tw_devices* devices, uint32_t i);
/* Lists, for people, what device i can do besides running kernels, separated by ", ". The words are
 * "host memory", "on request", "streams", "wait", "pinned", "peer", "events", "statistics",
 * "capture", "profile" and "dlpack" (see plugin/device.h). Lives as long as the list; NULL past the
 * end. */
TW_EXPORT const char* tw_devices_capabilities(const tw_devices* devices, uint32_t i);
/* Returns the statistics of device i at the time of the call, as JSON: an object of whole numbers.
 * Names in use are memory_used, memory_peak, memory_largest_free (bytes, of all that use the
 * device), temperature (degrees C) and busy (percent); a device may add others. The caller owns
 * *out_json. Errors: OUT_OF_RANGE; UNIMPLEMENTED for a device without statistics. Threads: any. */
TW_EXPORT tw_status* tw_devices_statistics_json(const tw_devices* devices, uint32_t i, tw_buffer** out_json);

#ifdef __cplusplus
}
#endif
#endif
