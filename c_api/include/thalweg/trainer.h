/* Trainers run the training loop: epochs over the batches of an iterator (iterator.h), metrics (metric.h), validation, early stopping, the
 * best weights, checkpoints from which an interrupted training goes on, gradient accumulation, callbacks. A trainer runs what the program
 * has built; clipping (clip.h), schedules (schedule.h), groups of variables with optimizers of their own (train.h: one call for each group,
 * then tw_scope_group) and moving averages (average.h) are operations of the graph and need nothing of the loop but its step.
 *
 * A trainer adds a few operations and the variables `trainer/state`, `trainer/sums` and `trainer/position` to the graph, which hold the
 * place of the loop in checkpoints. Threads: one at a time uses a trainer; callbacks run on the thread that called. Everything here:
 * since 0.1.
 *
 *     tw_trainer_model model;
 *     tw_trainer_model_init(&model);
 *     model.graph = graph, model.session = session, model.feeds = feeds, model.n_feeds = 2, model.loss = loss, model.step = train;
 *     status = tw_trainer_create(&model, &trainer);
 *     tw_fit_options options;
 *     tw_fit_options_init(&options);
 *     options.epochs = 20, options.folder = "run";
 *     if (!status) status = tw_trainer_fit(trainer, batches, &options, NULL); */
#ifndef THALWEG_TRAINER_H
#define THALWEG_TRAINER_H
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/iterator.h"
#include "thalweg/metric.h"
#include "thalweg/session.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_trainer tw_trainer;

/* The model that a trainer trains. Set `size` to sizeof(tw_trainer_model) and unused fields to 0, or use tw_trainer_model_init. Lists are
 * copied. */
typedef struct tw_trainer_model {
  uint32_t size, flags;
  tw_graph* graph;          /* holds everything below; must outlive the trainer */
  tw_session* session;      /* of that graph; must outlive the trainer */
  const tw_output* feeds;   /* tensor i of a batch is fed to feeds[i] */
  uint32_t n_feeds;         /* above 0 */
  uint32_t n_inputs;        /* predictions need only the first n_inputs of them; 0: all */
  tw_output training;       /* a bool scalar: fed 1 in training steps, 0 otherwise; 0: none */
  tw_output loss;           /* the mean loss of a batch, a real scalar; 0: the trainer only predicts */
  const tw_operation* step; /* one update of the variables; NULL: the trainer does not fit */
  /* The operation that tw_accumulate_gradients returned; NULL: none. A step is then sub_batches batches, each of which runs `accumulate`,
   * and one run of `step`, which may need no feed. Batches are counted across epochs. Those that are left over when training ends are
   * part of no step, unless a further call of tw_trainer_fit goes on. */
  const tw_operation* accumulate;
  uint32_t sub_batches;
  uint32_t n_metrics;
  const tw_metric* metrics;        /* each of a scalar value */
  const char* const* metric_names; /* n_metrics different texts, none of them "loss" */
  const tw_output* predictions;    /* n_predictions values with one row for each row of the batch */
  const tw_output* weights;        /* the variables that TW_FIT_KEEP_BEST keeps, n_weights of them; 0: all of the graph that hold real
                                      numbers when the trainer is made */
  uint32_t n_predictions, n_weights;
  const tw_operation* swap; /* the operation that tw_moving_averages_swap returned: evaluations and the best weights are those of the
                               averages; NULL: none */
} tw_trainer_model;
TW_EXPORT void tw_trainer_model_init(tw_trainer_model* model); /* all 0. NULL is fine */

/* Makes a trainer and adds its operations to the graph. The variables of the model may be uninitialised still. The caller owns
 * *out_trainer. Errors: INVALID_ARGUMENT naming the field. */
TW_EXPORT tw_status* tw_trainer_create(const tw_trainer_model* model, tw_trainer** out_trainer);
TW_EXPORT void tw_trainer_destroy(tw_trainer* trainer); /* the operations stay; NULL is fine */

