/* L-BFGS: minimises a loss over all of its data at once, by steps along curvature that is learnt from the last gradients. For problems of
 * up to some million weights whose loss is the same in every evaluation: no dropout, no random batches. The graph computes loss and
 * gradient, as one vector; the direction (two loops over the history) and the line search (strong Wolfe conditions, cubic steps) run here,
 * in double, whatever the variables hold. Source: Liu and Nocedal, 1989; Nocedal and Wright, "Numerical Optimization", algorithms 7.4, 3.5
 * and 3.6. Threads: one run at a time. Everything here: since 0.1.
 *
 *     tw_lbfgs_report report = {.size = sizeof report};
 *     status = tw_lbfgs_create(graph, loss, weights, 4, NULL, &lbfgs);
 *     status = tw_lbfgs_run(lbfgs, session, &x, &data, 1, 100, &report);
 *     tw_lbfgs_destroy(lbfgs); */
#ifndef THALWEG_LBFGS_H
#define THALWEG_LBFGS_H
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/session.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_lbfgs tw_lbfgs;

typedef struct tw_lbfgs_options {
  uint32_t size, flags;
  uint32_t history;          /* pairs of steps and gradient differences that are kept, >= 1; each takes 16 bytes a weight */
  uint32_t max_evaluations;  /* of loss and gradient in one line search, >= 1 */
  double gradient_tolerance; /* done when no element of the gradient is larger, >= 0 */
  double change_tolerance;   /* done when a step changes the loss by no more than this times max(1, |loss|), >= 0 */
  double decrease;           /* of the loss that a step must bring, as a part of what the slope promises: in (0, curvature) */
  double curvature;          /* the slope that a step may leave, as a part of that at its start: in (decrease, 1) */
} tw_lbfgs_options;
/* Defaults: history 10, max_evaluations 25, gradient_tolerance 1e-6, change_tolerance 1e-12, decrease 1e-4, curvature 0.9. */
TW_EXPORT void tw_lbfgs_options_init(tw_lbfgs_options* options);

/* Why a run ended. */
enum {
  TW_LBFGS_GRADIENT = 1,   /* the gradient is small enough */
  TW_LBFGS_CHANGE = 2,     /* the loss hardly changes any more */
  TW_LBFGS_ITERATIONS = 3, /* max_iterations */
  TW_LBFGS_STUCK = 4 /* no smaller loss was found along the gradient: the precision of its type is used up, or the gradient is wrong */
};

/* What a run did. Set `size` to sizeof(tw_lbfgs_report). */
typedef struct tw_lbfgs_report {
  uint32_t size, flags;
  uint32_t iterations;  /* steps taken */
  uint32_t evaluations; /* of loss and gradient */
  double loss;          /* at the end */
  double gradient;      /* its largest element there, without sign */
  uint32_t why;         /* TW_LBFGS_... */
  uint32_t reserved;
} tw_lbfgs_report;

/* Adds what it needs to the graph: the gradient and the position as vectors, and an operation that sets the position. loss: a real scalar.
 * variables: n different handles, of real types and known shapes. options: NULL: the defaults. The graph must outlive the object, which the
 * caller owns. Errors: INVALID_ARGUMENT (options out of range, no scalar, no variable handle, a loss that depends on none of them); those
 * of tw_gradients_add. */
TW_EXPORT tw_status* tw_lbfgs_create(tw_graph* graph, tw_output loss, const tw_output* variables, uint32_t n,
                                     const tw_lbfgs_options* options, tw_lbfgs** out_lbfgs);
TW_EXPORT void tw_lbfgs_destroy(tw_lbfgs* lbfgs); /* NULL is fine */
/* Moves the variables, which must be initialised, until the tolerances are met or max_iterations (>= 1) steps are taken; blocks. feeds:
 * what the loss needs, fed to each evaluation: n_feeds values and as many tensors. What was learnt about the curvature is kept for the next
 * run; call tw_lbfgs_reset where that has other data. out_report: may be NULL. Errors: FAILED_PRECONDITION if loss or gradient is not
 * finite at the start; those of tw_session_run. After a failure the variables are at the best position so far, if the session can still set
 * them. */
TW_EXPORT tw_status* tw_lbfgs_run(tw_lbfgs* lbfgs, tw_session* session, const tw_output* feeds, tw_tensor* const* values, uint32_t n_feeds,
                                  uint32_t max_iterations, tw_lbfgs_report* out_report);
/* Forgets the curvature. NULL is fine. */
TW_EXPORT void tw_lbfgs_reset(tw_lbfgs* lbfgs);

#ifdef __cplusplus
}
#endif
#endif
