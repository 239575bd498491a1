/* Graph compilers: a plugin that takes several nodes of a device and runs them as one.
 *
 * While a plan is made, the host shows the nodes of one device kind to `claim`. The plugin takes
 * sets of nodes and reports why it leaves others. If sets of several plugins overlap, the higher
 * priority wins, then the lower id. The host refuses a set that would have to wait for itself (a
 * path leaves it and comes back). Each remaining set becomes a part. `compile` makes an executable
 * state for the part, or `load` restores one that `serialize` wrote earlier; from then on the part
 * is a node like any other.
 * Records describe everything; no text format of graphs has to be parsed. A compiler does nothing
 * for gradients, training or feeds of other shapes: it sees only the nodes of one plan. If claim,
 * compile or load fails, the host logs the failure and runs the nodes one by one.
 * A part is capture_safe (kernel.h) if the kernels of all its nodes are; its execute must then
 * follow the same rule.
 * Nodes that touch files, network or system, and nodes that run once in a session, are not shown;
 * their results are inputs of the part.
 * Threads: claim, compile, load and serialize run on any thread, several at once, and may block;
 * execute as of kernels. */
#ifndef THALWEG_PLUGIN_COMPILER_H
#define THALWEG_PLUGIN_COMPILER_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {
  TW_PART_NODE_STATEFUL = 1u /* tw_part_node.flags: has state or effects; a set with such nodes keeps their order */
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
  const tw_part_edge* in;      /* flat, n_in entries */
  const uint32_t* types;       /* of the inputs, then of the outputs, flat */
  const tw_shape* shapes;      /* same order, as far as known; else unknown */
  const tw_view* const* value; /* flat: the input's value if it is the same in every step, else NULL. Host memory. */
  const int32_t* after;        /* nodes of the part that it waits for without reading them (control inputs), n_after entries */
  uint32_t n_attrs, n_in, n_out, n_after;
} tw_part_node;

/* Nodes in topological order, and the part's inputs and outputs. In `claim` the part is everything
 * on one device. */
typedef struct tw_part {
  TW_HEAD;
  const tw_part_node* const* nodes;
  const uint32_t* in_types; /* of the values from outside the part */
  const tw_shape* in_shapes;
  const tw_part_edge* out; /* values that are read outside the part */
  uint32_t n_nodes, n_in, n_out, reserved;
} tw_part;

/* Receives the claims of a compiler. */
typedef struct tw_claims {
  TW_HEAD;
  /* Claims these nodes of the part as one set. priority: of two sets that share a node the higher
   * wins. nodes: borrowed, n of them, in any order, each once. Errors: INVALID_ARGUMENT for no
   * nodes, a repeated node or one that does not exist; nothing is claimed then. */
  TW_R tw_status* (*take)(struct tw_claims* c, const uint32_t* nodes, uint32_t n, int32_t priority);
  /* Reports why a node is left, for `thalweg inspect --plan`. */
  TW_R tw_status* (*refuse)(struct tw_claims* c, uint32_t node, const char* why, uint64_t len);
} tw_claims;

/* Inputs and outputs of `part` are those of execute's frame, in this order. They are in the memory
 * that the kernels of the part's nodes require: on the device, or in host memory for arguments that
 * these declare as `host`, strings and handles. If a node reads or updates the variable of a
 * handle, the host opens it for the whole call, as kernel.h says. */
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
  TW_TEXT(kind); /* the device kind whose nodes claim receives */
  void* user;
  /* Looks at the nodes on one device and reports to `to` which it takes and why it leaves others;
   * borrowed for the call. */
  TW_R tw_status* (*claim)(const tw_host* h, void* user, void* device, const tw_part* part, tw_claims* to);
  TW_R tw_status* (*compile)(const tw_compile_call* c, void** out_state); /* makes an executable state for a claimed set */
  /* As execute of a kernel; f->state is the result of compile or load. Outputs whose shape does not
   * follow from the rules have rank -1 and are allocated by the call. May not block; several at
   * once on one state. */
  TW_R tw_status* (*execute)(const tw_frame* f);
  TW_R void (*destroy)(const tw_host* h, void* state); /* frees what compile or load made */
  /* Prepares the state for these shapes, all known, and returns its bytes of scratch. The host
   * calls it for the shapes that the state was compiled for, and for other shapes of feeds; an
   * error for the latter means that the state cannot serve them, and the part is compiled anew.
   * Default: no scratch, and no other shapes than it was compiled for, unless those were unknown. */
  TW_O tw_status* (*prepare)(const tw_compile_call* c, void* state, uint64_t* out_scratch);
  /* Writes the bytes from which load makes an equal state. Artefacts are kept per tag and part. */
  TW_C tw_status* (*serialize)(const tw_host* h, const void* state, tw_sink* to);
  TW_C tw_status* (*load)(const tw_compile_call* c, tw_source* from, void** out_state); /* from: the bytes that serialize wrote */
  /* Writes all that an artefact depends on besides the part: compiler version, device model,
   * options. */
  TW_C tw_status* (*tag)(const tw_host* h, void* user, void* device, tw_sink* to);
  /* Decides about an artefact with another tag: 1 usable, 0 not. Default: only an equal tag is
   * usable. */
  TW_O uint32_t (*usable)(const tw_host* h, void* user, void* device, const char* tag, uint64_t len);
  /* Returns 1 if output `out` of the part may use the memory of input `in`, when nobody reads that
   * later and the sizes agree; 0: it may not. Called for every pair of equal element types, once,
   * after compile or load; as `inplace` of a kernel. Default: 0 always. */
  TW_O uint32_t (*inplace)(const tw_host* h, const void* state, uint32_t out, uint32_t in);
} tw_compiler_def;

#ifdef __cplusplus
}
#endif
#endif
