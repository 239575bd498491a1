/* Tensors in plugins: the view that a kernel reads, and the host's calls to make, share and keep
 * tensors. Elements are dense and row-major unless a view has strides. Half and bfloat16 take 2
 * bytes, bool and the 2- and 4-bit integers one byte an element, complex numbers are (re, im). A
 * string element is a tw_string whose bytes the tensor owns. A resource or variant element is a
 * pointer-sized reference that the host owns: pass it on whole, never look inside. */
#ifndef THALWEG_PLUGIN_TENSOR_H
#define THALWEG_PLUGIN_TENSOR_H
#include "thalweg/plugin/abi.h"
#ifdef __cplusplus
extern "C" {
#endif

struct tw_frame;

typedef struct tw_view {
  TW_HEAD;
  void* data;             /* host or device address, or the device's memory handle; may be NULL if bytes is 0 */
  uint64_t offset;        /* bytes into `data`; 0 in host memory */
  const int64_t* dims;    /* rank of them; NULL at rank 0 or -1 */
  const int64_t* strides; /* in elements; NULL: dense, row-major. Set only for a kernel with clause `strided` */
  int32_t rank;           /* -1: an output that the kernel has to allocate */
  uint32_t dtype;
  uint64_t count, bytes; /* elements, bytes */
  tw_tensor* tensor;     /* for keep, set_string, give; valid as long as the view */
} tw_view;

/* A tensor to be made. */
typedef struct tw_tensor_config {
  TW_HEAD;
  const int64_t* dims; /* rank of them; NULL is fine at rank 0 */
  uint32_t rank;
  uint32_t dtype;
  /* Memory of the caller that becomes the tensor's, without a copy: dense elements, in host memory,
   * in the machine's byte order; nobody writes to it. NULL: the host allocates. Not for strings,
   * resources and variants. */
  void* data;
  uint64_t bytes; /* of data: as many as dtype and dims need; 0 without data */
  /* Called once when nobody needs `data` any more, on any thread, but not if make fails; the plugin
   * stays loaded until then. NULL: the memory lives longer than the runtime. */
  TW_O void (*release)(void* user);
  void* user;
} tw_tensor_config;

typedef struct tw_tensor_api {
  TW_HEAD;
  /* Makes a tensor in host memory: of memory of the caller, or of new memory, zero-filled for
   * strings, resources and variants, uninitialised otherwise.
   * Errors: INVALID_ARGUMENT for a negative or overflowing size, an unknown dtype, or memory that is
   * not aligned to its elements or has another size; RESOURCE_EXHAUSTED. */
  TW_R tw_status* (*make)(const tw_host* h, const tw_tensor_config* c, tw_tensor** out_tensor);
  /* Makes a tensor with the same elements under other dims; shares the memory. The element counts
   * must agree. */
  TW_R tw_status* (*reshape)(const tw_host* h, tw_tensor* t, const int64_t* dims, uint32_t rank, tw_tensor** out_tensor);
  /* Returns a view that lives as long as t. */
  TW_R const tw_view* (*view)(tw_tensor* t);
  TW_R void (*retain)(tw_tensor* t);  /* only tensors from make, reshape, keep: see keep */
  TW_R void (*release)(tw_tensor* t); /* NULL is fine */
  /* Copies `len` bytes into element i of a string tensor. The tensor must be an output of the call or not yet shared. */
  TW_R tw_status* (*set_string)(tw_tensor* t, uint64_t i, const char* data, uint64_t len);
  /* Allocates output o with these dims on the kernel's device (or in host memory, if declared);
   * fills f->out[o]. Only for outputs of rank -1. */
  TW_R tw_status* (*allocate)(const struct tw_frame* f, uint32_t o, const int64_t* dims, uint32_t rank);
  /* Makes tensor t output o; shares the memory, takes no reference of the caller's. dtype must
   * agree with the output's. */
  TW_R tw_status* (*give)(const struct tw_frame* f, uint32_t o, tw_tensor* t);
  /* Makes input i output o; shares the memory. dims: other dims with the same element count; NULL
   * keeps the input's dims. */
  TW_R tw_status* (*forward)(const struct tw_frame* f, uint32_t i, uint32_t o, const int64_t* dims, uint32_t rank);
  /* Returns a tensor with the contents of input i that may outlive the call; the caller owns one
   * reference. Shares the memory if the plan permits (always with clause `keep`), else copies.
   * Tensors in views belong to the step: do not retain them. */
  TW_R tw_status* (*keep)(const struct tw_frame* f, uint32_t i, tw_tensor** out_tensor);
  /* Makes a part of input i output o: the elements from number `first` on, counted in output o's
   * type, with these dims. Shares memory if the plan permits and the part starts at a multiple of
   * 64 bytes, else copies. Numbers may be reinterpreted as another type if the total bytes agree.
   * Errors: INVALID_ARGUMENT if the input has too few elements, or the types differ and one has no
   * fixed size. */
  TW_R tw_status* (*forward_part)(const struct tw_frame* f, uint32_t i, uint64_t first, uint32_t o, const int64_t* dims, uint32_t rank);
  /* Returns the element type (TW_FLOAT and so on) that a word of schemas and specs names; 0: this
   * host does not know it, and would leave out definitions that use it (role.h). */
  TW_R uint32_t (*type_of)(const tw_host* h, const char* word, uint64_t len);
} tw_tensor_api;

#ifdef __cplusplus
}
#endif
#endif
