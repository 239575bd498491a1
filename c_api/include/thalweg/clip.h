/* Clipping shortens gradients before an optimizer uses them. Each function replaces the n entries
 * of `gradients` by values that it computes; entries whose `values` is 0 stay. Sparse gradients
 * stay sparse. Rows that are named several times are summed first and then named once, so that
 * bounds hold for what an optimizer applies (TensorFlow does not sum them). Norms are double. The
 * sum of squares of one gradient has the gradient's type (float for the 16-bit types), so float
 * elements beyond 1e19 give a norm that is not finite. All functions work through a scope
 * (scope.h), which keeps the failures. Threads: as the scope. Everything here: since 0.1.
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

/* Clips every element to [low, high]. */
TW_EXPORT void tw_clip_by_value(tw_scope* scope, tw_gradient* gradients, uint32_t n, double low, double high);
/* Scales each gradient by itself: g max_norm / max(|g|, max_norm). max_norm: > 0, finite. A norm
 * that is not finite makes the gradient NaN. */
TW_EXPORT void tw_clip_by_norm(tw_scope* scope, tw_gradient* gradients, uint32_t n, double max_norm);
/* Scales all gradients by one factor, max_norm / max(norm, max_norm), where norm is the norm of all
 * gradients together. Returns the norm before clipping, a double scalar; 0 after a failure.
 * max_norm: > 0, finite. A norm that is not finite makes all gradients NaN. */
TW_EXPORT tw_output tw_clip_by_global_norm(tw_scope* scope, tw_gradient* gradients, uint32_t n, double max_norm);

#ifdef __cplusplus
}
#endif
#endif
