/* Gradients: reverse-mode differentiation of a graph, which adds ordinary operations. These
 * operations are placed, optimized, saved and differentiated like any others. Threads: one call per
 * graph at a time. Everything here: since 0.1. */
#ifndef THALWEG_GRADIENTS_H
#define THALWEG_GRADIENTS_H
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The gradient with respect to one x. A frozen value.
 *   rows 0:    `values` has the shape of x.
 *   otherwise: x was only gathered from. `values` [n, x.dims 1..] are the gradients of the rows of x
 *              that `rows` [n] (int32 or int64) names. A row named twice has the sum of both; all
 *              other rows have none.
 *   values 0:  no y depends on x. */
typedef struct tw_gradient {
  tw_output values;
  tw_output rows;
} tw_gradient;

/* Adds operations that compute d(sum over i of ys[i] . dys[i]) / d xs[j] for every j, and writes
 * their values to out_gradients[j].
 * ys: n_ys values of a floating-point or complex type. dys: one value of the shape of each y; NULL,
 * or an entry 0, means ones. xs: n_xs values, or variable handles for the gradient with respect to
 * their contents.
 * Errors: INVALID_ARGUMENT (a value of another graph, a y of integers, a dy of the wrong type or
 * shape); FAILED_PRECONDITION naming an op on the way that is not differentiable, and why;
 * UNIMPLEMENTED for one whose gradient is missing. Operations added before a failure stay, unused
 * and harmless. */
TW_EXPORT tw_status* tw_gradients_add(tw_graph* graph, const tw_output* ys, const tw_output* dys, uint32_t n_ys, const tw_output* xs,
                                      uint32_t n_xs, tw_gradient* out_gradients);
/* As tw_gradients_add, but the names of the added operations begin with `prefix` and "/".
 * prefix: NULL or "" means the first of "gradients", "gradients_1", ... that is free, as
 * tw_gradients_add chooses it. If operations of the prefix exist, the new ones get other names.
 * Errors: as tw_gradients_add; INVALID_ARGUMENT for a prefix that no name may begin with. Since 0.1. */
TW_EXPORT tw_status* tw_gradients_add_named(tw_graph* graph, const char* prefix, const tw_output* ys, const tw_output* dys, uint32_t n_ys,
                                            const tw_output* xs, uint32_t n_xs, tw_gradient* out_gradients);
/* As tw_gradients_add, but the n_until values of `until` count as constants: the gradient does not flow
 * through them. */
TW_EXPORT tw_status* tw_gradients_add_until(tw_graph* graph, const tw_output* ys, const tw_output* dys, uint32_t n_ys, const tw_output* xs,
                                            uint32_t n_xs, const tw_output* until, uint32_t n_until, tw_gradient* out_gradients);
/* As tw_gradients_add_until, but gradients recompute the intermediate values that they read instead
 * of keeping them, except values that depend on effects or random draws: in branches, loops and
 * calls always, elsewhere where planning finds that it lowers the peak. A loop then keeps only its
 * variables of each iteration. Less memory, more time, the same bits. Since 0.1. */
TW_EXPORT tw_status* tw_gradients_add_recomputing(tw_graph* graph, const tw_output* ys, const tw_output* dys, uint32_t n_ys,
                                                  const tw_output* xs, uint32_t n_xs, const tw_output* until, uint32_t n_until,
                                                  tw_gradient* out_gradients);
/* As tw_gradients_add_until, but all loops together keep at most memory_budget bytes for their
 * gradients. A loop that would keep more, or whose shapes or number of iterations are not known,
 * recomputes as with tw_gradients_add_recomputing, and so do calls inside it. The number of
 * iterations is known if the loop's condition follows from constants alone. Since 0.1. */
TW_EXPORT tw_status* tw_gradients_add_within(tw_graph* graph, const tw_output* ys, const tw_output* dys, uint32_t n_ys, const tw_output* xs,
                                             uint32_t n_xs, const tw_output* until, uint32_t n_until, uint64_t memory_budget,
                                             tw_gradient* out_gradients);
/* The common case inside a scope: one scalar loss. After a failure all entries of out_gradients are
 * 0. */
TW_EXPORT void tw_scope_gradients(tw_scope* scope, tw_output loss, const tw_output* xs, uint32_t n_xs, tw_gradient* out_gradients);

#ifdef __cplusplus
}
#endif
#endif
