/* Kernels: how an op is computed on one device kind for some element types.
 *
 * Spec text, one kernel:
 *     Gather(float, int32 -> float) @CPU; host indices; priority 10
 *   element types of the op's input arguments in schema order, optionally `->` and those of the outputs; `_` is any; the parentheses may
 *   be left out (any types). An argument that takes a list of mixed types is always `_`.
 *   `* @KIND` is a kernel for every op that has no other on that kind; it has no element types and names no arguments.
 *   @KIND          the device kind it runs on
 *   cheap          takes well under a microsecond: the host runs it on the thread that made its input
 *   may_block      waits for files, network or people: the host runs it on a thread of its own
 *   async          execute only starts the work; host->run->complete ends it
 *   async_calls    for a kernel that calls functions: it is `async` if one of these functions has such kernels (the frame then has a token,
 *                  and `run` of plugin/function.h starts calls); else execute does all the work
 *   capture_safe   only enqueues on the stream, nothing else
 *   deterministic  same inputs, same bits (the default unless `nondeterministic` is given)
 *   strided        reads inputs through view->strides
 *   host a b       these arguments (of inputs and outputs) are in host memory although the kernel runs on a device; they are read and
 *                  written before execute returns, even if other work is only enqueued
 *   inplace y=x    output y may use the memory of input x, when nobody reads x later and the sizes agree
 *   keep x         the kernel keeps input x beyond the call (stores it): the plan gives it memory that can be shared
 *   gives y        the kernel provides the memory of output y with `give`; before that the output has only the dims of the shape rule, if
 *                  any. The list names all outputs of the op except those of `view`, or none
 *   anywhere x y   input x (of `keep`) and output y (of `gives`) may be in any memory, so nothing is copied for the kernel. The kernel
 *                  reads the dims of such an input, but not its elements; the host moves such an output to its consumers
 *   view y=x       the kernel always forwards input x to output y (reshape, identity): before that the output has no memory, only the
 *                  dims of the shape rule, if any
 *   read a b, update a b   before execute the host opens these resource inputs, takes all locks of the kernel at once and holds them
 *                  until it is complete. The slot then shows the variable's tensor (unshared and writable for update) or, for a plugin's
 *                  own resource, its object in `data`, never NULL, with dtype TW_RESOURCE. If the op's schema names a `resource` type,
 *                  only resources of that type are opened; a plugin with several types of its own must name it. There is no other
 *                  way to lock.
 *   replace a b    as update, for variables whose elements the kernel does not write: it assigns another tensor, or leaves the variable
 *                  unchanged. The slot's tensor may be shared, so nothing is copied for the kernel
 *   priority n     of two kernels that fit, the higher wins (default 0)
 *   ?prefers TEXT ...   the kernel is faster if the attribute for the order of the axes (`?axes` in op.h) has one of these values, such as
 *                  NHWC. A plan may run it in that order, instead of the graph's order, if the gain exceeds the cost of transposing.
 *                  A hint: hosts that do not know it skip it
 *
 * Life: the host calls fits while it places nodes, any number of times; create once per node and
 * session; prepare when it lays out scratch for a set of known shapes, several times on one state
 * and possibly at once; execute per step; destroy with the session. */
#ifndef THALWEG_PLUGIN_KERNEL_H
#define THALWEG_PLUGIN_KERNEL_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/device.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

/* One call of a kernel. Valid until execute returns; for asynchronous kernels until the token completes. */
typedef struct tw_frame {
  TW_HEAD;
  const tw_host* host;
  void* state;               /* result of create; without create: the definition's user */
  const tw_view* const* in;  /* flat */
  const tw_view* const* out; /* flat; allocated, unless its rank is -1 */
  const uint32_t* in_at;     /* argument a of the schema is in[in_at[a]] up to in[in_at[a + 1] - 1] */
  const uint32_t* out_at;
  uint32_t n_in, n_out;
  void* stream;            /* the device's; NULL: none, all work must be complete when execute returns */
  void* scratch;           /* the bytes that prepare asked for, 64-byte aligned, for this call only */
  uint64_t scratch_offset; /* bytes into a memory handle; 0 with addresses */
  uint64_t step;           /* number of the step in the session */
  tw_token token;          /* async kernels complete it exactly once, unless execute returned an error */
  uint64_t memo;           /* of a call that waited at a resource and runs again: the memo passed to `wait`; else 0 */
  void* device;            /* the device's self */
} tw_frame;

