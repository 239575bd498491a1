/* Ops: schema text, shape rule, gradient. An op says what is computed; kernels (kernel.h) say how.
 *
 * Schema text, one op:
 *     Gather(params: T, indices: I) -> (output: T); T: type; I: {int32, int64}; validate_indices: bool = true
 *   inputs and outputs   name: type [dims] [* N]
 *     type     an element type (float, int32, ...), a type attribute (T), a list(type) attribute (one value per entry), `resource`
 *              or `ref(type)` for references
 *     [dims]   in brackets, comma-separated: a number, a name (equal names are equal sizes), *name (any number of axes), _ (unknown);
 *              [] is a scalar; no brackets: nothing is promised
 *     * N      N values of that type, N being an int attribute
 *   clauses, separated by `;`
 *     A: KIND [>= n] [= default] [since minor]   an attribute. KIND is type, {list, of, types}, int, float, bool, string, shape,
 *              tensor, func, {"one", "of", "these"} for strings, or list(KIND). Without a default it is required, or inferred from
 *              the inputs where it names a type or a count.
 *     stateful                 never folded, merged with its twin, or dropped when it is a target
 *     once                     its result is the same for the whole session (handles): the host may run it once
 *     commutative              inputs may be swapped (for finding equal nodes)
 *     shape_only x y           reads only the shapes of these inputs, never their values
 *     touches WORD ...         what its kernels reach beside inputs and state: `files` (only through the host's functions, called with the
 *                              host of the frame or node at hand), `network`, `system` (files by other means, processes, plugins). Needs
 *                              `stateful`. A session refuses such nodes of imported graphs unless it was told otherwise
 *     resource x TYPE ...      the handle x, an input or output, leads to a resource of that type (resource.h). Of an input: the host opens
 *                              no other for a kernel. Of an output: the op opens the resource that its attributes `container` and
 *                              `shared_name` name (where that is empty, its node does), and savers save it
 *     unopened x y             kernels never open these handles: the op need not run on the device of what they lead to
 *     runs_as OP               of an op with references: OP runs in its place. It has the same inputs, handles where this op has
 *                              references, and the same outputs but for the references, which lead on to the variable of the first one
 *                              among the inputs; attributes go by name, types are inferred. An op without references among its inputs has
 *                              one output, its variable. Whoever wants a value and is given a reference gets the variable's value as it is
 *                              then. So no kernel ever sees a reference
 *     role WORD                the framework uses the op where it needs one that plays the role (see framework/README.md)
 *     no_gradient "why"        not differentiable, and why
 *     doc "text"               one line for the manual
 *   clauses that say how the output follows from the inputs, for planning to leave such nodes out; of ops without state, of one output and
 *   single values. They are promises about bits, but for the payload of a NaN:
 *     passes x                 the output is input x
 *     renames x                the output has the elements of x in their order; only the dims may differ
 *     converts x               the output is x in another element type: x itself where the type is the same
 *     permutes x perm          axis k of the output is axis perm[k] of x; negative axes count from the end
 *     chooses c x y            x where c is true, y where it is false, element by element
 *     neutral x 0 y 1 ...      of two inputs that broadcast: the output is the other input where each element of x is 0; likewise y and 1.
 *                              -0 is the negative zero, and the zero of whole numbers. Only of real numbers and bool
 *     involution               applied to its own output it gives its input back
 *     idempotent               applied to its own output it changes nothing. Only of real numbers and bool
 *   hints that say what an op does with the order of axes, for planning to choose the order that kernels want (`prefers` in kernel.h). They
 *   are promises, too, about bits but for the order of sums:
 *     ?elementwise             an element of an output follows from those at its place in the inputs, which broadcast as in NumPy
 *     ?axes NAME ...           these inputs and outputs have the same axes in the same order, or, if they are vectors or tables of whole
 *                              numbers beside such, an entry or a row for each; these attributes are lists with an entry, or a pair, for
 *                              each. In any other order, the same in all of them, the op computes the same in that order. A text
 *                              attribute among the names says what the order is, a letter per axis, such as "NCHW"
 *     ?axis_numbers x          the elements of input x, whole numbers, are numbers of such axes
 *     ?reduces keep            outputs lack the axes that `axis_numbers` says, or have size 1 there if the attribute `keep` is true
 *     ?data x y                which memory a kernel touches does not follow from the elements of these inputs, not even where they change
 *                              meanwhile. Fed values that any other input reads are copied first, but for reals under ?elementwise
 *   Defaults are 3, 0.5, true, "NHWC" (text up to the next quote), float (a type), [1, 2] (a list, or dims), unknown (a shape). Ops without
 *   inputs or outputs writes (). White space includes line breaks. A clause with `?` is a hint that hosts may skip; others they must know.
 * Threads: callbacks may run on any thread, several at once; they may not block. */
#ifndef THALWEG_PLUGIN_OP_H
#define THALWEG_PLUGIN_OP_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

/* What a shape rule sees. Answers go through host->graph->set_shape and host->graph->dim. An output that gets no shape keeps what the
 * schema's dims promise, else it is unknown. An error refuses the node. */
