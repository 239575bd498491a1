/* Buffers: bytes of any length that a call returns, such as a serialised graph or a text. A buffer
 * is reference-counted and never changes once made.
 * Threads: any. Everything here: since 0.1. */
#ifndef THALWEG_BUFFER_H
#define THALWEG_BUFFER_H
#include "thalweg/export.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_buffer tw_buffer;

/* Makes a buffer with a copy of the caller's bytes. data: copied; NULL only if bytes is 0. The
 * caller owns *out_buffer.
 * Errors: INVALID_ARGUMENT for a NULL argument; RESOURCE_EXHAUSTED. */
TW_EXPORT tw_status* tw_buffer_create(const void* data, uint64_t bytes, tw_buffer** out_buffer);
/* Returns the bytes, followed by a zero byte that `bytes` does not count, so that text can be used
 * as a C string. Returns "" for NULL. */
TW_EXPORT const char* tw_buffer_data(const tw_buffer* buffer);
TW_EXPORT uint64_t tw_buffer_bytes(const tw_buffer* buffer);
TW_EXPORT void tw_buffer_retain(tw_buffer* buffer);  /* NULL is fine */
TW_EXPORT void tw_buffer_release(tw_buffer* buffer); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
