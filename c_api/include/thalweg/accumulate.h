/* Accumulates the gradients of several sub-batches into one update, for batches that do not fit
 * into memory at once.
 * tw_accumulate_gradients replaces each of the `n` entries of `gradients` by its mean over
 * `sub_batches` sub-batches; entries whose `values` is 0 stay. It returns the operation that adds
 * the original gradients to the sums; run this operation once for each sub-batch. It returns NULL
 * after a failure.
 * A reader of the new entries, such as an optimizer, waits without a thread until `sub_batches`
 * gradients were added, takes them all, and leaves the sums empty for the next update. Sub-batches
 * may therefore run at the same time, in steps of their own (tw_session_run_async). If each loss is
 * a mean, sub-batches of one size give the update of the whole batch. If more than `sub_batches`
 * gradients are added before the reader takes them, all of them count, and the sum is still divided
 * by `sub_batches`.
 * Sparse gradients stay sparse; rows with the same number are summed. Gradients are half, bfloat16,
 * float or double. The sums are state of the runtime, as queues are, named `name`/0, `name`/1, ...;
 * the operation is named `name`. Checkpoints do not hold the sums, so save between two updates.
 * The function works through a scope (scope.h), which keeps the failures: INVALID_ARGUMENT for
 * sub_batches 0, no gradients, or another element type. Threads: as the scope. Since 0.1.
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

/* Makes the accumulators of n gradients; the top of this header says how they work. name: NULL
 * means "accumulated"; a number is added if the graph has that name. */
TW_EXPORT const tw_operation* tw_accumulate_gradients(tw_scope* scope, const char* name, tw_gradient* gradients, uint32_t n,
                                                      uint32_t sub_batches);

#ifdef __cplusplus
}
#endif
#endif
