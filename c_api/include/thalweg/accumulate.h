/* Accumulation: the gradients of several sub-batches make one update, for batches that do not fit into memory at once. Replaces the entries
 * of `gradients` (n of them; those with values 0 are left alone) by their mean over `sub_batches` sub-batches, and answers the operation
 * that adds what the entries were, to be run once for each of them; NULL after a failure. Whoever reads the new entries, an optimizer,
 * waits until so many were added, without a thread, takes all of them, and the next update begins with none. So sub-batches may be run at
 * once, by steps of their own, as tw_session_run_async starts them. With losses that are means, sub-batches of one size give the update of
 * the whole batch; where more than `sub_batches` were added before somebody takes them, all count, and the sum is divided by sub_batches
 * all the same. Sparse gradients stay sparse: rows of one number are added up. Gradients are half, bfloat16, float or double. The sums are
 * state of the runtime, as queues are, named `name`/0, `name`/1, ..., the operation `name`; checkpoints do not hold them: save between two
 * updates. Works through a scope (scope.h), so failures are kept there: INVALID_ARGUMENT for sub_batches 0, no gradients, another type.
 * Threads: as the scope. Since 0.1.
 *
 *     tw_scope_gradients(s, loss, weights, 4, gradients);
 *     const tw_operation* add = tw_accumulate_gradients(s, "sum", gradients, 4, 8);
 *     train = tw_train_sgd(s, weights, gradients, 4, &sgd);      run add eight times, then train once */
#ifndef THALWEG_ACCUMULATE_H
#define THALWEG_ACCUMULATE_H
#include "thalweg/export.h"
#include "thalweg/gradients.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

/* name: NULL: "accumulated"; made free in the graph. */
TW_EXPORT const tw_operation* tw_accumulate_gradients(tw_scope* scope, const char* name, tw_gradient* gradients, uint32_t n,
                                                      uint32_t sub_batches);

#ifdef __cplusplus
}
#endif
#endif
