/* Checkpointers save during training and restore after a crash. A checkpointer keeps a folder with
 * checkpoints `name`-`step` of one session's variables (and of the resources that a saver saves),
 * and the file `checkpoint` that names the latest one. The layout is TensorFlow's, so either
 * program finds the other's checkpoints. Several checkpointers of different names may share a
 * folder and that file; each keeps, removes and restores only checkpoints of its own name.
 *
 *     tw_checkpointer_restore(c, TW_CHECKPOINT_LATEST, &step, NULL);   NOT_FOUND: a new run, step stays
 *     while (step < enough) {
 *       ... run a training step ...
 *       tw_checkpointer_step(c, ++step, NULL, NULL);
 *     }
 *     tw_checkpointer_save(c, step, NULL);
 *
 * A crash at any point leaves the previous checkpoint or the new one complete: data are written and
 * synced first, then named, and only then are old checkpoints removed. Threads: one at a time uses
 * a checkpointer; any may call tw_checkpointer_report. All calls may block on files.
 * Everything here: since 0.1. */
#ifndef THALWEG_CHECKPOINTER_H
#define THALWEG_CHECKPOINTER_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/saver.h"
#include "thalweg/session.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_checkpointer tw_checkpointer;

/* Flags of tw_checkpointer_options. */
enum {
  /* A save reads the values in one step, and a writer thread of the checkpointer writes them. If
   * tasks save their own variables (TW_SAVER_BY_TASK), a save is a step of the session: each task
   * reads its values and writes them, while the thread waits for the end. The folder must mean the
   * same to all tasks, so give an absolute path. */
  TW_CHECKPOINTER_BACKGROUND = 1,
  TW_CHECKPOINTER_SKIP = 2,             /* a step that is due while the writer thread is busy makes no save; else it waits */
  TW_CHECKPOINTER_SMALLER_IS_BETTER = 4 /* for metrics such as a loss */
};

/* Set `size` to sizeof(tw_checkpointer_options) and unused fields to 0, or use
 * tw_checkpointer_options_init. */
typedef struct tw_checkpointer_options {
  uint32_t size, flags;      /* flags: TW_CHECKPOINTER_... */
  const char* name;          /* first part of the checkpoints' names; NULL: "model.ckpt" */
  int64_t every_steps;       /* a save is due this many steps after the last one; 0: not by steps */
  double every_seconds;      /* a save is due this many seconds after the last one; 0: not by time */
  uint32_t keep_last;        /* how many of the newest are kept; 0: all */
  uint32_t keep_best;        /* how many of those with the best metric are kept, too */
  double keep_every_seconds; /* of those to be removed, one is kept for good per this many seconds; 0: none */
  uint32_t shards;           /* data files of a checkpoint, up to 1,000; 0: one */
  uint32_t reserved;         /* 0 */
} tw_checkpointer_options;
TW_EXPORT void tw_checkpointer_options_init(tw_checkpointer_options* options); /* keep_last 5, every_seconds 600 */

/* Makes a checkpointer. folder: created if it is missing and its parent exists. Files of this name
 * that a crash left behind are removed, so only one checkpointer of a name at a time may use the
 * folder. Only checkpoints of this name that the file `checkpoint` lists are ever removed.
 * saver, session: must outlive the checkpointer. options: copied; NULL means the defaults of _init.
 * The caller owns *out_checkpointer. Errors: INVALID_ARGUMENT naming the option; those of the file
 * system. */
TW_EXPORT tw_status* tw_checkpointer_create(tw_saver* saver, tw_session* session, const char* folder,
                                            const tw_checkpointer_options* options, tw_checkpointer** out_checkpointer);
/* Waits for the writer thread. A failure of that thread which no call has returned yet goes only to
 * the log. NULL is fine. */
TW_EXPORT void tw_checkpointer_destroy(tw_checkpointer* checkpointer);

/* Call it after each training step: saves if a save is due. metric: the quality of the model at
 * this step; NULL if unknown. out_saved: 1 if a save was made or started; may be NULL. With
 * TW_CHECKPOINTER_BACKGROUND the call blocks only while the values are read. Reading copies
 * nothing; the next update of each variable makes the copy. (Resources of plugins are saved into
 * memory meanwhile.) A step that runs at the same time may be seen half done: some variables
 * updated, others not. Errors: FAILED_PRECONDITION for an uninitialised variable; those of the file
 * system. The next call of any kind returns a failure of the writer thread. After a failure the
 * older checkpoints are complete, training may go on, and the next save is due as if this one had
 * been made. */
TW_EXPORT tw_status* tw_checkpointer_step(tw_checkpointer* checkpointer, int64_t step, const double* metric, uint32_t* out_saved);
/* Saves whether or not a save is due. Waits for the save in progress; if that one failed, the call
 * still saves and returns that failure. Errors: as tw_checkpointer_step. */
TW_EXPORT tw_status* tw_checkpointer_save(tw_checkpointer* checkpointer, int64_t step, const double* metric);
/* Blocks until no save is in progress. Errors: those of the save that was in progress. */
TW_EXPORT tw_status* tw_checkpointer_wait(tw_checkpointer* checkpointer);

enum {
  TW_CHECKPOINT_LATEST = 0, /* skips missing and damaged ones of that name; takes the newest complete one */
  TW_CHECKPOINT_BEST = 1    /* by metric; no fallback to another */
};
/* Restores the saver's variables, all or none, and counts steps on from the checkpoint's step.
 * out_step: the checkpoint's step; unchanged on failure; may be NULL. out_skipped: a line with the
 * reason for each checkpoint that was skipped, as in the log; may be NULL; the caller releases it.
 * Errors: NOT_FOUND if the folder has none; DATA_LOSS if it has some and none is complete;
 * INVALID_ARGUMENT (another dtype or shape) and FAILED_PRECONDITION (no tensor for a variable) for
 * one that is complete but does not fit; those of the file system, such as missing read permission
 * or too many open files, for which no checkpoint is skipped. */
TW_EXPORT tw_status* tw_checkpointer_restore(tw_checkpointer* checkpointer, uint32_t which, int64_t* out_step, tw_buffer** out_skipped);

/* Cost of the saves so far. */
typedef struct tw_checkpointer_stats {
  uint32_t size, flags;
  int64_t step;                    /* of the last save that was written; -1: none yet */
  uint64_t stall_ns;               /* nanoseconds for which the last save blocked its caller */
  uint64_t write_ns;               /* nanoseconds for which it was written, on either thread */
  uint64_t bytes;                  /* bytes of its data */
  uint64_t saves, skipped, failed; /* since the checkpointer was created */
} tw_checkpointer_stats;
/* Fills *out_stats. out_stats: the caller sets its `size`; fields that the size does not reach are
 * left out. Each save also writes a line to the log. */
TW_EXPORT tw_status* tw_checkpointer_report(const tw_checkpointer* checkpointer, tw_checkpointer_stats* out_stats);

#ifdef __cplusplus
}
#endif
#endif
