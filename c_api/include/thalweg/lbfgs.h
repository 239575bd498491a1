/* L-BFGS minimises a loss over all of its data at once. It steps along a curvature that it learns
 * from the last gradients. Use it for up to some million weights, with a loss that is the same in
 * every evaluation: no dropout, no random batches. The graph computes the loss, and the gradient as
 * one vector. The direction (two loops over the history) and the line search (strong Wolfe
 * conditions, cubic steps) run here, in double for every type of variable. Source: Liu and Nocedal,
 * 1989; Nocedal and Wright, "Numerical Optimization", algorithms 7.4, 3.5 and 3.6. Threads: one run
 * at a time. Everything here: since 0.1.
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
  uint32_t history;          /* kept pairs of steps and gradient differences, >= 1; each takes 16 bytes a weight */
  uint32_t max_evaluations;  /* evaluations of loss and gradient in one line search, >= 1 */
  double gradient_tolerance; /* the run ends when no element of the gradient is larger, >= 0 */
  double change_tolerance;   /* the run ends when a step changes the loss by no more than this times max(1, |loss|), >= 0 */
  double decrease;           /* least decrease of the loss in a step, as a part of the decrease that the slope predicts: in (0,
                                curvature) */
  double curvature;          /* largest slope after a step, as a part of the slope at its start: in (decrease, 1) */
} tw_lbfgs_options;
/* Defaults: history 10, max_evaluations 25, gradient_tolerance 1e-6, change_tolerance 1e-12, decrease 1e-4, curvature 0.9. */
TW_EXPORT void tw_lbfgs_options_init(tw_lbfgs_options* options);

/* Reasons for the end of a run. */
enum {
  TW_LBFGS_GRADIENT = 1,   /* gradient_tolerance is met */
  TW_LBFGS_CHANGE = 2,     /* change_tolerance is met */
  TW_LBFGS_ITERATIONS = 3, /* max_iterations steps were taken */
  TW_LBFGS_STUCK = 4 /* no smaller loss was found along the gradient: the precision of its type is used up, or the gradient is wrong */
};

/* Result of a run. Set `size` to sizeof(tw_lbfgs_report). */
typedef struct tw_lbfgs_report {
  uint32_t size, flags;
  uint32_t iterations;  /* steps taken */
  uint32_t evaluations; /* of loss and gradient */
  double loss;          /* at the end of the run */
  double gradient;      /* largest absolute value of its elements at the end */
  uint32_t why;         /* TW_LBFGS_... */
  uint32_t reserved;
} tw_lbfgs_report;

/* Adds operations to the graph: the gradient and the position as vectors, and an operation that
 * sets the position. loss: a real scalar. variables: n different handles, of real types and known
 * shapes. options: NULL means the defaults. The caller owns *out_lbfgs; the graph must outlive it.
 * Errors: INVALID_ARGUMENT (options out of range, not a scalar, not a variable handle, a loss that
 * depends on none of them); those of tw_gradients_add. */
TW_EXPORT tw_status* tw_lbfgs_create(tw_graph* graph, tw_output loss, const tw_output* variables, uint32_t n,
                                     const tw_lbfgs_options* options, tw_lbfgs** out_lbfgs);
TW_EXPORT void tw_lbfgs_destroy(tw_lbfgs* lbfgs); /* NULL is fine */
/* Updates the variables, which must be initialised, until a tolerance is met or max_iterations (>=
 * 1) steps are taken; blocks. feeds, values: n_feeds values of the graph and as many tensors; fed
 * to each evaluation. The object keeps the learnt curvature for the next run; call tw_lbfgs_reset
 * before a run with other data. out_report: may be NULL. Errors: FAILED_PRECONDITION if loss or
 * gradient is not finite at the start; those of tw_session_run. After a failure the variables are
 * at the best position so far, if the session can still set them. */
TW_EXPORT tw_status* tw_lbfgs_run(tw_lbfgs* lbfgs, tw_session* session, const tw_output* feeds, tw_tensor* const* values, uint32_t n_feeds,
                                  uint32_t max_iterations, tw_lbfgs_report* out_report);
/* Forgets the curvature. NULL is fine. */
TW_EXPORT void tw_lbfgs_reset(tw_lbfgs* lbfgs);

#ifdef __cplusplus
}
#endif
#endif
