/* Moving averages of variables. Each variable gets a shadow variable that follows it slowly and
 * that evaluation and serving use. The shadow of `w` is named `w/ExponentialMovingAverage`, as in
 * TensorFlow, in the graph and in checkpoints. To restore averages into a graph that has no
 * shadows, map the name of each variable to the name of its shadow.
 * All functions work through a scope (scope.h), which keeps the failures. Threads: as the scope.
 * Everything here: since 0.1.
 *
 *     train = tw_train_adam(s, weights, gradients, 4, NULL);
 *     train = tw_moving_averages_add(s, weights, 4, NULL, train, averages);
 *     swap = tw_moving_averages_swap(s, weights, averages, 4);       run it, evaluate, run it again */
#ifndef THALWEG_AVERAGE_H
#define THALWEG_AVERAGE_H
#include "thalweg/export.h"
#include "thalweg/scope.h"
#include "thalweg/variable.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_moving_averages {
  uint32_t size, flags;
  double decay;      /* in [0, 1) */
  tw_output updates; /* the number of updates so far, a scalar such as the global step: the decay is then min(decay, (1 + updates) / (10
                        + updates)), so that early averages forget the initial values; 0: none */
} tw_moving_averages;
/* Defaults: decay 0.999, updates 0. */
TW_EXPORT void tw_moving_averages_init(tw_moving_averages* options);

/* Adds shadows of n variables and writes their n handles to out_averages (0 after a failure). A
 * shadow starts at the initial value of its variable, in the same run of the initializer
 * (variable.h); make the initializer afterwards. Returns an operation that updates the shadows,
 * average -= (1 - decay) (average - variable). The update reads the variables after the operation
 * `after` has run.
 * after: NULL means that the update may run at any time. options: NULL means the defaults. Source:
 * TensorFlow's ExponentialMovingAverage.
 * Errors: INVALID_ARGUMENT for a variable without an initial assignment (not made by
 * tw_variable_create) or not of a real type; ALREADY_EXISTS if a variable already has an average. */
TW_EXPORT const tw_operation* tw_moving_averages_add(tw_scope* scope, const tw_output* variables, uint32_t n,
                                                     const tw_moving_averages* options, const tw_operation* after, tw_output* out_averages);
/* Returns an operation that exchanges the values of n variables with those of their averages. A
 * second run of the operation restores them. */
TW_EXPORT const tw_operation* tw_moving_averages_swap(tw_scope* scope, const tw_output* variables, const tw_output* averages, uint32_t n);

#ifdef __cplusplus
}
#endif
#endif
