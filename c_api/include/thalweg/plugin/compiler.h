/* Graph compilers: a plugin that takes several nodes of a device together and runs them as one.
 *
 * Life of a claim, while a plan is made: the host shows the nodes of one device kind (`claim`), the plugin takes sets of them and says
 * why it leaves others. Where sets of several plugins overlap, the higher priority wins, then the lower id; a set that could only run
 * by waiting for itself (a path leaves it and comes back) is refused by the host. Each set that is left becomes a part: `compile` makes
 * something to execute, or `load` takes it from what `serialize` wrote earlier, and from then on it is a node like any other.
 * Everything is known from records; no text format of graphs has to be parsed. Gradients, training and feeds of other shapes need nothing
 * from a compiler: it sees the nodes of one plan. What fails in claim, compile or load is logged, and the nodes run one by one.
 * A part is capture_safe (kernel.h) where the kernels of all its nodes are: its execute must then keep to the same.
 * Not shown: nodes that touch files, network or system, and those that run once in a session; what they make comes from outside.
 * Threads: claim, compile, load and serialize run on any thread, several at once, and may block; execute as of kernels. */
#ifndef THALWEG_PLUGIN_COMPILER_H
#define THALWEG_PLUGIN_COMPILER_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {
  TW_PART_NODE_STATEFUL = 1u /* tw_part_node.flags: has state or effects; a set with such a node keeps their order */
};

/* A value inside a part: output `port` of node `node` of the part, or, with node -1, the part's own input `port`. Frozen. */
typedef struct tw_part_edge {
  int32_t node;
  uint32_t port;
} tw_part_edge;

typedef struct tw_part_node {
  TW_HEAD;
  TW_TEXT(name);
  TW_TEXT(op);
  const tw_attr* attrs;        /* resolved, in schema order */
  const tw_part_edge* in;      /* flat, n_in of them */
  const uint32_t* types;       /* of the inputs, then of the outputs, flat */
  const tw_shape* shapes;      /* same order, as far as known */
  const tw_view* const* value; /* flat: the input's value where it is the same in every step, else NULL. Host memory. */
  const int32_t* after;        /* nodes of the part that it waits for without reading them (control inputs), n_after of them */
  uint32_t n_attrs, n_in, n_out, n_after;
} tw_part_node;

/* Nodes with their inputs before them, and what goes in and out. In `claim` it is everything on one device. */
typedef struct tw_part {
  TW_HEAD;
  const tw_part_node* const* nodes;
  const uint32_t* in_types; /* of the values that come from outside */
  const tw_shape* in_shapes;
  const tw_part_edge* out; /* the values that somebody outside reads */
  uint32_t n_nodes, n_in, n_out, reserved;
} tw_part;

/* Where a compiler says what it takes. */
typedef struct tw_claims {
  TW_HEAD;
  /* These nodes of the part as one. priority: of two sets that share a node the higher wins. nodes: borrowed, n of them, in any order,
   * each once. Errors: INVALID_ARGUMENT for no nodes, one twice or one that is not there; nothing is taken then. */
  TW_R tw_status* (*take)(struct tw_claims* c, const uint32_t* nodes, uint32_t n, int32_t priority);
  /* Why a node is left, for `thalweg inspect --plan`. */
  TW_R tw_status* (*refuse)(struct tw_claims* c, uint32_t node, const char* why, uint64_t len);
} tw_claims;

/* Inputs and outputs of `part` are those of execute's frame, in this order. They lie where the kernels of its nodes want them: on the
 * device, or in host memory what those declare as `host`, strings and handles. A handle whose variable some node reads or updates is
 * opened for the whole call, as kernel.h says. */
typedef struct tw_compile_call {
  TW_HEAD;
  const tw_host* host;
  void* user;   /* the definition's */
  void* device; /* the device's self */
  const tw_part* part;
} tw_compile_call;

typedef struct tw_compiler_def {
  TW_HEAD;
  TW_TEXT(name); /* for options and reports; unique within a plugin */
  TW_TEXT(kind); /* the device kind whose nodes it wants to see */
  void* user;
  /* Looks at the nodes on one device and says through `to` what it takes and why it leaves others; borrowed for the call. */
  TW_R tw_status* (*claim)(const tw_host* h, void* user, void* device, const tw_part* part, tw_claims* to);
  TW_R tw_status* (*compile)(const tw_compile_call* c, void** out_state); /* makes of a set that was taken something to execute */
  /* As of a kernel; f->state is what compile or load made. Outputs whose shape the rules do not tell have rank -1 and are allocated by
   * the call. May not block; several at once on one state. */
  TW_R tw_status* (*execute)(const tw_frame* f);
  TW_R void (*destroy)(const tw_host* h, void* state); /* frees what compile or load made */
  /* The state is to serve these shapes, all known: bytes of scratch. Called for those that it was compiled for, and where feeds have
   * others, for those; an error then means that it cannot, and the part is compiled anew. Default: no scratch, and no other shapes than
   * it was compiled for, unless those were unknown. */
  TW_O tw_status* (*prepare)(const tw_compile_call* c, void* state, uint64_t* out_scratch);
  /* Writes what load needs to make the same again. Artefacts are kept per tag and part. */
  TW_C tw_status* (*serialize)(const tw_host* h, const void* state, tw_sink* to);
  TW_C tw_status* (*load)(const tw_compile_call* c, tw_source* from, void** out_state); /* what serialize wrote */
  /* What an artefact depends on beside the part: compiler version, device model, options. */
  TW_C tw_status* (*tag)(const tw_host* h, void* user, void* device, tw_sink* to);
  /* The verdict on an artefact with another tag: 1 usable, 0 not. Default: only an equal tag is usable. */
  TW_O uint32_t (*usable)(const tw_host* h, void* user, void* device, const char* tag, uint64_t len);
  /* 1: output `out` of the part may lie where input `in` lies, when nobody reads that later and the sizes agree; 0: it may not. Asked of
   * every pair of equal element types, once, after compile or load; as `inplace` of a kernel. Default: 0 always. */
  TW_O uint32_t (*inplace)(const tw_host* h, const void* state, uint32_t out, uint32_t in);
} tw_compiler_def;

#ifdef __cplusplus
}
#endif
#endif