/* How many values training and evaluation give: the loss, then each metric; and the name of value i: "loss", or that of a metric. The text
 * lives as long as the trainer; NULL past the end. */
TW_EXPORT uint32_t tw_trainer_value_count(const tw_trainer* trainer);
TW_EXPORT const char* tw_trainer_value_name(const tw_trainer* trainer, uint32_t i);

/* ---- Training ---- */

/* The place of a loop, for callbacks. Pointers live for the call. */
typedef struct tw_fit_progress {
  uint32_t size, flags;
  int64_t epoch;            /* counted from 0 */
  int64_t epochs;           /* the epoch at which the call ends unless it stops earlier */
  int64_t step;             /* updates so far, those of earlier calls and of a resumed training included */
  int64_t batch;            /* batches of the epoch so far */
  int64_t n_batches;        /* of an epoch; -1: unknown */
  const char* const* names; /* n_values names */
  const double* values;     /* after a step only the loss of its batch; at the end of an epoch the loss over its batches, each by its rows,
                               and the metrics; NULL before a step */
  const double* validation; /* at the end of an epoch with validation data; else NULL */
  uint32_t n_values;        /* in values and validation; 0 before a step, 1 after a step */
  uint32_t improved;        /* at the end of an epoch: 1 if the watched value is the best so far */
  double seconds;           /* since the call began */
} tw_fit_progress;

/* Functions that a loop calls. Set `size` to sizeof(tw_fit_callback) and unused functions to NULL. A failure ends the loop, which returns
 * it. *out_stop: 0 before the call; 1 ends the training after this step, or epoch, as if it were the last. The functions may run steps of
 * the session; only epoch_end may evaluate or predict with the trainer. */
typedef struct tw_fit_callback {
  uint32_t size, flags;
  void* user;
  tw_status* (*before_step)(void* user, const tw_fit_progress* at); /* before a batch is read */
  tw_status* (*after_step)(void* user, const tw_fit_progress* at, uint32_t* out_stop);
  tw_status* (*epoch_end)(void* user, const tw_fit_progress* at, uint32_t* out_stop);
} tw_fit_callback;

/* Flags of tw_fit_options. */
enum {
  TW_FIT_KEEP_BEST = 1,        /* at the end the weights become those of the epoch with the best watched value */
  TW_FIT_LARGER_IS_BETTER = 2, /* for a watched value such as an accuracy */
  TW_FIT_PROGRESS = 4,         /* a line for each epoch on standard error */
  TW_FIT_TERMINAL = 8,         /* the same, with a line that shows the running epoch, but only if standard error is a terminal */
  TW_FIT_ANY_LOSS = 16,        /* a loss that is not finite is no failure */
  TW_FIT_BACKGROUND = 32       /* checkpoints are written by a thread, as with TW_CHECKPOINTER_BACKGROUND */
};

/* Set `size` to sizeof(tw_fit_options) and unused fields to 0, or use tw_fit_options_init. */
typedef struct tw_fit_options {
  uint32_t size, flags;    /* flags: TW_FIT_... */
  int64_t epochs;          /* with a folder: the number of epochs after which the training of that folder is complete, over all processes;
                              else the number of epochs of this call; at least 0 */
  tw_iterator* validation; /* evaluated at the end of each epoch; borrowed; NULL: none */
  /* The watched value, by its name: of the validation, or, without validation, of training. NULL: the loss. It is looked at only with
   * patience or TW_FIT_KEEP_BEST. */
  const char* watch;
  int64_t patience;     /* training stops after so many epochs one after the other without a new best value; 0: never */
  double least_change;  /* a value is a new best one only if it is better by more than this; at least 0 */
  const char* folder;   /* for checkpoints, as checkpointer.h describes it; NULL: none */
  int64_t every_steps;  /* a checkpoint after so many steps */
  double every_seconds; /* a checkpoint after so many seconds; both 0: at the end of each epoch. There is one at the end, too */
  uint32_t keep_last;   /* how many of the newest checkpoints are kept; 0: all */
  uint32_t n_callbacks;
  const tw_fit_callback* callbacks; /* called in this order */
  tw_cancel_token* cancel;          /* ends the loop with CANCELLED; NULL: none */
  /* A folder for summaries (summary.h), which TensorBoard and `thalweg plot` draw; NULL: none. It gets the runs `train`, with the graph,
   * `step/loss` for the batch of a step, and `epoch/` and the name of each value; and, with validation data, `validation`, with the latter.
   * The x-axis is the step. A training that goes on may use the folder again. */
  const char* logdir;
  int64_t log_every_steps; /* steps between two of `step/loss`; 0: each step has one */
} tw_fit_options;
TW_EXPORT void tw_fit_options_init(tw_fit_options* options); /* epochs 1, keep_last 2. NULL is fine */

