/* Tensors: n-dimensional arrays of one element type. Elements are dense and row-major, in host
 * memory or in a device's. Tensors are reference-counted: a tensor in an `out_` parameter is a
 * reference that the caller owns, and the last release frees the memory. Do not write to a tensor
 * that others can see (fed, fetched, retained).
 * Element types are in types.h. Half and bfloat16 take 2 bytes; bool and the 2- and 4-bit integers
 * take one byte an element; complex numbers are (re, im). Dims are numbers of elements, each >= 0;
 * rank 0 is a scalar; at most 254 axes.
 * Threads: counts are atomic; contents have one writer or many readers.
 * Everything here: since 0.1. */
#ifndef THALWEG_TENSOR_H
#define THALWEG_TENSOR_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/runtime.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- Making ---- */

/* Creates a tensor of zeros (empty strings). dims: `rank` sizes, NULL only at rank 0.
 * Errors: INVALID_ARGUMENT for an unknown dtype, a resource or variant, a negative dim or a size
 * beyond 2^63 - 1 bytes; RESOURCE_EXHAUSTED. */
TW_EXPORT tw_status* tw_tensor_create(uint32_t dtype, const int64_t* dims, uint32_t rank, tw_tensor** out_tensor);
/* Creates a tensor with a copy of `data`, `bytes` bytes of dense elements; data: NULL only if bytes
 * is 0.
 * Errors: those of tw_tensor_create; INVALID_ARGUMENT if bytes is not what dtype and dims need, or
 * for string tensors. */
TW_EXPORT tw_status* tw_tensor_create_copy(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes,
                                           tw_tensor** out_tensor);
/* Creates a tensor that uses the caller's memory without copying. release(user) runs after the last
 * reference is gone, on any thread, also when this call fails; release: NULL means no callback.
 * data: aligned to the element size, 64 bytes is faster; writable, because the runtime may reuse
 * the memory after the program has released the tensor. The program must not touch the memory until
 * release runs.
 * Errors: as tw_tensor_create_copy, and INVALID_ARGUMENT for misaligned data. */
TW_EXPORT tw_status* tw_tensor_create_from(uint32_t dtype, const int64_t* dims, uint32_t rank, void* data, uint64_t bytes,
                                           void (*release)(void* user), void* user, tw_tensor** out_tensor);
/* The same for read-only memory: the runtime never writes to it. The program may read it; it may
 * write to it while nobody else holds the tensor. Errors: those of tw_tensor_create_from. */
TW_EXPORT tw_status* tw_tensor_create_from_const(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes,
                                                 void (*release)(void* user), void* user, tw_tensor** out_tensor);
/* Create scalar tensors. Errors: RESOURCE_EXHAUSTED. */
TW_EXPORT tw_status* tw_tensor_create_float(float value, tw_tensor** out_tensor);
TW_EXPORT tw_status* tw_tensor_create_double(double value, tw_tensor** out_tensor);
TW_EXPORT tw_status* tw_tensor_create_int32(int32_t value, tw_tensor** out_tensor);
TW_EXPORT tw_status* tw_tensor_create_int64(int64_t value, tw_tensor** out_tensor);
TW_EXPORT tw_status* tw_tensor_create_string(const char* data, uint64_t bytes, tw_tensor** out_tensor); /* bytes are copied */
/* Creates a tensor with the same elements under other dims; shares the memory. The caller owns
 * *out_tensor. Errors: INVALID_ARGUMENT if the numbers of elements differ. */
TW_EXPORT tw_status* tw_tensor_reshape(tw_tensor* tensor, const int64_t* dims, uint32_t rank, tw_tensor** out_tensor);
TW_EXPORT void tw_tensor_retain(tw_tensor* tensor);  /* NULL is fine */
TW_EXPORT void tw_tensor_release(tw_tensor* tensor); /* NULL is fine */

/* ---- Looking; all return 0 or NULL for NULL ---- */

