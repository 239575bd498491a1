/* Checkpointers: saving while training, and going on after a crash. A checkpointer keeps a folder of checkpoints `name`-`step` of one
 * session's variables (and resources that a saver takes) and the file `checkpoint` that names the latest, laid out as TensorFlow's, so that
 * either finds the other's. Several checkpointers of different names may share a folder and that file: each keeps, removes and restores its
 * own.
 *
 *     tw_checkpointer_restore(c, TW_CHECKPOINT_LATEST, &step, NULL);   NOT_FOUND: a new run, step stays
 *     while (step < enough) {
 *       ... run a training step ...
 *       tw_checkpointer_step(c, ++step, NULL, NULL);
 *     }
 *     tw_checkpointer_save(c, step, NULL);
 *
 * A crash at any point leaves the checkpoint before or the new one, whole: data are written and synced first, then named, and only then
 * are old ones removed. Threads: a checkpointer by one at a time; tw_checkpointer_report by any. All calls may block on files.
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
  /* A save takes the values, in one step, and a thread of its own writes them. Where tasks save their own (TW_SAVER_BY_TASK) there is no
   * such thread: a save is a step of the session, and the folder must mean the same to all tasks, so give it from the root on. */
  TW_CHECKPOINTER_BACKGROUND = 1,
  TW_CHECKPOINTER_SKIP = 2,             /* a step that is due while that thread still writes goes without a save; else it waits */
  TW_CHECKPOINTER_SMALLER_IS_BETTER = 4 /* of metrics, such as a loss */
};

/* Set `size` to sizeof(tw_checkpointer_options) and what is not used to 0, or use tw_checkpointer_options_init. */
typedef struct tw_checkpointer_options {
  uint32_t size, flags;      /* flags: TW_CHECKPOINTER_... */
  const char* name;          /* of the checkpoints; NULL: "model.ckpt" */
  int64_t every_steps;       /* a step is due that many after the last save; 0: not by steps */
  double every_seconds;      /* and that long after it; 0: not by time */
  uint32_t keep_last;        /* the newest; 0: all */
  uint32_t keep_best;        /* and those of the best metric */
  double keep_every_seconds; /* of those that go, one is kept for good this often; 0: none */
  uint32_t shards;           /* data files, up to 1,000; 0: one */
  uint32_t reserved;         /* 0 */
} tw_checkpointer_options;
TW_EXPORT void tw_checkpointer_options_init(tw_checkpointer_options* options); /* keep_last 5, every_seconds 600 */

/* folder: made where it is missing and the one above it is there; what crashes have left of that name is cleared away, so that one
 * checkpointer of a name at a time may work in a folder. Only checkpoints of that name that the file `checkpoint` names are ever removed.
 * saver, session: must outlive it. options: copied; NULL: as by _init. The caller owns *out_checkpointer. Errors: INVALID_ARGUMENT naming
 * the option; those of the file system. */
TW_EXPORT tw_status* tw_checkpointer_create(tw_saver* saver, tw_session* session, const char* folder,
                                            const tw_checkpointer_options* options, tw_checkpointer** out_checkpointer);
/* Waits for the thread that writes. A failure of it that no call has told goes to the log alone. NULL is fine. */
TW_EXPORT void tw_checkpointer_destroy(tw_checkpointer* checkpointer);

/* To be called after each training step: saves if one is due. metric: what the model is worth now; NULL: not known. out_saved: 1 if a save
 * was made or begun; may be NULL. In the background the caller is held only while the values are taken, which copies nothing: the next
 * update of each variable does. (Resources of plugins are saved into memory meanwhile.) Steps that run at the same time may be seen between
 * two variables. Errors: FAILED_PRECONDITION for an uninitialised variable; those of the file system. A failure of the thread that writes
 * is told by the next call, whichever it is. After a failure the checkpoints that were there are whole, training may go on, and the next
 * save is due as if this one had been made. */
TW_EXPORT tw_status* tw_checkpointer_step(tw_checkpointer* checkpointer, int64_t step, const double* metric, uint32_t* out_saved);
/* Saves, due or not; waits for the save that is being written, and saves even where it answers that save's failure. Errors: as
 * tw_checkpointer_step. */
TW_EXPORT tw_status* tw_checkpointer_save(tw_checkpointer* checkpointer, int64_t step, const double* metric);
/* Until nothing is being written. Errors: of what was. */
TW_EXPORT tw_status* tw_checkpointer_wait(tw_checkpointer* checkpointer);

enum {
  TW_CHECKPOINT_LATEST = 0, /* falls back past missing and damaged ones of that name to the newest that is whole */
  TW_CHECKPOINT_BEST = 1    /* by metric; only that one */
};
/* Sets the saver's variables, all or none, and counts steps on from there. out_step: its step; left alone on failure; may be NULL.
 * out_skipped: a line for each thing that was passed over, with the reason, which go to the log as well; may be NULL; the caller releases
 * it. Errors: NOT_FOUND if the folder has none; DATA_LOSS if it has some and none is whole; INVALID_ARGUMENT (another dtype or shape) and
 * FAILED_PRECONDITION (no tensor for a variable) for one that is whole but does not fit; those of the file system, such as no right to
 * read or too many open files, for which none is passed over. */
TW_EXPORT tw_status* tw_checkpointer_restore(tw_checkpointer* checkpointer, uint32_t which, int64_t* out_step, tw_buffer** out_skipped);

/* What saving has cost. */
typedef struct tw_checkpointer_stats {
  uint32_t size, flags;
  int64_t step;                    /* of the last save that was written; -1: none yet */
  uint64_t stall_ns;               /* for which that save held its caller */
  uint64_t write_ns;               /* for which it was written, on whichever thread */
  uint64_t bytes;                  /* of its data */
  uint64_t saves, skipped, failed; /* since the checkpointer was created */
} tw_checkpointer_stats;
/* out_stats: its size is set by the caller; what a smaller record has no room for is left out. Each save is a line in the log, too. */
TW_EXPORT tw_status* tw_checkpointer_report(const tw_checkpointer* checkpointer, tw_checkpointer_stats* out_stats);

#ifdef __cplusplus
}
#endif
#endif
