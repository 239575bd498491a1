/* Optional set "variant", version 1: objects of plugins behind elements of type variant.
 * host->query(h, TW_S(TW_VARIANT_SET), 1) returns a const tw_variant_api*, or NULL if the host has
 * none.
 * An element refers to one object, or is empty; many elements, of many tensors, may refer to one
 * object. An object never changes once others can see it. A kernel that needs a changed object
 * makes a new one, or takes over an input's object that nobody else will use again (own). The
 * object is destroyed with the last element that refers to it, possibly after the step and the
 * session, and keeps its plugin loaded.
 * Values of type variant are in host memory on every device. Operations that pass tensors on
 * (Identity, feeds, fetches, loops) share the objects; files, messages and constants hold none, and
 * planning makes none. Threads: any; an element has one writer. */
#ifndef THALWEG_PLUGIN_VARIANT_H
#define THALWEG_PLUGIN_VARIANT_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_VARIANT_SET "variant"

/* Common part of the objects of one type: a constant of the plugin, whose address is the type. Two
 * plugins never share a type. */
typedef struct tw_variant_type {
  TW_HEAD;
  TW_TEXT(name);                                        /* reverse-DNS, for messages */
  TW_R void (*destroy)(const tw_host* h, void* object); /* after its last element; any thread */
  /* Return the sum of two objects, and an object that changes no sum; for gradients (AddN,
   * ZerosLike). f: of the calling kernel. *out_bytes: as make needs them. */
  TW_C tw_status* (*add)(const tw_frame* f, const void* x, const void* y, void** out_object, uint64_t* out_bytes);
  TW_C tw_status* (*zeros)(const tw_frame* f, const void* x, void** out_object, uint64_t* out_bytes);
} tw_variant_type;

/* Views are of inputs, of outputs, or of tensors that the caller keeps. A view that is written to
 * is an output of the call or not yet shared. */
typedef struct tw_variant_api {
  TW_HEAD;
  /* Makes element i of `to` refer to `object`, which is taken, unless the call fails. bytes: host
   * memory of the object, without its tensors; it counts towards the session's memory_limit.
   * Errors: INVALID_ARGUMENT (no such element); RESOURCE_EXHAUSTED. */
  TW_R tw_status* (*make)(const tw_frame* f, const tw_view* to, uint64_t i, const tw_variant_type* type, void* object, uint64_t bytes);
  /* Returns the object of element i, which lives as long as the element refers to it. Errors:
   * INVALID_ARGUMENT, naming both types, if the element is empty or of another type. */
  TW_R tw_status* (*get)(const tw_host* h, const tw_view* v, uint64_t i, const tw_variant_type* type, const void** out_object);
  /* Takes the object of element i of flat input `in`, if nobody else can see it after this call.
   * The caller owns it then and may change, make again or destroy it; the element becomes empty.
   * Returns NULL if others may see it, or it is not an object of the type. */
  TW_R void* (*own)(const tw_frame* f, uint32_t in, uint64_t i, const tw_variant_type* type);
  /* Copies n elements of `from`, starting at a, to those of `to`, starting at b: variants or
   * resources. The objects are shared. Errors: INVALID_ARGUMENT (other types, no such elements). */
  TW_R tw_status* (*copy)(const tw_host* h, const tw_view* from, uint64_t a, const tw_view* to, uint64_t b, uint64_t n);
  /* Set element i of `to` to the sum of elements i of x and y, or to the zero of element i of x,
   * with the functions of their type; an empty element is a zero. Errors: INVALID_ARGUMENT (two
   * types); UNIMPLEMENTED (the type has none); those of the type. */
  TW_R tw_status* (*add)(const tw_frame* f, const tw_view* x, const tw_view* y, const tw_view* to, uint64_t i);
  TW_R tw_status* (*zeros)(const tw_frame* f, const tw_view* x, const tw_view* to, uint64_t i);
  /* As host->tensor->make, but counted towards the session's memory_limit: for tensors in objects.
   * The caller owns one reference, and may retain and release it. */
  TW_R tw_status* (*tensor)(const tw_frame* f, uint32_t dtype, const int64_t* dims, uint32_t rank, tw_tensor** out_tensor);
  /* For objects that hold tensors of devices (`anywhere` in a kernel's spec). Each returns a new
   * reference. */
  /* Returns input `in` as host->tensor->keep does. If its device is short of memory (session option
   * swap_memory_above), returns its elements in host memory. */
  TW_C tw_status* (*put_away)(const tw_frame* f, uint32_t in, tw_tensor** out_tensor);
  /* Returns t in the memory of output o, which the spec names in `gives` and `anywhere`. The copy
   * may still be in progress; it is complete when the tensor is given, in this step or a later one.
   * Returns t itself if it is there already, or there is no room. */
  TW_C tw_status* (*bring)(const tw_frame* f, uint32_t o, tw_tensor* t, tw_tensor** out_tensor);
  /* Returns t in host memory, where its elements can be read. */
  TW_C tw_status* (*to_host)(const tw_frame* f, tw_tensor* t, tw_tensor** out_tensor);
} tw_variant_api;

#ifdef __cplusplus
}
#endif
#endif
