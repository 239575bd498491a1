/* Kernels: how an op is computed on one device kind for some element types.
 *
 * Spec text, one kernel:
 *     Gather(float, int32 -> float) @CPU; host indices; priority 10
 *   element types of the op's input arguments in schema order, optionally `->` and those of the outputs; `_` is any; the parentheses may
 *   be left out (any types). An argument that takes a list of mixed types is always `_`.
 *   `* @KIND` is a kernel for every op that has no other on that kind; it has no element types and names no arguments.
 *   @KIND          the device kind it runs on
 *   cheap          takes well under a microsecond: run it where its input was made
 *   may_block      waits for files, network or people: run it on a thread of its own
 *   async          execute only starts the work; host->run->complete ends it
 *   async_calls    of a kernel that calls functions: as `async` where one of these has kernels that are (the frame has a token then, and
 *                  calls are begun by `run` of plugin/function.h); else execute does it all
 *   capture_safe   only enqueues on the stream, nothing else
 *   deterministic  same inputs, same bits (assumed unless `nondeterministic` is said)
 *   strided        reads inputs through view->strides
 *   host a b       these arguments (of inputs and outputs) live in host memory although the kernel runs on a device; they are read and
 *                  written before execute returns, also where the rest is only enqueued
 *   inplace y=x    output y may use the memory of input x, when nobody reads x later and the sizes agree
 *   keep x         the kernel keeps input x beyond the call (stores it): the plan gives it memory that can be shared
 *   gives y        the kernel itself brings the memory of output y, by `give`: there is none before, only the dims of the shape rule, if it
 *                  says any. It names all outputs of the op but those of `view`, or none
 *   anywhere x y   input x, of `keep`, and output y, of `gives`, are taken and given in whatever memory they lie, so nothing is copied
 *                  for the kernel. It reads the dims of such an input, but not its elements; what it gives comes to where it is wanted
 *   view y=x       the kernel always forwards input x to output y (reshape, identity): the output has no memory before, only the dims that
 *                  the shape rule says, if it does
 *   read a b, update a b   before execute the host opens these resource inputs, taking all locks of the kernel at once and holding them
 *                  until it is complete. The slot then shows the variable's tensor (unshared and writable for update) or, for a plugin's
 *                  own resource, its object in `data`, never NULL, with dtype TW_RESOURCE. Where the op's schema says a `resource` type,
 *                  only such are opened; a plugin with several types of its own must say it. There is no other way to lock.
 *   replace a b    as update, of variables whose elements the kernel does not write: it assigns another tensor, or leaves the variable as
 *                  it is. The slot's tensor may be one that others hold, so nothing is copied for the kernel
 *   priority n     of two kernels that fit, the higher wins (default 0)
 *   ?prefers TEXT ...   it is faster where the attribute that says the order of the axes (`?axes` in op.h) has one of these values, such as
 *                  NHWC: a plan may run it in that order, in place of the one that the graph says, where that is worth the transposing.
 *                  A hint: hosts that do not know it skip it
 *
 * Life: create once per node and session; prepare whenever scratch is laid out for a set of known shapes, several times on one state and
 * possibly at once; execute per step; destroy with the session. */
#ifndef THALWEG_PLUGIN_KERNEL_H
#define THALWEG_PLUGIN_KERNEL_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

/* One call of a kernel. Valid until execute returns; for asynchronous kernels until the token completes. */
typedef struct tw_frame {
  TW_HEAD;
  const tw_host* host;
  void* state;               /* what create made; without create: the definition's user */
  const tw_view* const* in;  /* flat */
  const tw_view* const* out; /* flat; allocated, unless its rank is -1 */
  const uint32_t* in_at;     /* argument a of the schema is in[in_at[a]] up to in[in_at[a + 1] - 1] */
  const uint32_t* out_at;
  uint32_t n_in, n_out;
  void* stream;            /* the device's; NULL: none, work must be over when execute returns */
  void* scratch;           /* as many bytes as prepare asked for, 64-byte aligned, the kernel's for this call */
  uint64_t scratch_offset; /* bytes into a memory handle; 0 with addresses */
  uint64_t step;           /* which step of the session */
  tw_token token;          /* async kernels complete it exactly once, unless execute returned an error */
  uint64_t memo;           /* of a call that waited at a resource and is run again: what it gave to `wait`; else 0 */
} tw_frame;

/* One node, for create and prepare: attributes resolved. Copy what execute needs. */
typedef struct tw_node {
  TW_HEAD;
  const tw_host* host;
  void* user; /* the definition's */
  TW_TEXT(name);
  TW_TEXT(op);
  const tw_attr* attrs;   /* in schema order */
  const uint32_t* types;  /* of the inputs, then of the outputs, flat */
  const tw_shape* shapes; /* same order, as far as known; all known in prepare */
  const uint32_t* in_at;
  uint32_t n_attrs, n_in, n_out, reserved;
  void* device; /* the device's self */
} tw_node;

typedef struct tw_kernel_def {
  TW_HEAD;
  TW_TEXT(spec);
  void* user;
  TW_O tw_status* (*create)(const tw_node* n, void** out_state);                    /* may block */
  TW_R tw_status* (*execute)(const tw_frame* f);                                    /* several at once on one state */
  TW_O void (*destroy)(const tw_host* h, void* state);                              /* frees what create made */
  TW_O tw_status* (*prepare)(const tw_node* n, void* state, uint64_t* out_scratch); /* bytes of scratch for these shapes */
} tw_kernel_def;

typedef struct tw_run_api {
  TW_HEAD;
  /* Ends an asynchronous call. s: taken; NULL: success. Any thread; never runs other kernels before it returns. */
  TW_R void (*complete)(const tw_host* h, tw_token t, tw_status* s);
  TW_R tw_status* (*cancelled)(const tw_frame* f); /* NULL: go on; else return it */
  /* part(arg, begin, end) over [0, n) in pieces of at least `grain`, on the calling thread and whichever of the pool's are idle; returns
   * when all are done. Where the pieces are cut may depend on load: results must not. Pieces may not block. */
  TW_R void (*parallel)(const tw_frame* f, uint64_t n, uint64_t grain, void (*part)(void* arg, uint64_t begin, uint64_t end), void* arg);
  TW_R uint32_t (*threads)(const tw_frame* f); /* how many threads parallel may use, the caller included; >= 1 */
  TW_R void (*log)(const tw_host* h, uint32_t level, const char* text, uint64_t len); /* 0 debug, 1 info, 2 warning, 3 error */
  TW_R int64_t (*now)(const tw_host* h);                                              /* monotonic, nanoseconds; the clock of deadlines */
} tw_run_api;

/* The attribute of that name, or NULL. */
static inline const tw_attr* tw_find_attr(const tw_attr* attrs, uint32_t n, const char* name, uint64_t len) {
  for (uint32_t i = 0; i < n; ++i) {
    uint64_t k = 0;
    if (attrs[i].name_len != len) continue;
    while (k < len && attrs[i].name[k] == name[k]) ++k;
    if (k == len) return &attrs[i];
  }
  return NULL;
}

#ifdef __cplusplus
}
#endif
#endif
