/* Optional set "variant", version 1: objects of plugins behind elements of type variant. host->query(h, TW_S(TW_VARIANT_SET), 1) answers a
 * const tw_variant_api*, or NULL where there is none.
 * An element refers to one object, or is empty; many elements, of many tensors, may refer to the same. An object never changes once others
 * can see it: a kernel that wants another makes one, or takes over an input's that nobody else will look at again (own). It goes with the
 * last element that refers to it, which may be after the step and the session, and keeps its plugin loaded.
 * Values of type variant lie in host memory whatever the device. Who passes tensors on (Identity, feeds, fetches, loops) shares the
 * objects; files, messages and constants hold none, and planning makes none. Threads: any; an element has one writer. */
#ifndef THALWEG_PLUGIN_VARIANT_H
#define THALWEG_PLUGIN_VARIANT_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_VARIANT_SET "variant"

/* What the objects of one type have in common: a constant of the plugin, whose address is the type. Two plugins never share one. */
typedef struct tw_variant_type {
  TW_HEAD;
  TW_TEXT(name);                                        /* reverse-DNS, for messages */
  TW_R void (*destroy)(const tw_host* h, void* object); /* with its last element; any thread */
  /* The sum of two objects, and an object that changes no sum: for gradients (AddN, ZerosLike). f: of the kernel that asks. *out_bytes: as
   * make wants them. */
  TW_C tw_status* (*add)(const tw_frame* f, const void* x, const void* y, void** out_object, uint64_t* out_bytes);
  TW_C tw_status* (*zeros)(const tw_frame* f, const void* x, void** out_object, uint64_t* out_bytes);
} tw_variant_type;

/* Views are of inputs, of outputs, or of tensors that the caller keeps; what is written to is an output of the call or not yet shared. */
typedef struct tw_variant_api {
  TW_HEAD;
  /* Element i of `to` refers to `object` from now on, which is taken, unless the call fails. bytes: host memory that goes with the object,
   * that of tensors not counted; it counts towards the session's memory_limit.
   * Errors: INVALID_ARGUMENT (no such element); RESOURCE_EXHAUSTED. */
  TW_R tw_status* (*make)(const tw_frame* f, const tw_view* to, uint64_t i, const tw_variant_type* type, void* object, uint64_t bytes);
  /* The object behind element i, which lives as long as the element refers to it. Errors: INVALID_ARGUMENT, naming both types, where the
   * element is empty or of another type. */
  TW_R tw_status* (*get)(const tw_host* h, const tw_view* v, uint64_t i, const tw_variant_type* type, const void** out_object);
  /* The object behind element i of flat input `in` if nobody can see it any more once this call is over: the caller's from now on, to
   * change, make again or destroy; the element is empty. NULL: others may look at it, or it is no object of the type. */
  TW_R void* (*own)(const tw_frame* f, uint32_t in, uint64_t i, const tw_variant_type* type);
  /* n elements of `from`, from element a on, become those of `to` from element b on: of variants or of resources. The objects are shared.
   * Errors: INVALID_ARGUMENT (other types, no such elements). */
  TW_R tw_status* (*copy)(const tw_host* h, const tw_view* from, uint64_t a, const tw_view* to, uint64_t b, uint64_t n);
  /* Element i of `to` becomes the sum of elements i of x and y, or the zero of element i of x, as their type makes it; an empty element is
   * a zero. Errors: INVALID_ARGUMENT (two types); UNIMPLEMENTED (the type has none); those of the type. */
  TW_R tw_status* (*add)(const tw_frame* f, const tw_view* x, const tw_view* y, const tw_view* to, uint64_t i);
  TW_R tw_status* (*zeros)(const tw_frame* f, const tw_view* x, const tw_view* to, uint64_t i);
  /* As host->tensor->make, counted towards the session's memory_limit: for what objects hold. The caller owns one reference, and may
   * retain and release it. */
  TW_R tw_status* (*tensor)(const tw_frame* f, uint32_t dtype, const int64_t* dims, uint32_t rank, tw_tensor** out_tensor);
  /* For objects that hold tensors of devices (`anywhere` in a kernel's spec). Each answers a new reference. */
  /* Input `in`, as host->tensor->keep answers it, or, where its device is short of memory (session option swap_memory_above), its elements
   * in host memory. */
  TW_C tw_status* (*put_away)(const tw_frame* f, uint32_t in, tw_tensor** out_tensor);
  /* t in the memory of output o, which the spec names in `gives` and `anywhere`, though maybe on its way there: so that it is there when it
   * is given, in this step or a later one. Where it lies there, or there is no room: t itself. */
  TW_C tw_status* (*bring)(const tw_frame* f, uint32_t o, tw_tensor* t, tw_tensor** out_tensor);
  /* t in host memory, where its elements can be read. */
  TW_C tw_status* (*to_host)(const tw_frame* f, tw_tensor* t, tw_tensor** out_tensor);
} tw_variant_api;

#ifdef __cplusplus
}
#endif
#endif
