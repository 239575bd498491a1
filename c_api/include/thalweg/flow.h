/* Conditions and loops as a program writes them. What runs on a condition, or over and over, is a block: the body of a function, written
 * through a scope of its own. Values of the graphs around, variables too, are used in it like its own. Operations without outputs
 * (assignments, for instance) run whenever the block runs; others as far as its results need them. All of it can be differentiated, but by
 * small constants from around, which blocks hold copies of.
 *
 *     tw_block* then = tw_block_begin(s);
 *     tw_output y = tw_scope_op2(tw_block_scope(then), "Mul", x, x);
 *     tw_block_give(then, &y, 1);
 *     tw_block* otherwise = tw_block_begin(s);
 *     y = tw_scope_op1(tw_block_scope(otherwise), "Neg", x);
 *     tw_block_give(otherwise, &y, 1);
 *     tw_cond(s, NULL, positive, then, otherwise, &y, 1);          y: x * x or -x
 *
 * Blocks lie within each other: a block is begun in the scope that it is used in, which may be that of another block. Variables are made
 * outside of all. What ends a block (tw_cond, ..., tw_block_destroy) takes it; failures in its scope then become those of the scope around.
 * Errors are kept by scopes, INVALID_ARGUMENT for all that is said here, and begin with the function and, where one is set, the place of
 * the scope. After a failure results are 0. Threads: as scopes; a block belongs to the thread of the scope around it. Everything here:
 * since 0.1. */
#ifndef THALWEG_FLOW_H
#define THALWEG_FLOW_H
#include "thalweg/export.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- Blocks ---- */

typedef struct tw_block tw_block;

/* An empty block inside `around`, whose graph must outlive it. The caller owns the result until something takes it. NULL after a failure of
 * `around`, which all functions here accept. */
TW_EXPORT tw_block* tw_block_begin(tw_scope* around);
/* Gives it up. NULL is fine. */
TW_EXPORT void tw_block_destroy(tw_block* block);
/* Where it is written; borrowed: it must not be finished. */
TW_EXPORT tw_scope* tw_block_scope(tw_block* block);
/* One more argument. dims: -1 where any size will do. rank -1: any rank. */
TW_EXPORT tw_output tw_block_argument(tw_block* block, uint32_t dtype, const int64_t* dims, int32_t rank);
/* One for each of n values of the scope around, of its type, what is known of its variable, and its shape or, unless shapes is NULL,
 * shapes[i]. Into out_arguments. */
TW_EXPORT void tw_block_arguments(tw_block* block, const tw_output* values, uint32_t n, const tw_shape* shapes, tw_output* out_arguments);
/* What it gives, values of the block or of what is around; again: more of them. */
TW_EXPORT void tw_block_give(tw_block* block, const tw_output* results, uint32_t n);
/* Makes it a function of that name, for operations that call one (PartitionedCall, a plugin's own). block: taken; may use nothing from
 * around but small constants. name: if the graph has a function of that name, a number is put behind it. Answers the function's name, which
 * lives as long as the graph; NULL after a failure. */
TW_EXPORT const char* tw_block_define(tw_scope* scope, tw_block* block, const char* name);

/* ---- Conditions ---- */

/* What `then` gives where pred is true, else what `otherwise` gives; only that one runs. pred: a scalar is true if it is not zero or empty,
 * anything else if it has elements. Both blocks: taken; without arguments; n results of the same types, whose common sizes are known of
 * out_results. name: of the operation, free; NULL: made. Answers the operation, which may be run for its effects alone. */
TW_EXPORT const tw_operation* tw_cond(tw_scope* scope, const char* name, tw_output pred, tw_block* then, tw_block* otherwise,
                                      tw_output* out_results, uint32_t n);
/* What the block of that number gives; the last where there is none. index: int32 scalar. Otherwise as tw_cond. */
TW_EXPORT const tw_operation* tw_switch_case(tw_scope* scope, const char* name, tw_output index, tw_block* const* branches,
                                             uint32_t n_branches, tw_output* out_results, uint32_t n);

/* ---- Loops ---- */

typedef struct tw_while_options {
  uint32_t size, flags;
  const char* name;             /* of the operation, free; NULL: made */
  tw_output maximum_iterations; /* an int32 scalar after which the loop ends in any case; 0: none */
  int64_t parallel_iterations;  /* > 0; kept in the graph for those who split loops */
} tw_while_options;
/* Defaults: name NULL, maximum_iterations 0, parallel_iterations 10. NULL is fine. */
TW_EXPORT void tw_while_options_init(tw_while_options* options);

/* The n loop variables after `body` was run on them as long as `cond` holds. Both blocks: taken; their arguments are the loop variables, in
 * order. cond gives one value, as pred of tw_cond. body gives the next values. The shapes of the arguments of body, which those of cond
 * must equal, are the shape invariants: first[i], and what body gives for it, must fit them. options: NULL: the defaults. Errors: name the
 * loop variable by number and name, and what is wrong with it: its type, its shape. */
TW_EXPORT const tw_operation* tw_while_loop(tw_scope* scope, tw_block* cond, tw_block* body, const tw_output* first, uint32_t n,
                                            const tw_while_options* options, tw_output* out_last);

/* ---- Over slices: map, fold, scan ----
 * A block that is run once for each slice of some values along their first axis, in order. It takes one slice of each, and states that go
 * on from slice to slice; it gives the next states, and results that are stacked along a new first axis. Without states this is map,
 * without results it is fold, with the states as results it is scan:
 *
 *     tw_output row, sum;
 *     tw_block* each = tw_each_begin(s, &rows, 1, &zero, 1, 0, &row, &sum);
 *     sum = tw_scope_op2(tw_block_scope(each), "Add", sum, row);
 *     tw_each_end(s, NULL, each, &sum, &sum, 1, &total, &sums);               total: the last sum; sums: all of them */

/* elems: n_elems > 0 values of one first size. initial: n_states values; states keep their type and shape. reverse: 1: from the last slice
 * to the first. out_slices, out_states: what the block takes. The caller owns the block until tw_each_end. */
TW_EXPORT tw_block* tw_each_begin(tw_scope* scope, const tw_output* elems, uint32_t n_elems, const tw_output* initial, uint32_t n_states,
                                  uint32_t reverse, tw_output* out_slices, tw_output* out_states);
/* Which slice it is, an int32 scalar of the block. Errors: a block that is not of tw_each_begin. */
TW_EXPORT tw_output tw_each_index(tw_block* block);
/* Ends it. name: of the loop, free; NULL: made. block: taken. states: the next values of the states. out_states: after the last slice.
 * results, out_results: n_results values, each of the same shape for every slice, and all of them, in the order of the slices. What is not
 * wanted may be NULL. Errors: a state that changes type or shape, by number and name. */
TW_EXPORT void tw_each_end(tw_scope* scope, const char* name, tw_block* block, const tw_output* states, const tw_output* results,
                           uint32_t n_results, tw_output* out_states, tw_output* out_results);

#ifdef __cplusplus
}
#endif
#endif
