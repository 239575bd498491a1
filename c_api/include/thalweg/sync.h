/* Synchronous training: replicas of a model, in as many processes, compute gradients of batches of their own from the same variables, and
 * one update applies the mean. Each client builds the same graph and says which replica it is; what they share lies in accumulators beside
 * the variables and in a state that one task keeps, by name.
 *
 *     tw_scope_gradients(s, loss, weights, 4, gradients);
 *     tw_sync_options options;
 *     tw_sync_options_init(&options);
 *     options.replicas = 2;  options.replica = worker;  options.device = "/job:ps/task:0";
 *     tw_sync* sync = tw_sync_begin(s, &options, weights, gradients, 4);
 *     tw_scope_set_device(s, "/job:ps/task:0");
 *     tw_sync_end(s, sync, tw_train_sgd(s, weights, gradients, 4, NULL), &ops);
 *
 * A ticket is a vector of two int64: a stamp, which grows with every update and belongs to no other, and the number of the training step.
 *  - One client, the chief, begins the variables and runs `reset`, fed with a ticket: a stamp above all that were, such as the time
 *    in nanoseconds, and the step, 0 or where a checkpoint was made. Then it runs `update` once for each step, which waits for gradients.
 *  - Each replica fetches `current`, its first ticket, and then, again and again, `next`, fed with the ticket that it has: that
 *    computes the gradients of its batch and gives them, waits for the update, and answers the ticket of the next step. When that fails
 *    it fetches `current` again and goes on with what that answers, which may be the same ticket: gradients that are given twice count
 *    once. It has one of these runs on its way at a time. What else such a run computes, its loss say, is that of the ticket's step only
 *    if `consistent` says so: whose gradients were in already, by a run that failed or whose program died, may read what the update of
 *    them changes meanwhile, and so may a backup replica that comes too late.
 * No variable changes before all gradients of a step are there, and they are added in the order of the replicas: as long as all are
 * required, the bits of the variables do not depend on how fast anybody is. With backup replicas (required < replicas) the first so many
 * count, each with all of its gradients or none, and whoever comes later, or with a ticket of an earlier step, is dropped and counted.
 * After the loss of a variable, or of an update on its way, restore a checkpoint and run `reset` with a new stamp: what was given before
 * is then of no use to anybody, and who waits for the update is told the new ticket.
 * Source: Chen et al., arXiv:1604.00981. Unlike in TensorFlow's SyncReplicasOptimizer it is the same replicas whose gradients make the
 * update of every variable, and each waits for a token of its own.
 *
 * Works through a scope (scope.h), so failures are kept there. Threads: as the scope. Everything here: since 0.1. */
#ifndef THALWEG_SYNC_H
#define THALWEG_SYNC_H
#include "thalweg/export.h"
#include "thalweg/gradients.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_sync tw_sync; /* what was begun and not yet ended */

/* Set `size` to sizeof(tw_sync_options) and what is not used to 0, or use tw_sync_options_init. */
typedef struct tw_sync_options {
  uint32_t size, flags;
  const char* name;   /* of what is shared: graphs of one name, on the same tasks and in one container, train together; NULL: "sync" */
  const char* device; /* the task that keeps the state, "/job:ps/task:0"; NULL: anywhere, in a session of one process */
  uint32_t replicas;  /* 1 to 4,096 */
  uint32_t required;  /* how many make an update; 0: all */
  uint32_t replica;   /* whose gradients the graph computes, from 0 on */
  uint32_t reserved;
} tw_sync_options;
/* Defaults: 1 replica. NULL is fine. */
TW_EXPORT void tw_sync_options_init(tw_sync_options* options);

/* Values to feed and fetch, and operations to run. */
typedef struct tw_sync_ops {
  uint32_t size, flags;
  tw_output ticket;           /* int64 [2], fed to next and reset */
  tw_output current;          /* int64 [2]: the ticket of now, to begin with; FAILED_PRECONDITION before the first reset */
  tw_output next;             /* int64 [2]: gives the gradients, waits, the ticket of what comes then */
  tw_output dropped;          /* int64: gradients that came too late, since the reset */
  const tw_operation* update; /* waits for the gradients of a step and applies them; runs on tasks of variables and state alone */
  const tw_operation* reset;  /* forgets all gradients and begins with the ticket */
  tw_output consistent;       /* bool, of a run of next: no variable can have changed before its gradients were given */
} tw_sync_ops;

/* Replaces the n entries of `gradients` (those with values 0 are left alone) by the means that an update applies. The variables' shapes are
 * known; gradients are half, bfloat16, float or double; sparse ones stay sparse. options: NULL: the defaults. The caller owns the answer
 * until it is ended; NULL after a failure. Errors: INVALID_ARGUMENT for options out of range, no gradients, another type, an unknown shape.
 */
TW_EXPORT tw_sync* tw_sync_begin(tw_scope* scope, const tw_sync_options* options, const tw_output* variables, tw_gradient* gradients,
                                 uint32_t n);
/* apply: what an optimizer answered for the new gradients, made with the state's device set, so that no replica's task is needed for it.
 * sync: taken. out_ops: set `size` before; zeros after a failure. */
TW_EXPORT void tw_sync_end(tw_scope* scope, tw_sync* sync, const tw_operation* apply, tw_sync_ops* out_ops);
TW_EXPORT void tw_sync_destroy(tw_sync* sync); /* gives it up; NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
