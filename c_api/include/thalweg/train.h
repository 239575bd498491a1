/* Training: optimizers as operations that update variables by their gradients. Each tw_train_...
 * adds one update per variable, and the variables that the optimizer needs for it. These are called
 * slots and are named `variable`/`Optimizer`; if the graph has that name already, the next free one
 * with _1, _2, ... is used, as in TensorFlow. It returns an operation to run once per training
 * step. The variables hold half, bfloat16, float or double, and each is listed once. Options are
 * rounded to the variable's type. INVALID_ARGUMENT is reported if an option rounds to 0 or 1 and
 * the step would be NaN or nothing, such as Adam's default epsilon in half or its beta2 in
 * bfloat16.
 * Reads in the same step that the gradients do not depend on may see old or new values.
 * All functions work through a scope (scope.h), which keeps the failures; the result is then NULL.
 * Create the variables' initializer (variable.h) afterwards, so that it covers the slots.
 * Threads: as the scope. Everything here: since 0.1.
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

/* Gradient descent: w -= learning_rate * g. variables, gradients: n each. A variable whose gradient
 * has values 0 is skipped. Sparse gradients touch only their rows. */
typedef struct tw_sgd {
  uint32_t size, flags;
  tw_output learning_rate; /* a scalar, cast to each variable's type; may be computed by a schedule; 0: the constant 0.01 */
} tw_sgd;
TW_EXPORT void tw_sgd_init(tw_sgd* options);
TW_EXPORT const tw_operation* tw_train_sgd(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                           const tw_sgd* options); /* NULL: the defaults */

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
 * w -= learning_rate sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon), t counting steps
 * from 1.
 * Slots: `variable`/Adam (m) and `variable`/Adam_1 (v), and the scalars beta1_power and beta2_power
 * once per call.
 * With a sparse gradient, m and v decay in all rows, as with the equal dense gradient.
 * Source: Kingma and Ba, arXiv:1412.6980, in the form before section 2.1, as TensorFlow's
 * AdamOptimizer. */
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

/* AdaMax: m = beta1 m + (1 - beta1) g; v = max(beta2 v, |g|); w -= learning_rate / (1 - beta1^t) * m / (v + epsilon).
 * Slots: `variable`/AdaMax (m) and `variable`/AdaMax_1 (v), and the scalar beta1_power once per call. Sparse gradients touch only their
 * rows of w, m and v. Source: Kingma and Ba, section 7.1, as TensorFlow's AdaMaxOptimizer. */
typedef struct tw_adamax {
  uint32_t size, flags;
  tw_output learning_rate; /* a scalar, cast to each variable's type; 0: the constant 0.001 */
  double beta1, beta2;     /* in [0, 1) */
  double epsilon;          /* > 0 */
} tw_adamax;
/* Defaults: beta1 0.9, beta2 0.999, epsilon 1e-8. */
TW_EXPORT void tw_adamax_init(tw_adamax* options);
TW_EXPORT const tw_operation* tw_train_adamax(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                              const tw_adamax* options); /* NULL: the defaults */

/* AdaGrad: a += g^2; w -= learning_rate g / (sqrt(a) + epsilon).
 * Slot: `variable`/Adagrad (a). Sparse gradients touch only their rows of w and a.
 * Source: Duchi, Hazan and Singer, 2011, as TensorFlow's AdagradOptimizer, which has no epsilon. */
typedef struct tw_adagrad {
  uint32_t size, flags;
  tw_output learning_rate;    /* a scalar, cast to each variable's type; 0: the constant 0.01 */
  double initial_accumulator; /* initial value of a: > 0, or 0 if epsilon is > 0 */
  double epsilon;             /* >= 0 */
} tw_adagrad;
/* Defaults: initial_accumulator 0.1, epsilon 0. */
TW_EXPORT void tw_adagrad_init(tw_adagrad* options);
TW_EXPORT const tw_operation* tw_train_adagrad(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                               const tw_adagrad* options); /* NULL: the defaults */

/* AdaDelta: a = rho a + (1 - rho) g^2; step = g sqrt(u + epsilon) / sqrt(a + epsilon); w -= learning_rate step;
 * u = rho u + (1 - rho) step^2. Slots: `variable`/Adadelta (a) and `variable`/Adadelta_1 (u). Sparse gradients touch only their rows of w,
 * a and u. Source: Zeiler, arXiv:1212.5701, as TensorFlow's AdadeltaOptimizer. */
