/* Conditions and loops in structured form. A block is the body of a function, written through a
 * scope of its own; it runs on a condition or repeatedly. A block may use values of the surrounding
 * graphs, variables included, like its own. Operations without outputs (assignments, for instance)
 * run whenever the block runs; other operations run as far as the results need them. Everything
 * here can be differentiated, except by small constants of the surrounding graphs, which a block
 * copies.
 *
 *     tw_block* then = tw_block_begin(s);
 *     tw_output y = tw_scope_op2(tw_block_scope(then), "Mul", x, x);
 *     tw_block_give(then, &y, 1);
 *     tw_block* otherwise = tw_block_begin(s);
 *     y = tw_scope_op1(tw_block_scope(otherwise), "Neg", x);
 *     tw_block_give(otherwise, &y, 1);
 *     tw_cond(s, NULL, positive, then, otherwise, &y, 1);          y: x * x or -x
 *
 * Blocks nest: begin a block in the scope that uses it, which may be the scope of another block.
 * Make variables outside of all blocks. A function that ends a block (tw_cond, ...,
 * tw_block_destroy) takes it and moves the failures of its scope to the surrounding scope.
 * Scopes keep the errors. The code is INVALID_ARGUMENT for every rule stated here; messages begin
 * with the function and, if one is set, the place of the scope. After a failure results are 0.
 * Threads: as scopes; a block belongs to the thread of the scope around it.
 * Everything here: since 0.1. */
#ifndef THALWEG_FLOW_H
#define THALWEG_FLOW_H
#include "thalweg/export.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- Blocks ---- */

typedef struct tw_block tw_block;

/* Makes an empty block inside `around`, whose graph must outlive the block. The caller owns the
 * result until another function takes it. Returns NULL after a failure of `around`; all functions
 * here accept NULL. */
TW_EXPORT tw_block* tw_block_begin(tw_scope* around);
/* Discards the block. NULL is fine. */
TW_EXPORT void tw_block_destroy(tw_block* block);
/* Returns the scope in which the block is written; borrowed; do not finish it. */
TW_EXPORT tw_scope* tw_block_scope(tw_block* block);
/* Adds an argument. dims: -1 for an unknown size. rank -1: any rank. */
TW_EXPORT tw_output tw_block_argument(tw_block* block, uint32_t dtype, const int64_t* dims, int32_t rank);
/* Adds an argument for each of n values of the surrounding scope and writes them to out_arguments.
 * An argument has the value's type, the description of its variable (if it is a handle), and its
 * shape; if shapes is not NULL, it has shapes[i] instead. */
TW_EXPORT void tw_block_arguments(tw_block* block, const tw_output* values, uint32_t n, const tw_shape* shapes, tw_output* out_arguments);
/* Sets the block's results, values of the block or of the surrounding graphs. A further call adds
 * results. */
TW_EXPORT void tw_block_give(tw_block* block, const tw_output* results, uint32_t n);
/* Makes the block a function `name`, for operations that call functions (PartitionedCall, a
 * plugin's own). block: taken; may use nothing from outside except small constants. name: a number
 * is added if the graph has a function of that name. Returns the function's name, which lives as
 * long as the graph; NULL after a failure. */
TW_EXPORT const char* tw_block_define(tw_scope* scope, tw_block* block, const char* name);

/* ---- Conditions ---- */

/* Returns the results of `then` if pred is true, else those of `otherwise`; only that block runs.
 * pred: a scalar is true if it is not zero or empty, any other tensor if it has elements. then,
 * otherwise: taken; no arguments; n results of equal types. out_results: a size is known if both
 * blocks agree on it. name: a free name of the operation; NULL means a generated one. Returns the
 * operation, which may be run only for its effects. */
TW_EXPORT const tw_operation* tw_cond(tw_scope* scope, const char* name, tw_output pred, tw_block* then, tw_block* otherwise,
                                      tw_output* out_results, uint32_t n);
/* Returns the results of block `index`, or of the last block if there is no such block. index:
 * int32 scalar. branches: taken. Other parameters: as tw_cond. */
TW_EXPORT const tw_operation* tw_switch_case(tw_scope* scope, const char* name, tw_output index, tw_block* const* branches,
                                             uint32_t n_branches, tw_output* out_results, uint32_t n);

/* ---- Loops ---- */

typedef struct tw_while_options {
  uint32_t size, flags;
  const char* name;             /* a free name of the operation; NULL: generated */
  tw_output maximum_iterations; /* an int32 scalar that bounds the number of iterations; 0: no bound */
  int64_t parallel_iterations;  /* > 0; kept in the graph, for software that splits loops */
} tw_while_options;
/* Defaults: name NULL, maximum_iterations 0, parallel_iterations 10. NULL is fine. */
TW_EXPORT void tw_while_options_init(tw_while_options* options);

/* Returns the n loop variables after the last iteration; `body` runs as long as `cond` holds. cond,
 * body: taken; their arguments are the loop variables, in order. cond has one result, as pred of
 * tw_cond. body's results are the next values. The argument shapes of body are the shape
 * invariants: those of cond must equal them, and first[i] and result i of body must fit them.
 * options: NULL means the defaults. Errors: name the loop variable by number and name, and whether
 * its type or its shape is wrong. */
TW_EXPORT const tw_operation* tw_while_loop(tw_scope* scope, tw_block* cond, tw_block* body, const tw_output* first, uint32_t n,
                                            const tw_while_options* options, tw_output* out_last);

/* ---- Over slices: map, fold, scan ----
 * A block that runs once for each slice of some values along their first axis, in order. The block
 * takes one slice of each value and the current states; it gives the next states, and results that
 * are stacked along a new first axis. Without states this is map, without results it is fold, and
 * with the states as results it is scan:
 *
 *     tw_output row, sum;
 *     tw_block* each = tw_each_begin(s, &rows, 1, &zero, 1, 0, &row, &sum);
 *     sum = tw_scope_op2(tw_block_scope(each), "Add", sum, row);
 *     tw_each_end(s, NULL, each, &sum, &sum, 1, &total, &sums);               total: the last sum; sums: all of them */

/* Begins such a block. elems: n_elems > 0 values whose first sizes are equal. initial: n_states
 * values; states keep their type and shape. reverse: 1 runs from the last slice to the first.
 * out_slices, out_states: the arguments of the block. The caller owns the block until tw_each_end
 * takes it. */
TW_EXPORT tw_block* tw_each_begin(tw_scope* scope, const tw_output* elems, uint32_t n_elems, const tw_output* initial, uint32_t n_states,
                                  uint32_t reverse, tw_output* out_slices, tw_output* out_states);
/* Returns the index of the slice, an int32 scalar of the block. Errors: a block that tw_each_begin
 * did not make. */
TW_EXPORT tw_output tw_each_index(tw_block* block);
/* Ends the block and adds the loop. name: a free name of the loop; NULL means a generated one.
 * block: taken. states: the next values of the states. out_states: the states after the last slice;
 * may be NULL. results: n_results values whose shapes do not depend on the slice. out_results: the
 * stacked results, in the order of the slices; both may be NULL only if n_results is 0. Errors: a
 * state that changes type or shape, by number and name. */
TW_EXPORT void tw_each_end(tw_scope* scope, const char* name, tw_block* block, const tw_output* states, const tw_output* results,
                           uint32_t n_results, tw_output* out_states, tw_output* out_results);

#ifdef __cplusplus
}
#endif
#endif
