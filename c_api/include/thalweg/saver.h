/* Savers save the variables of a session, and resources of plugins that support it, to a checkpoint
 * and restore them. A saver adds operations to the graph once and runs them on demand.
 * The files are those of checkpoint.h; each variable is stored under the name of its operation,
 * unless rules say otherwise. checkpointer.h saves during training. Threads: one at a time uses a
 * saver. Everything here: since 0.1. */
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
  TW_SAVER_UNUSED_RULES = 1, /* exact rules that match no variable are allowed; else they are an error */
  /* Each task saves and restores its own variables, all tasks at once. Parts of a save lie beside
   * the checkpoint, `prefix`.part0of2, until they are merged; the index is published last. All
   * tasks must see the same files, and allow them (option allow_files of servers). */
  TW_SAVER_BY_TASK = 2
};

/* Names of variables in files, and number of data files. Set `size` to sizeof(tw_saver_options) and
 * unused fields to 0.
 * Rule i renames variable `variables[i]` to `names[i]`. If both end in `*`, it applies to every
 * variable whose name begins with the first text, and replaces that prefix by the second. An exact
 * rule goes before all others, a longer prefix before a shorter one. A variable without a rule
 * keeps its own name. */
typedef struct tw_saver_options {
  uint32_t size, flags;         /* flags: TW_SAVER_... */
  const char* const* variables; /* n_names texts */
  const char* const* names;     /* n_names texts */
  uint32_t n_names;
  uint32_t shards; /* data files of a save, up to 1,000; 0: one, or one for each task */
  /* Sharded tables (sharded.h) among the variables; since the record's second version. In files
   * shard k of table `table_names[i]` is named `table_names[i]`/part_k, whatever the rules say. A
   * table can be restored from any number of shards that were saved with the same partition. This
   * program reads checkpoints with another number of shards, so it must see the files, too. */
  const char* const* table_names; /* n_tables texts */
  const tw_sharded* tables;       /* n_tables records */
  uint32_t n_tables, reserved;
} tw_saver_options;

/* Adds the operations that save and restore `variables` (n handles; n 0 means all of the graph so
 * far, slots of optimizers included, and every resource that tw_operation_resource reports as
 * savable). Below, `variable` means either kind. A resource is named `name`:resource in files; it
 * is a vector of three strings, its type, its format in decimal and the bytes that its plugin
 * wrote, and other readers of the file see that vector. The operations have the names of
 * TensorFlow's savers: feed `save/Const` with the prefix, then run `save/control_dependency` or
 * `save/restore_all`. A graph that has these already (an imported one, or a second saver) gets
 * another set, `save_1/...`.
 * The graph must outlive the saver. The caller owns *out_saver.
 * Errors: INVALID_ARGUMENT (a value that is no such handle); UNIMPLEMENTED (a resource that cannot
 * be saved); FAILED_PRECONDITION (nothing to save). */
TW_EXPORT tw_status* tw_saver_create(tw_graph* graph, const tw_output* variables, uint32_t n, tw_saver** out_saver);
/* The same with options. options: NULL means none; the record and its texts are copied. Errors:
 * those of tw_saver_create; INVALID_ARGUMENT naming the rule that has a `*` inside or on one side
 * only or repeats another, the exact rule that matches no variable (with the closest name), the
 * variable that would have no name, or the two that would have the same name. */
TW_EXPORT tw_status* tw_saver_create_with(tw_graph* graph, const tw_output* variables, uint32_t n, const tw_saver_options* options,
                                          tw_saver** out_saver);
TW_EXPORT void tw_saver_destroy(tw_saver* saver);          /* the operations stay; NULL is fine */
TW_EXPORT tw_graph* tw_saver_graph(const tw_saver* saver); /* borrowed; NULL for NULL */
TW_EXPORT uint32_t tw_saver_count(const tw_saver* saver);  /* number of variables */
/* Name of variable i in the graph, and in files. Texts live as long as the saver; NULL past the
 * end. */