/* Why a training ended. */
enum {
  TW_FIT_COMPLETE = 1, /* all epochs are done */
  TW_FIT_PATIENCE = 2, /* no new best value for `patience` epochs */
  TW_FIT_STOPPED = 3   /* a callback asked for it */
};

/* The result of a call of tw_trainer_fit. Set `size` to sizeof(tw_fit_report) before the call. */
typedef struct tw_fit_report {
  uint32_t size, flags;
  int64_t epochs, steps; /* so far, those of earlier calls and of a resumed training included */
  int64_t resumed_at;    /* the step from which a checkpoint of the folder went on; -1: it did not */
  int64_t best_epoch;    /* with the best watched value; -1: none was looked at */
  double best;           /* that value; NaN: none */
  uint32_t why;          /* TW_FIT_... */
  uint32_t reserved;
} tw_fit_report;

/* Trains until all epochs are done, patience ends it or a callback stops it. data: gives n_feeds tensors; it is reset to each epoch, if it
 * can be. options: NULL: the defaults. out_report: may be NULL.
 *
 * With a folder, the first call of a trainer goes on from the latest whole checkpoint of the folder, if there is one: variables, metrics,
 * step, epoch and the position of the data are what they were, so that further losses have the same bits as without an interruption, if
 * the operations of the step give equal bits for equal inputs (operations that draw from a stream of random numbers, as RandomUniform
 * does, begin their stream again). A training that was complete, or stopped by patience, is not continued. A checkpoint is made between two
 * steps only. Checkpoints are named `fit`-`step`, the best weights `best`; give each training a folder of its own.
 *
 * Errors: INVALID_ARGUMENT naming the option, also for data of another number of tensors; FAILED_PRECONDITION for uninitialised
 * variables, and for a loss that is not finite, naming step and epoch; those of the step, the data, the callbacks, the file system;
 * CANCELLED. After a failure the variables have the values of the last finished step. */
TW_EXPORT tw_status* tw_trainer_fit(tw_trainer* trainer, tw_iterator* data, const tw_fit_options* options, tw_fit_report* out_report);

/* ---- Without training ---- */

/* Computes the loss, the mean over all batches, each by its rows, and the metrics over one epoch of `data`, which is reset to epoch 0 if
 * it can be. out_values: room for tw_trainer_value_count numbers; NaN without any batch, and after a failure. cancel: NULL: none.
 * Errors: as tw_trainer_fit. */
TW_EXPORT tw_status* tw_trainer_evaluate(tw_trainer* trainer, tw_iterator* data, tw_cancel_token* cancel, double* out_values);
/* Computes the predictions for one epoch of `data`, which is reset to epoch 0 if it can be and gives at least n_inputs tensors, of which
 * further ones are not used. out_predictions: room for n_predictions tensors, each with the rows of all batches one after the other; the
 * caller owns them; NULL after a failure. cancel: NULL: none. Errors: as tw_trainer_fit; FAILED_PRECONDITION for data without any batch;
 * INVALID_ARGUMENT if batches differ in another size than their rows. */
TW_EXPORT tw_status* tw_trainer_predict(tw_trainer* trainer, tw_iterator* data, tw_cancel_token* cancel, tw_tensor** out_predictions);

#ifdef __cplusplus
}
#endif
#endif
