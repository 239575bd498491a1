/* Ops: schema text, shape rule, gradient. An op defines a computation; kernels (kernel.h) implement
 * it.
 *
 * Schema text, one op:
 *     Gather(params: T, indices: I) -> (output: T); T: type; I: {int32, int64}; validate_indices: bool = true
 *   inputs and outputs   name: type [dims] [* N]
 *     type     an element type (float, int32, ...), a type attribute (T), a list(type) attribute (one value per entry), `resource`
 *              or `ref(type)` for references
 *     [dims]   in brackets, comma-separated: a number, a name (equal names are equal sizes), *name (any number of axes), _ (unknown);
 *              [] is a scalar; without brackets the shape is unknown
 *     * N      N values of that type, N being an int attribute
 *   clauses, separated by `;`
 *     A: KIND [>= n] [= default] [since minor]   an attribute. KIND is type, {list, of, types}, int, float, bool, string, shape,
 *              tensor, func, {"one", "of", "these"} for strings, or list(KIND). An attribute without a default is required, or
 *              inferred from the inputs if it is the type or the count of one.
 *     stateful                 never folded, merged with an equal node, or dropped when it is a target
 *     once                     its result is the same for the whole session (handles): the host may run it once
 *     commutative              inputs may be swapped (for finding equal nodes)
 *     shape_only x y           reads only the shapes of these inputs, never their values
 *     touches WORD ...         external things that its kernels access: `files` (only through the host's functions, called with the
 *                              host of the current frame or node), `network`, `system` (files by other means, processes, plugins).
 *                              Needs `stateful`. A session refuses such nodes of imported graphs unless an option allows them
 *     resource x TYPE ...      the handle x, an input or output, refers to a resource of that type (resource.h). For an input: the host
 *                              opens no other type for a kernel. For an output: the op opens the resource that its attributes
 *                              `container` and `shared_name` name (the node's name if that is empty), and savers save it
 *     unopened x y             kernels never open these handles: the op need not run on the device of their resources
 *     runs_as OP               for an op with references: OP runs in its place. It has the same inputs, with handles instead of
 *                              references, and the same outputs except the references. These refer to the variable of the first
 *                              reference among the inputs; attributes go by name, types are inferred. An op without references among
 *                              its inputs has one output, its variable. A consumer of a value that is given a reference gets the
 *                              variable's value at that time. So no kernel ever sees a reference
 *     role WORD                the framework uses the op if it needs one that plays the role (see framework/README.md)
 *     no_gradient "why"        not differentiable, and why
 *     doc "text"               one line for the manual
 *   clauses that derive the output from the inputs, so that planning can remove such nodes; for ops without state, of one output and
 *   single values. They are promises about bits, except for the payload of a NaN:
 *     passes x                 the output is input x
 *     renames x                the output has the elements of x in their order; only the dims may differ
 *     converts x               the output is x in another element type: x itself if the type is the same
 *     permutes x perm          axis k of the output is axis perm[k] of x; negative axes count from the end
 *     chooses c x y            x where c is true, y where it is false, element by element
 *     neutral x 0 y 1 ...      for two inputs that broadcast: the output is the other input where each element of x is 0; likewise y
 *                              and 1. -0 is the negative zero, and the zero of integers. Only for real numbers and bool
 *     involution               applied to its own output it gives its input back
 *     idempotent               applied to its own output it changes nothing. Only for real numbers and bool
 *   hints about the order of axes, so that planning can choose the order that kernels prefer (`prefers` in kernel.h). They are promises,
 *   too, about bits except for the order of sums:
 *     ?elementwise             an element of an output follows from those at its place in the inputs, which broadcast as in NumPy
 *     ?axes NAME ...           these inputs and outputs have the same axes in the same order. Vectors or tables of integers among
 *                              them have an entry or a row for each axis; list attributes among the names have an entry, or a pair,
 *                              for each. If all of them use another order, the op computes the same in that order. A text attribute
 *                              among the names gives the order, a letter per axis, such as "NCHW"
 *     ?axis_numbers x          the elements of input x, integers, are numbers of such axes
 *     ?reduces keep            outputs lack the axes in `axis_numbers`, or have size 1 there if the attribute `keep` is true
 *     ?data x y                the memory that a kernel touches does not depend on the elements of these inputs, not even if they
 *                              change meanwhile. Fed values that any other input reads are copied first, except reals under ?elementwise
 *   Defaults are 3, 0.5, true, "NHWC" (text up to the next quote), float (a type), [1, 2] (a list, or dims), unknown (a shape). Ops
 *   without inputs or outputs write (). White space includes line breaks. A clause with `?` is a hint that hosts may skip; others they
 *   must know.
 * Threads: callbacks may run on any thread, several at once; they may not block. */
#ifndef THALWEG_PLUGIN_OP_H
#define THALWEG_PLUGIN_OP_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Input of a shape rule. Its results go through host->graph->set_shape and host->graph->dim. An
 * output without a result keeps the shape of the schema's dims, or is unknown. An error refuses the
 * node. */