typedef struct tw_shape_call {
  TW_HEAD;
  const tw_host* host;
  void* user;                  /* the definition's */
  TW_TEXT(node);               /* its name, for messages; the host adds op and name to an error by itself */
  const tw_shape* in;          /* flat, n_in of them */
  const tw_view* const* value; /* flat: the input's value where it is known while planning, else NULL. Host memory. */
  const tw_attr* attrs;        /* resolved, in schema order */
  const uint32_t* types;       /* of the inputs, then of the outputs, flat */
  const uint32_t* in_at;       /* argument a of the schema is in[in_at[a]] up to in[in_at[a + 1] - 1] */
  uint32_t n_attrs, n_in, n_out, reserved;
  tw_builder* b;
} tw_shape_call;

/* What a gradient builder sees: one node of the forward graph and, through host->graph, its values and the gradients that arrive. */
typedef struct tw_grad_call {
  TW_HEAD;
  const tw_host* host;
  void* user;
  TW_TEXT(node);
  const tw_attr* attrs;        /* resolved, in schema order */
  const tw_shape* shapes;      /* of the inputs, then of the outputs, as far as known */
  const uint32_t* types;       /* same order */
  const tw_view* const* value; /* flat: the input's value where it is known while building, else NULL. Host memory. */
  const uint32_t* in_at;
  uint32_t n_attrs, n_in, n_out, reserved;
  tw_builder* b;
} tw_grad_call;

typedef struct tw_op_def {
  TW_HEAD;
  TW_TEXT(schema);
  void* user;
  TW_O tw_status* (*shape)(const tw_shape_call* c);   /* default: the schema's dims */
  TW_C tw_status* (*gradient)(const tw_grad_call* c); /* calls dx for each input that gets a gradient; none for the others */
} tw_op_def;

/* Building graphs and shapes from callbacks. Sticky: after a failure every call answers 0 and the first failure is reported when the
 * callback returns. Valid only inside the callback that got the builder. */
typedef struct tw_graph_api {
  TW_HEAD;
  /* Adds a node; answers its output 0 (or, for an op without outputs, an edge good only for `output`). Types and counts are inferred
   * from the inputs, attributes with defaults may be left out. in: n flat edges. */
  TW_R tw_edge (*emit)(tw_builder* b, const char* op, uint64_t op_len, const tw_edge* in, uint32_t n, const tw_attr* attrs,
                       uint32_t n_attrs);
  TW_R tw_edge (*output)(tw_builder* b, tw_edge node, uint32_t i);     /* output i of what emit answered */
  TW_R tw_edge (*scalar)(tw_builder* b, uint32_t dtype, double value); /* a constant; value is rounded to dtype */
  TW_R tw_edge (*constant)(tw_builder* b, uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes);
  /* Type and, as far as known, shape of an edge; dims live until the callback returns. */
  TW_R tw_status* (*describe)(tw_builder* b, tw_edge e, uint32_t* out_dtype, tw_shape* out_shape);

  /* Gradient callbacks. The first three are captures: free until used, then an edge, a stack push and pop, or a recomputation. */
  TW_R tw_edge (*input)(tw_builder* b, uint32_t i);
  TW_R tw_edge (*result)(tw_builder* b, uint32_t o);
  TW_R tw_edge (*shape)(tw_builder* b,
                        uint32_t i); /* of input i, as an int32 vector; a constant where the shape is known; does not keep the values */
  TW_R tw_edge (*dy)(tw_builder* b, uint32_t o);                           /* dense; zeros where nothing flows back */
  TW_R uint32_t (*has_dy)(tw_builder* b, uint32_t o);                      /* 1: some gradient arrives at output o */
  TW_R tw_edge (*dy_sparse)(tw_builder* b, uint32_t o, tw_edge* out_rows); /* values; 0: dense, take dy */
  TW_R void (*dx)(tw_builder* b, uint32_t i, tw_edge values);
  TW_R void (*dx_sparse)(tw_builder* b, uint32_t i, tw_edge rows, tw_edge values); /* rows: vector of indices into axis 0 of input i */

  /* Shape callbacks. */
  TW_R void (*set_shape)(tw_builder* b, uint32_t o, const int64_t* dims, int32_t rank); /* rank -1: unknown */
  TW_R int64_t (*dim)(tw_builder* b, uint32_t op, int64_t x, int64_t y); /* '+' '-' '*' '/' of sizes that may be unknown; '=' merges, and
                                                                            fails if they differ. Overflow and negative results fail. */
  /* What a resource handle leads to: dtype and shape of the variable behind input i; dtype 0 and rank -1 if unknown. */
  TW_R void (*handle)(tw_builder* b, uint32_t i, uint32_t* out_dtype, tw_shape* out_shape);
  TW_R void (*set_handle)(tw_builder* b, uint32_t o, uint32_t dtype, const int64_t* dims, int32_t rank);
} tw_graph_api;

#ifdef __cplusplus
}
#endif
#endif
