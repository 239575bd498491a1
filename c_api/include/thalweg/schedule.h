/* Schedules: learning rates that change with the step, as values for the optimizers of train.h.
 * Each schedule is a formula in the graph over a step, any scalar of a real type; a step below 0
 * counts as 0. A schedule computes in double and returns a double scalar, 0 after a failure;
 * optimizers cast it. A program may also use any other scalar that it computes as a learning rate.
 * All functions work through a scope (scope.h), which keeps the failures. Threads: as the scope.
 * Everything here: since 0.1.
 *
 *     tw_output step = tw_variable_read(s, tw_global_step(s));
 *     tw_sgd sgd;
 *     tw_sgd_init(&sgd);
 *     sgd.learning_rate = tw_schedule_exponential(s, step, 0.1, 1000, 0.96, 0);
 *     train = tw_global_step_advance(s, tw_train_sgd(s, weights, gradients, 4, &sgd)); */
#ifndef THALWEG_SCHEDULE_H
#define THALWEG_SCHEDULE_H
#include "thalweg/export.h"
#include "thalweg/scope.h"
#include "thalweg/variable.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Returns the variable `global_step` of the graph, an int64 scalar that starts at 0. Creates it if
 * the graph has none; the scope's prefix is ignored.
 * Errors: ALREADY_EXISTS if another kind of operation has that name. */
TW_EXPORT tw_output tw_global_step(tw_scope* scope);
/* Returns an operation that adds 1 to the global step after `after` has run; run it as the training
 * step. after: NULL means at any time. */
TW_EXPORT const tw_operation* tw_global_step_advance(tw_scope* scope, const tw_operation* after);

/* Returns values[i] while step <= boundaries[i], for the first such i; past the last boundary
 * values[n_boundaries]. boundaries: n_boundaries, increasing. values: n_boundaries + 1. Source:
 * TensorFlow's piecewise_constant. */
TW_EXPORT tw_output tw_schedule_piecewise(tw_scope* scope, tw_output step, const double* boundaries, const double* values,
                                          uint32_t n_boundaries);
/* Returns initial factor^(step / steps); with staircase 1 the exponent is rounded down. steps: > 0.
 * factor: >= 0.
 * Source: TensorFlow's exponential_decay. */
TW_EXPORT tw_output tw_schedule_exponential(tw_scope* scope, tw_output step, double initial, double steps, double factor,
                                            uint32_t staircase);
/* (initial - end) (1 - step / steps)^power + end, and `end` after `steps`. With cycle 1, `steps` is
 * instead replaced by its next multiple that is not below the step, so that the rate rises again.
 * steps: > 0. Source: TensorFlow's polynomial_decay. */
typedef struct tw_polynomial {
  uint32_t size, flags;
  double end;
  double power; /* >= 0 */
  uint32_t cycle, reserved;
} tw_polynomial;
/* Defaults: end 0.0001, power 1, cycle 0. */
TW_EXPORT void tw_polynomial_init(tw_polynomial* options);
TW_EXPORT tw_output tw_schedule_polynomial(tw_scope* scope, tw_output step, double initial, double steps,
                                           const tw_polynomial* options); /* NULL: the defaults */
/* Returns initial ((1 - alpha) (1 + cos(pi step / steps)) / 2 + alpha), and initial alpha after
 * `steps`. steps: > 0.
 * Source: Loshchilov and Hutter, arXiv:1608.03983, as TensorFlow's cosine_decay. */
TW_EXPORT tw_output tw_schedule_cosine(tw_scope* scope, tw_output step, double initial, double steps, double alpha);
/* The same with restarts. The first period takes first_steps (> 0). Each later period is
 * length_factor times as long, and starts at height_factor times the rate. Source: as above,
 * TensorFlow's cosine_decay_restarts. */
typedef struct tw_cosine_restarts {
  uint32_t size, flags;
  double length_factor; /* >= 1 */
  double height_factor; /* >= 0 */
  double alpha;         /* rate at the end of a period, as a part of `initial` */
} tw_cosine_restarts;
/* Defaults: length_factor 2, height_factor 1, alpha 0. */
TW_EXPORT void tw_cosine_restarts_init(tw_cosine_restarts* options);
TW_EXPORT tw_output tw_schedule_cosine_restarts(tw_scope* scope, tw_output step, double initial, double first_steps,
                                                const tw_cosine_restarts* options); /* NULL: the defaults */
/* Returns `value`, a rate or the result of another schedule, times a factor that grows linearly
 * from `start` at step 0 to 1 at step `steps` (> 0). To start the other schedule after the warm-up,
 * give it the step minus `steps`. */
TW_EXPORT tw_output tw_schedule_warm_up(tw_scope* scope, tw_output step, tw_output value, double steps, double start);

#ifdef __cplusplus
}
#endif
#endif
