/* Moving averages of variables: for each a shadow variable that follows it slowly, to evaluate and serve with. The shadow of `w` is named
 * `w/ExponentialMovingAverage`, as TensorFlow's, in the graph and in checkpoints: to restore averages into a graph that has none, map the
 * name of each variable to that of its shadow.
 * All work through a scope (scope.h), so failures are kept there. Threads: as the scope. Everything here: since 0.1.
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
  tw_output updates; /* 0: none. A scalar, the number of updates so far, such as the global step: then the decay is
                        min(decay, (1 + updates) / (10 + updates)), so that early averages forget the initial values */
} tw_moving_averages;
/* Defaults: decay 0.999, updates 0. */
TW_EXPORT void tw_moving_averages_init(tw_moving_averages* options);

/* Adds the shadows of n variables into out_averages (n handles, 0 after a failure); each starts at what its variable starts at, in the same
 * run of the initializer (variable.h), which has to be made afterwards. Answers an operation that updates them,
 * average -= (1 - decay) (average - variable), with the values that the variables have once `after` (NULL: no matter) is done.
 * options: NULL: the defaults. Source: TensorFlow's ExponentialMovingAverage.
 * Errors: INVALID_ARGUMENT for a variable without an initial assignment (one not made by tw_variable_create) or of no real type;
 * ALREADY_EXISTS where a variable has an average. */
TW_EXPORT const tw_operation* tw_moving_averages_add(tw_scope* scope, const tw_output* variables, uint32_t n,
                                                     const tw_moving_averages* options, const tw_operation* after, tw_output* out_averages);
/* An operation that exchanges the values of n variables with those of their averages; running it twice puts all back. */
TW_EXPORT const tw_operation* tw_moving_averages_swap(tw_scope* scope, const tw_output* variables, const tw_output* averages, uint32_t n);

#ifdef __cplusplus
}
#endif
#endif
