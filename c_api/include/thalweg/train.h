/* Training: optimizers, as operations that update variables by their gradients. Each function adds one update per variable, and the
 * variables that the optimizer needs for it (slots, named `variable`/`Optimizer`), and answers an operation to run once per training step.
 * Reads of the same step that the gradients do not depend on may see old or new values.
 * All work through a scope (scope.h), so failures are kept there and the answer is then NULL. Create the variables' initializer
 * (variable.h) afterwards, so that it covers the slots. Threads: as the scope. Everything here: since 0.1.
 *
 *     tw_gradient gradients[4];
 *     tw_scope_gradients(s, loss, weights, 4, gradients);
 *     train = tw_train_adam(s, weights, gradients, 4, NULL);
 *     init = tw_variable_initializer(s, "init"); */
#ifndef THALWEG_TRAIN_H
#define THALWEG_TRAIN_H
#include "thalweg/export.h"
#include "thalweg/gradients.h"
#include "thalweg/scope.h"
#include "thalweg/variable.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Gradient descent: w -= learning_rate * g. learning_rate: a scalar, cast to each variable's type; a value, so that a
 * schedule may compute it. variables, gradients: n each. A variable whose gradient has values 0 is left alone. Sparse gradients touch
 * only their rows. */
TW_EXPORT const tw_operation* tw_train_sgd(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                           tw_output learning_rate);

/* Momentum: m = momentum * m + g; w -= learning_rate * m, or, with nesterov 1, w -= learning_rate * (g + momentum * m).
 * Slot: `variable`/Momentum. Sparse gradients touch only their rows of w and m. Source: TensorFlow's MomentumOptimizer. */
typedef struct tw_momentum {
  uint32_t size, flags;
  tw_output learning_rate; /* a scalar, cast to each variable's type; 0: the constant 0.01 */
  double momentum;         /* in [0, 1) */
  uint32_t nesterov, reserved;
} tw_momentum;
/* Defaults: momentum 0.9, nesterov 0. */
TW_EXPORT void tw_momentum_init(tw_momentum* options);
TW_EXPORT const tw_operation* tw_train_momentum(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                                const tw_momentum* options); /* NULL: the defaults */

/* Adam: m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
 * w -= learning_rate sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon), t counting steps from 1.
 * Slots: `variable`/Adam (m) and `variable`/Adam_1 (v), and the scalars beta1_power and beta2_power once per call.
 * Sparse gradients: m and v decay everywhere, so that the result is that of the dense gradient with zeros.
 * Source: Kingma and Ba, arXiv:1412.6980, in the form before section 2.1, as TensorFlow's AdamOptimizer. */
typedef struct tw_adam {
  uint32_t size, flags;
  tw_output learning_rate; /* a scalar, cast to each variable's type; 0: the constant 0.001 */
  double beta1, beta2;     /* in [0, 1) */
  double epsilon;          /* > 0 */
  uint32_t nesterov, reserved;
} tw_adam;
/* Defaults: beta1 0.9, beta2 0.999, epsilon 1e-8, nesterov 0. */
TW_EXPORT void tw_adam_init(tw_adam* options);
TW_EXPORT const tw_operation* tw_train_adam(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                            const tw_adam* options); /* NULL: the defaults */

#ifdef __cplusplus
}
#endif
#endif
