/* Synchronous training: replicas of a model, each in a process of its own, compute gradients of
 * their own batches from the same variables, and one update applies the mean. Each client builds
 * the same graph and states its replica number. The clients share, by name, accumulators beside the
 * variables and a state that one task keeps.
 *
 *     tw_scope_gradients(s, loss, weights, 4, gradients);
 *     tw_sync_options options;
 *     tw_sync_options_init(&options);
 *     options.replicas = 2;  options.replica = worker;  options.device = "/job:ps/task:0";
 *     tw_sync* sync = tw_sync_begin(s, &options, weights, gradients, 4);
 *     tw_scope_set_device(s, "/job:ps/task:0");
 *     tw_sync_end(s, sync, tw_train_sgd(s, weights, gradients, 4, NULL), &ops);
 *
 * A ticket is a vector of two int64: a stamp, which is unique and grows with every update, and the
 * number of the training step.
 *  - One client, the chief, initializes the variables and runs `reset`, fed with a ticket. Its
 *    stamp must be above all earlier ones, such as the time in nanoseconds; its step is 0 or the
 *    step of the checkpoint. The chief then runs `update` once for each step; update waits for
 *    gradients.
 *  - Each replica fetches `current`, its first ticket. Then it runs `next` repeatedly, fed with its
 *    ticket. next computes and submits the gradients of its batch, waits for the update, and
 *    returns the ticket of the next step. If next fails, the replica fetches `current` again and
 *    goes on with that ticket, which may be the same one: gradients that are submitted twice count
 *    once. A replica runs one next at a time. Other values that such a run computes, its loss say,
 *    belong to the ticket's step only if `consistent` is true. If the gradients were in already,
 *    from a run that failed or whose program died, or if a backup replica is late, the run may read
 *    variables while the update changes them.
 * No variable changes before all gradients of a step have arrived, and they are added in the order
 * of the replicas. If all replicas are required, the bits of the variables therefore do not depend
 * on timing. With backup replicas (required < replicas) the first `required` replicas count, each
 * with all of its gradients or none. Gradients that come later, or with a ticket of an earlier
 * step, are dropped and counted.
 * After the loss of a variable, or of an update in progress, restore a checkpoint and run `reset`
 * with a new stamp. Gradients from before are then ignored, and replicas that wait for the update
 * receive the new ticket.
 * Source: Chen et al., arXiv:1604.00981. Unlike TensorFlow's SyncReplicasOptimizer, the gradients
 * of the same replicas update every variable, and each replica waits for its own token.
 *
 * Works through a scope (scope.h), which keeps the failures. Threads: as the scope.
 * Everything here: since 0.1. */
#ifndef THALWEG_SYNC_H
#define THALWEG_SYNC_H
#include "thalweg/export.h"
#include "thalweg/gradients.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_sync tw_sync; /* begun and not yet ended */

/* Set `size` to sizeof(tw_sync_options) and unused fields to 0, or use tw_sync_options_init. */
typedef struct tw_sync_options {
  uint32_t size, flags;
  const char* name;   /* of the shared state: graphs with the same name, on the same tasks and in one container, train together; NULL:
                         "sync" */
  const char* device; /* the task that keeps the state, "/job:ps/task:0"; NULL: anywhere, in a session of one process */
  uint32_t replicas;  /* 1 to 4,096 */
  uint32_t required;  /* number of replicas that make an update; 0: all */
  uint32_t replica;   /* the replica of this graph, from 0 on */
  uint32_t reserved;
} tw_sync_options;
/* Defaults: 1 replica. NULL is fine. */
TW_EXPORT void tw_sync_options_init(tw_sync_options* options);

/* Values to feed and fetch, and operations to run. */
typedef struct tw_sync_ops {
  uint32_t size, flags;
  tw_output ticket;           /* int64 [2], fed to next and reset */
  tw_output current;          /* int64 [2]: the current ticket, to start with; FAILED_PRECONDITION before the first reset */
  tw_output next;             /* int64 [2]: submits the gradients, waits for the update, returns the next ticket */
  tw_output dropped;          /* int64: gradients that came too late since the reset */
  const tw_operation* update; /* waits for the gradients of a step and applies them; runs only on tasks of variables and state */
  const tw_operation* reset;  /* discards all gradients and starts with the ticket */
  tw_output consistent;       /* bool, of a run of next: true if no variable can have changed before its gradients were submitted */
} tw_sync_ops;

/* Replaces the n entries of `gradients` by the means that an update applies; entries whose `values`
 * is 0 stay. The shapes of the variables must be known; gradients are half, bfloat16, float or
 * double; sparse ones stay sparse. options: NULL means the defaults. The caller owns the result
 * until tw_sync_end or tw_sync_destroy; NULL after a failure. Errors: INVALID_ARGUMENT for options
 * out of range, no gradients, another type, an unknown shape. */
TW_EXPORT tw_sync* tw_sync_begin(tw_scope* scope, const tw_sync_options* options, const tw_output* variables, tw_gradient* gradients,
                                 uint32_t n);
/* Ends the description. apply: the optimizer's operation for the new gradients, made while the
 * state's device is set, so that it needs no replica's task. sync: taken. out_ops: set `size`
 * before; zeros after a failure. */
TW_EXPORT void tw_sync_end(tw_scope* scope, tw_sync* sync, const tw_operation* apply, tw_sync_ops* out_ops);
TW_EXPORT void tw_sync_destroy(tw_sync* sync); /* discards it; NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
