/* Savers: the variables of a session to a checkpoint and back. A saver adds operations to the graph once and runs them on demand.
 * The files are those of checkpoint.h; each variable is stored under the name of its operation. Everything here: since 0.1. */
#ifndef THALWEG_SAVER_H
#define THALWEG_SAVER_H
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/session.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_saver tw_saver;

/* Adds the operations that save and restore `variables` (n handles; n 0: all of the graph so far, slots of optimizers included). They
 * are named as TensorFlow's savers name theirs: feed `save/Const` with the prefix, then run `save/control_dependency` or
 * `save/restore_all`. A graph that has these already (an imported one, or a second saver) gets another set, `save_1/...`.
 * The graph must outlive the saver. The caller owns *out_saver.
 * Errors: INVALID_ARGUMENT (a value that is no variable handle); FAILED_PRECONDITION (no variables). */
TW_EXPORT tw_status* tw_saver_create(tw_graph* graph, const tw_output* variables, uint32_t n, tw_saver** out_saver);
TW_EXPORT void tw_saver_destroy(tw_saver* saver); /* the operations stay; NULL is fine */
/* Writes every variable as it is now. Errors: FAILED_PRECONDITION for an uninitialised variable; those of the file system. */
TW_EXPORT tw_status* tw_saver_save(tw_saver* saver, tw_session* session, const char* prefix);
/* Sets every variable from the file. Errors: NOT_FOUND naming file and tensor; INVALID_ARGUMENT if dtype or shape differ; DATA_LOSS. */
TW_EXPORT tw_status* tw_saver_restore(tw_saver* saver, tw_session* session, const char* prefix);

#ifdef __cplusplus
}
#endif
#endif
