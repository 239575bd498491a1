/* Savers: the variables of a session, and the resources of plugins that save them, to a checkpoint and back. A saver adds operations to the
 * graph once and runs them on demand.
 * The files are those of checkpoint.h; each variable is stored under the name of its operation, unless rules say otherwise. checkpointer.h
 * saves during training. Threads: a saver by one at a time. Everything here: since 0.1. */
#ifndef THALWEG_SAVER_H
#define THALWEG_SAVER_H
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/session.h"
#include "thalweg/sharded.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_saver tw_saver;

/* Flags of tw_saver_options. */
enum {
  TW_SAVER_UNUSED_RULES = 1, /* exact rules that are for none of the variables are fine; else they are an error */
  /* Each task saves and restores its own, all at once: parts of a save lie beside the checkpoint, `prefix`.part0of2, until they have become
   * one, whose index is published last. All tasks see the same files, and allow them (option allow_files of servers). */
  TW_SAVER_BY_TASK = 2
};

/* How variables are called in files, and into how many files they go. Set `size` to sizeof(tw_saver_options) and what is not used to 0.
 * Rule i says that variable `variables[i]` is called `names[i]`; where both end in `*`, that every variable whose name begins with the one
 * has the other instead of that beginning. An exact rule goes before all others, a longer beginning before a shorter one; a variable that
 * no rule is for has its own name. */
typedef struct tw_saver_options {
  uint32_t size, flags;         /* flags: TW_SAVER_... */
  const char* const* variables; /* n_names texts */
  const char* const* names;     /* n_names texts */
  uint32_t n_names;
  uint32_t shards; /* data files of a save, up to 1,000; 0: one, or one for each task */
  /* Tables in shards (sharded.h) among the variables; since the record's second version. In files shard k of table `table_names[i]` is
   * `table_names[i]`/part_k, whatever the rules say, and a table is restored from however many shards it was saved in, by the same
   * partition. Other numbers of shards are read by this program, so it must see the files, too. */
  const char* const* table_names; /* n_tables texts */
  const tw_sharded* tables;       /* n_tables records */
  uint32_t n_tables, reserved;
} tw_saver_options;

/* Adds the operations that save and restore `variables` (n handles; n 0: all of the graph so far, slots of optimizers included, and every
 * resource that tw_operation_resource says can be saved). Below, `variable` means either: a resource is called `name`:resource in files,
 * a vector of three strings, its type, its format in decimal and what its plugin wrote; whoever else reads the file finds just that. The
 * operations are named as TensorFlow's savers name theirs: feed `save/Const` with the prefix, then run `save/control_dependency` or
 * `save/restore_all`. A graph that has these already (an imported one, or a second saver) gets another set, `save_1/...`.
 * The graph must outlive the saver. The caller owns *out_saver.
 * Errors: INVALID_ARGUMENT (a value that is no such handle); UNIMPLEMENTED (a resource that cannot be saved); FAILED_PRECONDITION (nothing
 * to save). */
TW_EXPORT tw_status* tw_saver_create(tw_graph* graph, const tw_output* variables, uint32_t n, tw_saver** out_saver);
/* The same with options; NULL: none. The record and its texts are copied. Errors, too: INVALID_ARGUMENT naming the rule that has a `*`
 * inside or on one side only or repeats another, the exact rule that is for none of the variables (with the closest name), the variable
 * that would have no name, or the two that would have one. */
TW_EXPORT tw_status* tw_saver_create_with(tw_graph* graph, const tw_output* variables, uint32_t n, const tw_saver_options* options,
                                          tw_saver** out_saver);
TW_EXPORT void tw_saver_destroy(tw_saver* saver);          /* the operations stay; NULL is fine */
TW_EXPORT tw_graph* tw_saver_graph(const tw_saver* saver); /* borrowed; NULL for NULL */
TW_EXPORT uint32_t tw_saver_count(const tw_saver* saver);  /* variables */
/* Name of variable i, and what it is called in files; live as long as the saver; NULL past the end. */
TW_EXPORT const char* tw_saver_variable(const tw_saver* saver, uint32_t i);
TW_EXPORT const char* tw_saver_name(const tw_saver* saver, uint32_t i);