typedef struct tw_shape_call {
  TW_HEAD;
  const tw_host* host;
  void* user;                  /* the definition's */
  TW_TEXT(node);               /* its name, for messages; the host adds op and name to an error */
  const tw_shape* in;          /* flat, n_in of them */
  const tw_view* const* value; /* flat: the input's value if it is known during planning, else NULL. Host memory. */
  const tw_attr* attrs;        /* resolved, in schema order */
  const uint32_t* types;       /* of the inputs, then of the outputs, flat */
  const uint32_t* in_at;       /* argument a of the schema is in[in_at[a]] up to in[in_at[a + 1] - 1] */
  uint32_t n_attrs, n_in, n_out, reserved;
  tw_builder* b;
} tw_shape_call;

/* Input of a gradient builder: one node of the forward graph and, through host->graph, its values
 * and the incoming gradients. */
typedef struct tw_grad_call {
  TW_HEAD;
  const tw_host* host;
  void* user;
  TW_TEXT(node);
  const tw_attr* attrs;        /* resolved, in schema order */
  const tw_shape* shapes;      /* of the inputs, then of the outputs, as far as known */
  const uint32_t* types;       /* same order */
  const tw_view* const* value; /* flat: the input's value if it is known during building, else NULL. Host memory. */
  const uint32_t* in_at;
  uint32_t n_attrs, n_in, n_out, reserved;
  tw_builder* b;
} tw_grad_call;

typedef struct tw_op_def {
  TW_HEAD;
  TW_TEXT(schema);
  void* user;
  TW_O tw_status* (*shape)(const tw_shape_call* c);   /* default: the schema's dims */
  TW_C tw_status* (*gradient)(const tw_grad_call* c); /* calls dx for each input that has a gradient */
} tw_op_def;

/* A node to be added. */
typedef struct tw_new_node {
  TW_HEAD;
  TW_TEXT(op);
  TW_TEXT(name);     /* wanted; a number is added if it is taken. Empty: made of the op's name */
  TW_TEXT(device);   /* a device or a part of its name: GPU:0; empty: that of the forward node in gradients, else any */
  const tw_edge* in; /* n_in flat edges */
  const tw_attr* attrs;
  const tw_edge* after; /* n_after nodes (any output) that run before this one */
  uint32_t n_in, n_attrs, n_after, reserved;
} tw_new_node;

/* Builds graphs and shapes in callbacks. Failures are sticky: after one every call returns 0, and
 * the host reports it when the callback returns. Valid only inside the callback that got the
 * builder. */
typedef struct tw_graph_api {
  TW_HEAD;
  /* Adds a node; returns its output 0 (or, for an op without outputs, an edge valid only for
   * `output`). Types and counts are inferred from the inputs; attributes with defaults may be left
   * out. in: n flat edges. */
  TW_R tw_edge (*emit)(tw_builder* b, const char* op, uint64_t op_len, const tw_edge* in, uint32_t n, const tw_attr* attrs,
                       uint32_t n_attrs);
  TW_R tw_edge (*output)(tw_builder* b, tw_edge node, uint32_t i);     /* output i of a result of emit */
  TW_R tw_edge (*scalar)(tw_builder* b, uint32_t dtype, double value); /* a constant; value is rounded to dtype */
  TW_R tw_edge (*constant)(tw_builder* b, uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes);
  /* Returns type and, as far as known, shape of an edge; dims live until the callback returns. */
  TW_R tw_status* (*describe)(tw_builder* b, tw_edge e, uint32_t* out_dtype, tw_shape* out_shape);

  /* Gradient callbacks. The first three capture values of the forward graph. A capture costs
   * nothing until it is used; then it is an edge, a stack push and pop, or a recomputation. */
  TW_R tw_edge (*input)(tw_builder* b, uint32_t i);
  TW_R tw_edge (*result)(tw_builder* b, uint32_t o);
  TW_R tw_edge (*shape)(tw_builder* b,
                        uint32_t i); /* shape of input i, as an int32 vector; a constant if it is known; does not keep the values */
  TW_R tw_edge (*dy)(tw_builder* b, uint32_t o);                           /* dense; zeros if no gradient arrives */
  TW_R uint32_t (*has_dy)(tw_builder* b, uint32_t o);                      /* 1: a gradient arrives at output o */
  TW_R tw_edge (*dy_sparse)(tw_builder* b, uint32_t o, tw_edge* out_rows); /* returns values; 0: dense, use dy */
  TW_R void (*dx)(tw_builder* b, uint32_t i, tw_edge values);
  TW_R void (*dx_sparse)(tw_builder* b, uint32_t i, tw_edge rows, tw_edge values); /* rows: vector of indices into axis 0 of input i */

  /* Shape callbacks. */
  TW_R void (*set_shape)(tw_builder* b, uint32_t o, const int64_t* dims, int32_t rank); /* rank -1: unknown */
  TW_R int64_t (*dim)(tw_builder* b, uint32_t op, int64_t x, int64_t y); /* '+' '-' '*' '/' of sizes that may be unknown; '=' merges, and
                                                                            fails if they differ. Overflow and negative results fail. */
  /* Resource handles: dtype and shape of the variable behind input i; dtype 0 and rank -1 if
   * unknown. */
  TW_R void (*handle)(tw_builder* b, uint32_t i, uint32_t* out_dtype, tw_shape* out_shape);
  TW_R void (*set_handle)(tw_builder* b, uint32_t o, uint32_t dtype, const int64_t* dims, int32_t rank);
  TW_R tw_edge (*add)(tw_builder* b, const tw_new_node* n); /* as emit, with the choices of the record */
} tw_graph_api;

#ifdef __cplusplus
}
#endif
#endif
