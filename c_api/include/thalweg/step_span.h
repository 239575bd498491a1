/* Reports of kernels in step statistics: spans, which are parts of a kernel's call, and
 * values of counters. plugin/kernel.h and cpp/trace.hpp say how a kernel reports them; the trace of
 * tw_step_stats_json shows them, too.
 * Threads: as step_stats.h: any number may read while no run fills the object.
 * Everything here: since 0.1. */
#ifndef THALWEG_STEP_SPAN_H
#define THALWEG_STEP_SPAN_H
#include "thalweg/export.h"
#include "thalweg/step_stats.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Times are nanoseconds since the run began. The library fills the records: `size` is the size that it
 * knows, flags are 0. */
typedef struct tw_step_span {
  uint32_t size, flags;
  const char* name;   /* as the kernel names it */
  const char* node;   /* the operation whose kernel reports it */
  const char* device; /* of the operation */
  const char* row;    /* where the trace shows it; "": the row of the thread, inside the operation's bar */
  int64_t start_ns, end_ns;
  uint32_t thread; /* that reported it: 0: the caller's; 1, 2, ...: others, as in tw_step_node, and threads that only helped; UINT32_MAX:
                      unknown */
  uint32_t reserved;
} tw_step_span;

typedef struct tw_step_count {
  uint32_t size, flags;
  const char* name;   /* of the counter */
  const char* node;   /* as in spans */
  const char* device; /* as in spans */
  int64_t at_ns;      /* the counter has the value from this time on */
  int64_t value;
  uint32_t thread; /* as in spans */
  uint32_t reserved;
} tw_step_count;

/* Records live until the next run with `stats`, or until it is destroyed. NULL past the end and for
 * NULL. tw_step_stats_set_limit also bounds the number of each. */
TW_EXPORT uint32_t tw_step_stats_span_count(const tw_step_stats* stats);
TW_EXPORT const tw_step_span* tw_step_stats_span(const tw_step_stats* stats,
                                                 uint32_t i); /* in the order of their starts; the longer first */
TW_EXPORT uint32_t tw_step_stats_counter_count(const tw_step_stats* stats);
TW_EXPORT const tw_step_count* tw_step_stats_counter(const tw_step_stats* stats, uint32_t i); /* by time */
/* Returns the number of the run's trace, by which plugins name it in their logs; unique in the process.
 * 0: there was no run, it was one of a cluster, or stats is NULL. */
TW_EXPORT uint64_t tw_step_stats_trace_number(const tw_step_stats* stats);

#ifdef __cplusplus
}
#endif
#endif