/* Writes every variable as it is now; makes the folder as tw_checkpoint_write. Errors: FAILED_PRECONDITION for an uninitialised variable;
 * those of the file system. */
TW_EXPORT tw_status* tw_saver_save(tw_saver* saver, tw_session* session, const char* prefix);
/* Sets every variable from the file, or none. Errors: NOT_FOUND naming file and tensor; INVALID_ARGUMENT if dtype, shape or type of
 * resource differ; UNIMPLEMENTED for a resource that was saved in a newer format than its plugin reads; DATA_LOSS; what that plugin says.
 */
TW_EXPORT tw_status* tw_saver_restore(tw_saver* saver, tw_session* session, const char* prefix);
/* How many tasks save their own, with TW_SAVER_BY_TASK; 0 without. */
TW_EXPORT uint32_t tw_saver_task_count(const tw_saver* saver);
/* Task k of them, "/job:ps/task:0", "" for variables that name none; lives as long as the saver; NULL past the end. */
TW_EXPORT const char* tw_saver_task(const tw_saver* saver, uint32_t k);
/* Sets the variables of that one task, or none: for a task that has lost them. Errors: as tw_saver_restore; OUT_OF_RANGE;
 * FAILED_PRECONDITION where a table was saved in another number of shards. */
TW_EXPORT tw_status* tw_saver_restore_task(tw_saver* saver, tw_session* session, const char* prefix, uint32_t k);
/* The value of every variable, read in one step and in the saver's order. out_values: room for tw_saver_count tensors, each a reference
 * that the caller owns; all NULL after a failure. No copies: a later update of a variable that finds its value held leaves that be and
 * writes to new memory. Errors: as tw_saver_save, without the file. */
TW_EXPORT tw_status* tw_saver_values(tw_saver* saver, tw_session* session, tw_tensor** out_values);

/* ---- Restoring what fits ---- */

enum {
  TW_RESTORE_DONE = 0,        /* the variable was set */
  TW_RESTORE_MISSING = 1,     /* the file has no tensor of that name; the variable is as it was, as with the next two */
  TW_RESTORE_OTHER_DTYPE = 2, /* or type of resource */
  TW_RESTORE_OTHER_SHAPE = 3,
  TW_RESTORE_UNUSED = 4 /* a tensor of the file that no variable of the saver is for */
};
typedef struct tw_restore_report tw_restore_report; /* what became of each variable, in the saver's order, then the unused tensors */

/* Sets those variables whose name, dtype and shape the file has and leaves the others as they are: for a model that has grown, or one that
 * starts from another's (with name rules). All that fit, or none. out_report: may be NULL; the caller owns *out_report. The first call
 * adds operations to the graph. Errors: NOT_FOUND for the file; DATA_LOSS; as tw_saver_restore for a resource that fits. */
TW_EXPORT tw_status* tw_saver_restore_partial(tw_saver* saver, tw_session* session, const char* prefix, tw_restore_report** out_report);
TW_EXPORT void tw_restore_report_destroy(tw_restore_report* report); /* NULL is fine */
TW_EXPORT uint32_t tw_restore_report_count(const tw_restore_report* report);
/* Entry i: TW_RESTORE_... (MISSING past the end); the variable (NULL for an unused tensor); the name in the file; a line that says it all.
 * Texts live as long as the report; NULL past the end. */
TW_EXPORT uint32_t tw_restore_report_outcome(const tw_restore_report* report, uint32_t i);
TW_EXPORT const char* tw_restore_report_variable(const tw_restore_report* report, uint32_t i);
TW_EXPORT const char* tw_restore_report_name(const tw_restore_report* report, uint32_t i);
TW_EXPORT const char* tw_restore_report_text(const tw_restore_report* report, uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
