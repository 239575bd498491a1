/* Spreads choose for each variable a task of a job of parameter servers. A spread returns one
 * device name after the other. Equal calls in equal order have equal results, so all clients of a
 * cluster that build the same graph find the same tasks.
 *
 *     tw_spread_create("ps", 2, TW_SPREAD_BY_SIZE, &spread);
 *     tw_scope_set_device(s, tw_spread_next(spread, 64 * 48 * sizeof(float)));       "/job:ps/task:0"
 *     tw_output w = tw_variable_create(s, "w", initial);
 *
 * Threads: one at a time. Everything here: since 0.1. */
#ifndef THALWEG_SPREAD_H
#define THALWEG_SPREAD_H
#include "thalweg/export.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_spread tw_spread;

enum {
  TW_SPREAD_IN_TURN = 0, /* task 0, 1, ..., round robin */
  TW_SPREAD_BY_SIZE = 1  /* the task with the fewest bytes so far; the first of equals */
};

/* Creates a spread. job: copied. tasks: number of tasks of the job, above 0. how: TW_SPREAD_....
 * The caller owns *out_spread. Errors: INVALID_ARGUMENT. */
TW_EXPORT tw_status* tw_spread_create(const char* job, uint32_t tasks, uint32_t how, tw_spread** out_spread);
TW_EXPORT void tw_spread_destroy(tw_spread* spread); /* NULL is fine */
/* Returns the device of the next variable. bytes: size of that variable. The text lives as long as
 * the spread; NULL for NULL. */
TW_EXPORT const char* tw_spread_next(tw_spread* spread, uint64_t bytes);
/* Returns the bytes of the variables that a task was given so far; 0 past the last task. */
TW_EXPORT uint64_t tw_spread_bytes(const tw_spread* spread, uint32_t task);

#ifdef __cplusplus
}
#endif
#endif
