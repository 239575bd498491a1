/* Profilers: a plugin that receives what the host recorded of each step, and passes it on: to a file
 * in a format of its own, to a tracing service, to a store of measurements.
 *
 * The program chooses profilers by a session option: profiler=NAME, or profiler=NAME:ARGUMENT, such as
 * profiler=trace:/tmp/steps.json. The host then records every step of the session as if the program
 * had given it tw_run_options.stats, and hands over the records when the step has ended, before its
 * run returns: first the step, then its spans in the order of their begins, then its counters by
 * time, then `done`. A step that failed is handed over with what ran of it.
 *
 * All times are nanoseconds on the clock of host->run->now. The number of records is bounded as in
 * tw_step_stats_set_limit; `left_out` says how many are missing.
 *
 * A child of fork hands over nothing and stops nothing: the profiles are its parent's.
 * A failure of a profiler never fails a step: the host logs it, and hands over no more records of
 * that step but `done`.
 * An entry may not close the session that it is called for, which would wait for the entry. A step
 * that an entry runs in that session is not handed over, and never returns if the session has a target.
 * Threads: all calls about one `self` come one after the other, on any threads; calls about different
 * ones may come at the same time. All entries may block; a run returns when they have. */
#ifndef THALWEG_PLUGIN_PROFILER_H
#define THALWEG_PLUGIN_PROFILER_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/role.h"
#include "thalweg/plugin/status.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The version of the role that this header declares; see role.h. */
enum {
  TW_PROFILER_MAJOR = 1,
  TW_PROFILER_MINOR = 0 /* newest minor */
};

/* A step that has ended. */
typedef struct tw_profiled_step {
  TW_HEAD;
  uint64_t trace;           /* number of its trace, as host->run->trace gives it to kernels; 0: a step of a cluster */
  uint64_t step;            /* number of the run in its session, from 1; 0: it failed before it had one */
  int64_t begin, end;       /* of the run, planning included */
  int64_t planned;          /* when its plan was available */
  uint64_t block_bytes;     /* planned memory for values and scratch, over all devices */
  uint64_t allocated_bytes; /* beyond block_bytes */
  uint64_t left_out;        /* records beyond the limit */
  uint32_t failed;          /* 1: the step failed; else 0 */
  uint32_t made_plan;       /* 1: its plan was made for it; 0: there was one */
} tw_profiled_step;

/* The kind of a span says which activity it records. A profiler ignores kinds that it does not know. */
enum {
  TW_PROFILED_NODE = 1,     /* a node, from the time that a thread took it until its results were complete */
  TW_PROFILED_COPY = 2,     /* a copy between host and devices; name: "CopyToDevice", "CopyToHost" or "CopyToPeer" */
  TW_PROFILED_QUEUE = 3,    /* the work of a node or copy on a queue of its device, as the device reports it */
  TW_PROFILED_KERNEL = 4,   /* a part of a kernel's call, as the kernel reports it (host->run->span) */
  TW_PROFILED_FUNCTION = 5, /* a call of a function; name: the function's */
  TW_PROFILED_WAIT = 6      /* a time in which a thread or a node waited; name: "device", "lock", "resource", "thread" or "work" */
};

/* A time in which something ran. Texts may be empty; they are not NULL. */
typedef struct tw_profiled_span {
  TW_HEAD;
  TW_TEXT(name);   /* the op of a node, else as the kind says */
  TW_TEXT(node);   /* name of the node that it belongs to */
  TW_TEXT(device); /* full name of the node's device; of a wait: the device or lock that it waited for */
  TW_TEXT(row);    /* queue of the device, or the row that a kernel names; empty: the row of the thread */
  int64_t begin, end;
  int64_t left;    /* when the thread went on with other work: `end`, or earlier if the node completed later */
  uint64_t bytes;  /* that a node or copy put out; else 0 */
  uint32_t kind;   /* TW_PROFILED_... */
  uint32_t thread; /* 0: the caller's; 1, 2, ...: others of the step; UINT32_MAX: none */
  uint32_t failed; /* 1: a node that ended the step */
  uint32_t reserved;
} tw_profiled_span;

/* The value of a kernel's counter from a time on (host->run->count). */
typedef struct tw_profiled_count {
  TW_HEAD;
  TW_TEXT(name);
  TW_TEXT(node);   /* as in spans */
  TW_TEXT(device); /* as in spans */
  int64_t at, value;
  uint32_t thread; /* as in spans */
  uint32_t reserved;
} tw_profiled_count;

typedef struct tw_profiler_def {
  TW_HEAD;
  TW_TEXT(name); /* lower-case letters, digits and _; unique among all plugins */
  void* user;
  /* Begins the profile of a session. argument: what the option has behind the name and ':', may be
   * empty; it is not NULL. *out_self: handed to the entries below; may stay NULL. An error ends the
   * creation of the session. */
  TW_R tw_status* (*start)(const tw_host* h, void* user, const char* argument, uint64_t len, void** out_self);
  /* Receives a step. */
  TW_R tw_status* (*step)(const tw_host* h, void* self, const tw_profiled_step* s);
  /* Receives a span of the latest step. */
  TW_R tw_status* (*span)(const tw_host* h, void* self, const tw_profiled_span* s);
  /* Receives a value of a counter of the latest step. */
  TW_O tw_status* (*count)(const tw_host* h, void* self, const tw_profiled_count* c);
  /* The latest step has no more records. Called once for each call of `step` that did not fail. */
  TW_O tw_status* (*done)(const tw_host* h, void* self);
  /* Ends the profile; the last call about `self`, which is freed also if stop fails. The host logs an
   * error. */
  TW_R tw_status* (*stop)(const tw_host* h, void* self);
} tw_profiler_def;

/* Registers a definition of the role "profiler", as tw_add_role. `d` uses what the role had in minor
 * 0. */
static inline tw_status* tw_add_profiler(tw_registrar* r, const tw_profiler_def* d) {
  return tw_add_role(r, TW_S("profiler"), TW_PROFILER_MAJOR, 0, 0, d);
}

#ifdef __cplusplus
}
#endif
#endif
