/* Tapes: differentiation of eager calls (eager.h). A tape notes the calls that its thread makes on watched values, on variables, and on
 * what was made of these; then it runs the gradients of the noted ops, which are calls too, so that a tape around it notes them: two tapes
 * give second derivatives, and so on. Nothing is noted of calls that no watched value reaches. Threads: a tape belongs to the thread that
 * made it; calls of other threads are not noted. Everything here: since 0.1. */
#ifndef THALWEG_TAPE_H
#define THALWEG_TAPE_H
#include "thalweg/eager.h"
#include "thalweg/export.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_tape tw_tape;

/* A tape that notes from now on. It keeps the context alive, and the inputs and outputs of the calls that it notes. The caller owns
 * *out_tape. */
TW_EXPORT tw_status* tw_tape_create(tw_eager* eager, tw_tape** out_tape);
/* Calls on this value are noted from now on. value: retained; of a floating-point or complex type, or a variable's handle, although
 * variables are watched anyway. A tensor is watched as the object that it is, not for what it holds. Errors: INVALID_ARGUMENT for other
 * types. */
TW_EXPORT tw_status* tw_tape_watch(tw_tape* tape, tw_tensor* value);
/* Notes nothing any more; what is noted stays. NULL does nothing. */
TW_EXPORT void tw_tape_stop(tw_tape* tape);

/* The gradient of one source. A frozen value. Each tensor is a reference that the caller owns.
 *   rows NULL:   `values` has the shape of the source.
 *   otherwise:   the source was only gathered from: `values` [n, source.dims 1..] are the gradients of the rows that `rows` [n] (int32 or
 *                int64) names; a row named twice has the sum of both; all other rows have none.
 *   values NULL: no target depends on the source. */
typedef struct tw_tape_result {
  tw_tensor* values;
  tw_tensor* rows;
} tw_tape_result;

/* Computes d(sum over i of targets[i] . dys[i]) / d sources[j] for every j, into out_results[j]. May be called again while the tape lives.
 * targets: n_targets outputs of noted calls, of a floating-point or complex type.   dys: one of the shape of each target, or NULL (then,
 * and where an entry is NULL, ones).   sources: n_sources watched values, outputs of noted calls, or variable handles for the gradient with
 * respect to their contents.   out_results: room for n_sources; all empty after a failure. Errors: INVALID_ARGUMENT (types, a dy of another
 * type or shape); FAILED_PRECONDITION naming an op on the way that is not differentiable, and why, and on a thread that did not make the
 * tape; UNIMPLEMENTED for an op whose gradient is missing; those of tw_eager_run. */
TW_EXPORT tw_status* tw_tape_gradient(tw_tape* tape, tw_tensor* const* targets, tw_tensor* const* dys, uint32_t n_targets,
                                      tw_tensor* const* sources, uint32_t n_sources, tw_tape_result* out_results);
TW_EXPORT void tw_tape_destroy(tw_tape* tape); /* also while it notes; NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