TW_EXPORT uint32_t tw_tensor_dtype(const tw_tensor* tensor);             /* TW_FLOAT, ...; see types.h */
TW_EXPORT uint32_t tw_tensor_rank(const tw_tensor* tensor);              /* number of axes */
TW_EXPORT int64_t tw_tensor_dim(const tw_tensor* tensor, uint32_t axis); /* -1 for an axis that does not exist */
TW_EXPORT const int64_t* tw_tensor_dims(const tw_tensor* tensor);        /* `rank` sizes; live as long as the tensor */
TW_EXPORT uint64_t tw_tensor_count(const tw_tensor* tensor);             /* elements */
TW_EXPORT uint64_t tw_tensor_bytes(const tw_tensor* tensor);             /* of memory; 16 an element for strings */
TW_EXPORT const void* tw_tensor_data(const tw_tensor* tensor);           /* the elements; strings are tw_string */
/* Returns 1 if anybody besides the caller holds a reference to the tensor or its memory, for
 * instance a variable that took it over. */
TW_EXPORT uint32_t tw_tensor_shared(const tw_tensor* tensor);
/* Returns the elements for writing. NULL for strings (use tw_tensor_set_string), for read-only
 * memory, and if anybody else shares the tensor or its memory. */
TW_EXPORT void* tw_tensor_mutable_data(tw_tensor* tensor);

/* ---- Memory of devices ---- */

/* Returns "/job:localhost/replica:0/task:0/device:FAKE:0" for a tensor in the memory of a device,
 * such as a fetch with tw_signature.fetch_devices; NULL for host memory. The text lives as long as
 * the runtime. Read the elements of such a tensor through tw_tensor_to_host; its data is NULL. It
 * may be fed, retained and released like any other, and outlive its session, but is useless after
 * its runtime has ended. */
TW_EXPORT const char* tw_tensor_device(const tw_tensor* tensor);
/* Returns the same elements in host memory: a copy, or the tensor itself if it is there already.
 * Blocks. The caller owns *out_tensor. Errors: those of the device; FAILED_PRECONDITION if the
 * device no longer exists. Threads: any. */
TW_EXPORT tw_status* tw_tensor_to_host(tw_tensor* tensor, tw_tensor** out_tensor);
/* Returns the same elements in the memory of a device, such as "FAKE:0": a copy, or the tensor
 * itself if it is there already. runtime: the owner of the device; NULL means the default one.
 * Blocks. The caller owns *out_tensor. Errors: NOT_FOUND listing the existing devices;
 * INVALID_ARGUMENT for strings, resources and variants, which stay in host memory;
 * RESOURCE_EXHAUSTED. Threads: any. */
TW_EXPORT tw_status* tw_tensor_to_device(tw_tensor* tensor, tw_runtime* runtime, const char* device, tw_tensor** out_tensor);

/* ---- Strings ---- */

/* Returns the bytes of string i, owned by the tensor. Errors: INVALID_ARGUMENT for another dtype;
 * OUT_OF_RANGE. */
TW_EXPORT tw_status* tw_tensor_get_string(const tw_tensor* tensor, uint64_t i, const char** out_data, uint64_t* out_bytes);
/* Copies `bytes` bytes into string i. Errors: as above; FAILED_PRECONDITION if the tensor is shared. */
TW_EXPORT tw_status* tw_tensor_set_string(tw_tensor* tensor, uint64_t i, const char* data, uint64_t bytes);

/* ---- For people ---- */

/* Returns "[[1, 2], [3, 4]]": at most `max_elements` elements, then "..."; 0 means all.
 * Floating-point numbers read back as the same value. Strings are quoted, with \n and \xNN for
 * control characters and invalid UTF-8.
 * The caller owns *out_text. */
TW_EXPORT tw_status* tw_tensor_text(const tw_tensor* tensor, uint64_t max_elements, tw_buffer** out_text);
/* Returns "float" for TW_FLOAT, "float_ref" for its reference form; NULL for a number that is not a
 * type. Static. */
TW_EXPORT const char* tw_dtype_name(uint32_t dtype);
/* Returns the type of that name; TW_INVALID_TYPE if there is none. */
TW_EXPORT uint32_t tw_dtype_find(const char* name);
/* Returns the bytes of one element; 0 for a number that is not a type. */
TW_EXPORT uint32_t tw_dtype_bytes(uint32_t dtype);

#ifdef __cplusplus
}
#endif
#endif
