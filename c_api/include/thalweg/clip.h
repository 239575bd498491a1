/* Clipping: gradients made shorter before an optimizer gets them. Each function replaces the entries of `gradients` (n of them; those with
 * values 0 are left alone) by ones that it computes. Sparse gradients stay sparse, and their values are taken as they stand, as TensorFlow
 * does: a row that is named twice counts as two. Norms are double; the sum of the squares of one gradient is of its type (of short types
 * float), so that float elements beyond 1e19 make a norm that is not finite.
 * All work through a scope (scope.h), so failures are kept there. Threads: as the scope. Everything here: since 0.1.
 *
 *     tw_scope_gradients(s, loss, weights, 4, gradients);
 *     tw_output norm = tw_clip_by_global_norm(s, gradients, 4, 1.0);
 *     train = tw_train_sgd(s, weights, gradients, 4, &sgd); */
#ifndef THALWEG_CLIP_H
#define THALWEG_CLIP_H
#include "thalweg/export.h"
#include "thalweg/gradients.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Every element into [low, high]. */
TW_EXPORT void tw_clip_by_value(tw_scope* scope, tw_gradient* gradients, uint32_t n, double low, double high);
/* Each gradient by itself: g max_norm / max(|g|, max_norm). max_norm: > 0, finite. A norm that is not finite makes the gradient NaN. */
TW_EXPORT void tw_clip_by_norm(tw_scope* scope, tw_gradient* gradients, uint32_t n, double max_norm);
/* All by one factor, max_norm / max(norm, max_norm), where norm is that of all of them together. Answers the norm before clipping, a double
 * scalar to look at; 0 after a failure. max_norm: > 0, finite. A norm that is not finite makes all gradients NaN. */
TW_EXPORT tw_output tw_clip_by_global_norm(tw_scope* scope, tw_gradient* gradients, uint32_t n, double max_norm);

#ifdef __cplusplus
}
#endif
#endif