TW_EXPORT const char* tw_saver_variable(const tw_saver* saver, uint32_t i);
TW_EXPORT const char* tw_saver_name(const tw_saver* saver, uint32_t i);

/* Writes the current value of every variable; creates the folder as tw_checkpoint_write does.
 * Errors: FAILED_PRECONDITION for an uninitialised variable; those of the file system. */
TW_EXPORT tw_status* tw_saver_save(tw_saver* saver, tw_session* session, const char* prefix);
/* Sets every variable from the file, or none. Errors: NOT_FOUND naming file and tensor;
 * INVALID_ARGUMENT if dtype, shape or type of resource differ; UNIMPLEMENTED for a resource that
 * was saved in a newer format than its plugin reads; DATA_LOSS; the errors of that plugin. */
TW_EXPORT tw_status* tw_saver_restore(tw_saver* saver, tw_session* session, const char* prefix);
/* Returns how many tasks save their own variables (TW_SAVER_BY_TASK); 0 without that flag. */
TW_EXPORT uint32_t tw_saver_task_count(const tw_saver* saver);
/* Returns the name of task k, "/job:ps/task:0"; "" for variables without a task. Lives as long as
 * the saver; NULL past the end. */
TW_EXPORT const char* tw_saver_task(const tw_saver* saver, uint32_t k);
/* Sets the variables of task k, or none, after that task lost them. Errors: as tw_saver_restore;
 * OUT_OF_RANGE; FAILED_PRECONDITION if a table was saved in another number of shards. */
TW_EXPORT tw_status* tw_saver_restore_task(tw_saver* saver, tw_session* session, const char* prefix, uint32_t k);
/* Returns the value of every variable, read in one step, in the saver's order. out_values: room for
 * tw_saver_count tensors, each a reference that the caller owns; all NULL after a failure. Nothing
 * is copied: a later update of a variable whose value is held writes to new memory. Errors: as
 * tw_saver_save, without the file. */
TW_EXPORT tw_status* tw_saver_values(tw_saver* saver, tw_session* session, tw_tensor** out_values);

/* ---- Partial restore ---- */

enum {
  TW_RESTORE_DONE = 0,        /* the variable was set */
  TW_RESTORE_MISSING = 1,     /* the file has no tensor of that name; the variable is unchanged, as with the next two */
  TW_RESTORE_OTHER_DTYPE = 2, /* or type of resource */
  TW_RESTORE_OTHER_SHAPE = 3,
  TW_RESTORE_UNUSED = 4 /* a tensor of the file that belongs to no variable of the saver */
};
typedef struct tw_restore_report tw_restore_report; /* the outcome for each variable, in the saver's order, then the unused tensors */

/* Sets the variables whose name, dtype and shape match a tensor of the file, all of them or none,
 * and leaves the others unchanged: for a model that has grown, or one that starts from another
 * model (with name rules). out_report: may be NULL; the caller owns *out_report. The first call
 * adds operations to the graph. Errors: NOT_FOUND for the file; DATA_LOSS; as tw_saver_restore for
 * a resource that matches. */
TW_EXPORT tw_status* tw_saver_restore_partial(tw_saver* saver, tw_session* session, const char* prefix, tw_restore_report** out_report);
TW_EXPORT void tw_restore_report_destroy(tw_restore_report* report); /* NULL is fine */
TW_EXPORT uint32_t tw_restore_report_count(const tw_restore_report* report);
/* Entry i: TW_RESTORE_... (MISSING past the end); the variable (NULL for an unused tensor); the
 * name in the file; a line that describes the outcome. Texts live as long as the report; NULL past
 * the end. */
TW_EXPORT uint32_t tw_restore_report_outcome(const tw_restore_report* report, uint32_t i);
TW_EXPORT const char* tw_restore_report_variable(const tw_restore_report* report, uint32_t i);
TW_EXPORT const char* tw_restore_report_name(const tw_restore_report* report, uint32_t i);
TW_EXPORT const char* tw_restore_report_text(const tw_restore_report* report, uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
