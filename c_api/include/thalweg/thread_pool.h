/* A program's own threads for a runtime to compute on, in place of threads that the runtime starts. See tw_runtime_create_with.
 *
 * The runtime asks for help, never more: whoever runs a step also works on it, alone if need be. So the pool may be busy, late, or gone:
 * steps take longer then, and never wait for it. Everything here: since 0.1. */
#ifndef THALWEG_THREAD_POOL_H
#define THALWEG_THREAD_POOL_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* What the runtime wants done. Threads: any, several at once. */
typedef void (*tw_thread_work)(void* arg);

/* Has work(arg) run once, on any thread of the pool, soon, late, or after the runtime's end, when it does nothing. Work returns when
 * there has been nothing to do for some 50 microseconds. If it is run before schedule returns, it helps nobody. Work that is never run at
 * all costs the memory of one small record per runtime. At most `threads` are asked for and not yet over at a time.
 * Threads: any, several at once. It must not wait for steps, nor call into the runtime. */
typedef void (*tw_thread_schedule)(void* user, tw_thread_work work, void* arg);

/* The runtime has ended: schedule is not called again. Threads: any, once. */
typedef void (*tw_thread_release)(void* user);

/* Set `size` to sizeof(tw_thread_pool) and what is not used to 0. The record is copied; functions and user must last until `release` is
 * called. */
typedef struct tw_thread_pool {
  uint32_t size, flags;
  uint32_t threads; /* how many of its threads may help at once, beside the callers of steps; 0: none */
  uint32_t reserved;
  void* user;
  tw_thread_schedule schedule; /* may be NULL if threads is 0 */
  tw_thread_release release;   /* NULL: nobody wants to know */
} tw_thread_pool;

#ifdef __cplusplus
}
#endif
#endif