/* One node, for fits, create and prepare: attributes resolved. Copy what execute needs. */
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
  /* flat, n_in entries: an input's value if it is the same in every step and known, else NULL. Host
   * memory, until the call returns. NULL: no input's value is known. Only for fits. */
  const tw_view* const* value;
} tw_node;

typedef struct tw_kernel_def {
  TW_HEAD;
  TW_TEXT(spec);
  void* user;
  TW_O tw_status* (*create)(const tw_node* n, void** out_state);                    /* may block */
  TW_R tw_status* (*execute)(const tw_frame* f);                                    /* several at once on one state */
  TW_O void (*destroy)(const tw_host* h, void* state);                              /* frees the result of create */
  TW_O tw_status* (*prepare)(const tw_node* n, void* state, uint64_t* out_scratch); /* bytes of scratch for these shapes */
  /* Says whether the kernel can compute the node, before it is chosen: NULL: it can. UNIMPLEMENTED,
   * with the reason: it declines, and the host asks the next kernel of the device, then other
   * devices if the session lets the node run elsewhere (option fallback). Other codes refuse the
   * node. Shapes are as far as known: a shape that is not known must not make it decline if execute
   * can find out. Asked again when shapes change. Changes nothing, and gives the same answer each
   * time; does not block. Default: it can. */
  TW_O tw_status* (*fits)(const tw_node* n);
} tw_kernel_def;

typedef struct tw_run_api {
  TW_HEAD;
  /* Ends an asynchronous call. s: taken; NULL: success. Any thread; runs no other kernels before it
   * returns. */
  TW_R void (*complete)(const tw_host* h, tw_token t, tw_status* s);
  TW_R tw_status* (*cancelled)(const tw_frame* f); /* NULL: go on; else return it */
  /* Calls part(arg, begin, end) over [0, n) in pieces of at least `grain`, on the calling thread
   * and idle threads of the pool; returns when all pieces are done. The cuts between pieces may
   * depend on load: results must not. Pieces may not block. */
  TW_R void (*parallel)(const tw_frame* f, uint64_t n, uint64_t grain, void (*part)(void* arg, uint64_t begin, uint64_t end), void* arg);
  TW_R uint32_t (*threads)(const tw_frame* f); /* number of threads that parallel may use, the caller included; >= 1 */
  TW_R void (*log)(const tw_host* h, uint32_t level, const char* text, uint64_t len); /* 0 debug, 1 info, 2 warning, 3 error */
  TW_R int64_t (*now)(const tw_host* h);                                              /* monotonic, nanoseconds; the clock of deadlines */
  /* The three entries below are for the trace of a step (step_stats.h). All accept calls on any
   * thread, from execute until it returns, of an asynchronous kernel until the token completes.
   * cpp/trace.hpp has them with TW_HAS around.
   * trace: returns the number of the trace that records this step, for logs of the plugin; equal in
   * all calls of a step within one process, also inside the functions that it calls, and not used
   * again by the process; the trace names it, except that of a step of a cluster, whose tasks number
   * their traces themselves. 0: the step is not recorded, and the two other entries do nothing. */
  TW_R uint64_t (*TW_SINCE_1(trace))(const tw_frame* f);
  /* Adds a part of the call to the trace: reading, decoding, a wait for a driver. Times are of the
   * clock of `now`. s->queue: the row that shows the part, for work that the calling thread does not
   * do itself; empty: the row of the calling thread. s->stream and s->after are not read. Spans of
   * one row are disjoint or nested. A span that ends before it begins, has no name, or has a negative
   * time is left out. s: copied; at most 4096 bytes of a text. */
  TW_R void (*TW_SINCE_1(span))(const tw_frame* f, const tw_span* s);
  /* Says that the counter `name` of the node has this value from now on: bytes read, elements in a
   * queue. The trace draws it over time. name: copied; at most 4096 bytes of it. */
  TW_R void (*TW_SINCE_1(count))(const tw_frame* f, const char* name, uint64_t len, int64_t value);
} tw_run_api;

/* Returns the attribute of that name, or NULL. */
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
