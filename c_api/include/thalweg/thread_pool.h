/* A program's own threads for a runtime to compute on, instead of threads that the runtime starts.
 * See tw_runtime_create_with.
 *
 * The pool only helps: the thread that runs a step also works on it, alone if necessary. The pool
 * may therefore be busy, late, or gone; steps then take longer, but never wait for it.
 * Everything here: since 0.1. */
#ifndef THALWEG_THREAD_POOL_H
#define THALWEG_THREAD_POOL_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* Work of the runtime. Threads: any, several at once. */
typedef void (*tw_thread_work)(void* arg);

/* Schedules one run of work(arg) on any thread of the pool, at any time. A run after the runtime's
 * end does nothing. Work returns when there has been nothing to do for about 50 microseconds. Work
 * that runs before schedule returns helps nobody. Work that never runs costs the memory of one
 * small record per runtime. At most `threads` calls are scheduled and not finished at a time.
 * Threads: any, several at once. It must not wait for steps, nor call into the runtime. */
typedef void (*tw_thread_schedule)(void* user, tw_thread_work work, void* arg);

/* Called when the runtime has ended; schedule is not called again. Threads: any, once. */
typedef void (*tw_thread_release)(void* user);

/* Set `size` to sizeof(tw_thread_pool) and unused fields to 0. The record is copied; functions and
 * user must last until `release` is called. */
typedef struct tw_thread_pool {
  uint32_t size, flags;
  uint32_t threads; /* how many of its threads may help at once, besides the callers of steps; 0: none */
  uint32_t reserved;
  void* user;
  tw_thread_schedule schedule; /* may be NULL if threads is 0 */
  tw_thread_release release;   /* NULL: no callback */
} tw_thread_pool;

#ifdef __cplusplus
}
#endif
#endif