typedef struct tw_adadelta {
  uint32_t size, flags;
  tw_output learning_rate; /* a scalar, cast to each variable's type; 0: the constant 0.001 */
  double rho;              /* in [0, 1) */
  double epsilon;          /* > 0 */
} tw_adadelta;
/* Defaults: rho 0.95, epsilon 1e-8. */
TW_EXPORT void tw_adadelta_init(tw_adadelta* options);
TW_EXPORT const tw_operation* tw_train_adadelta(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                                const tw_adadelta* options); /* NULL: the defaults */

/* RMSProp: s = rho s + (1 - rho) g^2; m = momentum m + learning_rate g / sqrt(s + epsilon); w -= m.
 * Centred: c = rho c + (1 - rho) g, and s - c^2 replaces s under the root.
 * Slots: `variable`/RMSProp (s, initially 1), then c if centred, then m, as RMSProp_1 and
 * RMSProp_2. Sparse gradients touch only their rows of w and of the slots. Source: Hinton's lecture
 * 6e, centred as Graves, arXiv:1308.0850, as TensorFlow's RMSPropOptimizer. */
typedef struct tw_rmsprop {
  uint32_t size, flags;
  tw_output learning_rate; /* a scalar, cast to each variable's type; 0: the constant 0.001 */
  double rho, momentum;    /* in [0, 1) */
  double epsilon;          /* > 0 */
  uint32_t centered, reserved;
} tw_rmsprop;
/* Defaults: rho 0.9, momentum 0, epsilon 1e-10, centered 0. */
TW_EXPORT void tw_rmsprop_init(tw_rmsprop* options);
TW_EXPORT const tw_operation* tw_train_rmsprop(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                               const tw_rmsprop* options); /* NULL: the defaults */

/* Ftrl, "follow the regularised leader", per coordinate. With p = -learning_rate_power and a' = a +
 * g^2:
 * z += g + 2 l2_shrinkage w - (a'^p - a^p) / learning_rate w; a = a';
 * w = (sign(z) l1 - z) / (a'^p / learning_rate + 2 l2) if |z| > l1, else 0: small weights become
 * exactly 0.
 * Slots: `variable`/Ftrl (a) and `variable`/Ftrl_1 (z). Sparse gradients touch only their rows of
 * w, a and z.
 * Source: McMahan et al., "Ad Click Prediction", 2013, as TensorFlow's FtrlOptimizer. */
typedef struct tw_ftrl {
  uint32_t size, flags;
  tw_output learning_rate;     /* a scalar > 0, cast to each variable's type; 0: the constant 0.001 */
  double learning_rate_power;  /* <= 0; 0: the learning rate is constant */
  double initial_accumulator;  /* initial value of a, >= 0 */
  double l1, l2, l2_shrinkage; /* >= 0 */
} tw_ftrl;
/* Defaults: learning_rate_power -0.5, initial_accumulator 0.1, the others 0. */
TW_EXPORT void tw_ftrl_init(tw_ftrl* options);
TW_EXPORT const tw_operation* tw_train_ftrl(tw_scope* scope, const tw_output* variables, const tw_gradient* gradients, uint32_t n,
                                            const tw_ftrl* options); /* NULL: the defaults */

/* ---- Weight decay: between the gradients and an optimizer ----
 * Both functions replace the entries of `gradients`; a variable whose gradient has values 0 is
 * skipped. decay: >= 0. After a failure some entries may be replaced. clip.h has functions of the
 * same kind. */

/* L2 regularisation: g += decay w, the gradient of loss + decay / 2 |w|^2. A sparse gradient stays
 * sparse; only its rows decay, each once. */
TW_EXPORT void tw_decay_gradients(tw_scope* scope, const tw_output* variables, tw_gradient* gradients, uint32_t n, double decay);
/* Decoupled weight decay: in each step w -= learning_rate decay w, for all of w. The decay runs
 * when all gradients are known and before the optimizer, which must use the replaced gradients,
 * updates w. With tw_train_adam this is AdamW. learning_rate: as the optimizer's. Source:
 * Loshchilov and Hutter, arXiv:1711.05101; as Keras's and PyTorch's AdamW, where the decay is
 * multiplied by the learning rate. */
TW_EXPORT void tw_decay_weights(tw_scope* scope, const tw_output* variables, tw_gradient* gradients, uint32_t n, tw_output learning_rate,
                                double decay);

#ifdef __cplusplus
}
#endif
#endif
