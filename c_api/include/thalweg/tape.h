/* Tapes: differentiation of eager calls (eager.h). A tape notes the calls that its thread makes on
 * watched values, on variables, and on outputs of noted calls. It notes no other calls. The tape
 * then runs the gradients of the noted ops. These gradients are eager calls too, so an outer tape
 * notes them: two nested tapes give second derivatives, and so on. Threads: a tape belongs to the
 * thread that made it and does not note calls of other threads. Everything here: since 0.1. */
#ifndef THALWEG_TAPE_H
#define THALWEG_TAPE_H
#include "thalweg/eager.h"
#include "thalweg/export.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_tape tw_tape;

/* Creates a tape, which notes calls from now on. The tape keeps alive the context, and the inputs and
 * outputs of noted calls. The caller owns *out_tape. */
TW_EXPORT tw_status* tw_tape_create(tw_eager* eager, tw_tape** out_tape);
/* Watches a value: the tape notes calls on it from now on. value: retained; of a floating-point or
 * complex type, or a variable's handle, although every variable is watched anyway. The tape watches
 * the tensor object, not its contents. Errors: INVALID_ARGUMENT for other types; FAILED_PRECONDITION
 * on a thread that did not make the tape. */
TW_EXPORT tw_status* tw_tape_watch(tw_tape* tape, tw_tensor* value);
/* Stops the tape: it notes no further calls and keeps those that it noted. NULL does nothing. */
TW_EXPORT void tw_tape_stop(tw_tape* tape);

/* Begins and ends a part of the program whose values tapes recompute. Between the two calls, the
 * tapes that note on this thread note as ever. At the end each of them drops the values of the part
 * that only tapes hold, and a gradient runs the calls of the part again to get them. A tape keeps
 * what came into the part, what the program still holds, and results of stateful ops (random draws,
 * reads of variables), so the recomputed values are the same. Release values that the gradient shall
 * recompute before the part ends. Parts may be nested; the end of a part ends the parts inside it.
 * *out_part: the number to give to the end. A number of no part that this thread has begun does
 * nothing. Errors: INVALID_ARGUMENT (NULL). Threads: as those of tapes: a part belongs to one. */
TW_EXPORT tw_status* tw_tape_part_begin(tw_eager* eager, uint64_t* out_part);
TW_EXPORT tw_status* tw_tape_part_end(tw_eager* eager, uint64_t part);

/* The gradient of one source. A frozen value. Each tensor is a reference that the caller owns.
 *   rows NULL:   `values` has the shape of the source.
 *   otherwise:   rows were gathered from the source and it had no other use. `values` [n, source.dims
 *                1..] are the gradients of the rows that `rows` [n] (int32 or int64) names. The
 *                gradient of a row named twice is the sum of both; that of a row not named is zero.
 *   values NULL: no target depends on the source. */
typedef struct tw_tape_result {
  tw_tensor* values;
  tw_tensor* rows;
} tw_tape_result;

/* Computes d(sum over i of targets[i] . dys[i]) / d sources[j] for every j, into out_results[j]. May
 * be called again while the tape lives.
 * targets: n_targets outputs of noted calls, of a floating-point or complex type.
 * dys: one tensor per target, with its type and shape; may be NULL, and so may entries, for ones.
 * sources: n_sources watched values, outputs of noted calls, or variable handles for the gradient
 * with respect to the variables' contents.
 * out_results: room for n_sources; all empty after a failure.
 * Errors: INVALID_ARGUMENT (types, a dy of another type or shape); FAILED_PRECONDITION if an op
 * between is not differentiable, naming the op and the reason, and on a thread that did not make the
 * tape; UNIMPLEMENTED for an op whose gradient is missing; those of tw_eager_run. */
TW_EXPORT tw_status* tw_tape_gradient(tw_tape* tape, tw_tensor* const* targets, tw_tensor* const* dys, uint32_t n_targets,
                                      tw_tensor* const* sources, uint32_t n_sources, tw_tape_result* out_results);
TW_EXPORT void tw_tape_destroy(tw_tape* tape); /* may be called while the tape notes; NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
