/* Step statistics: what one run did and how long each part took. Give an object to a run (tw_run_options.stats) and read it when the run
 * is over, also when it failed: then it holds what ran until then. Each run that is given the object forgets what it held before.
 *
 *     tw_step_stats* stats = NULL;
 *     tw_status* s = tw_step_stats_create(&stats);
 *     tw_run_options options = {.size = sizeof options, .stats = stats};
 *     if (!s) s = tw_session_run(session, &what, feeds, &options, fetches);
 *     for (uint32_t i = 0; i < tw_step_stats_op_count(stats); ++i)
 *       printf("%s %lld ns\n", tw_step_stats_op(stats, i)->op, (long long)tw_step_stats_op(stats, i)->busy_ns);
 *
 * Runs without such an object pay nothing for its existence; those with one take a look at the clock more per operation, or two. What is
 * kept of a run is bounded (tw_step_stats_set_limit). Functions that a run calls and loops that it goes round are told node by node too.
 * Threads: one run at a time fills it; nobody may read it meanwhile; then any number may. Everything here: since 0.1. */
#ifndef THALWEG_STEP_STATS_H
#define THALWEG_STEP_STATS_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_step_stats tw_step_stats;

/* Something that ran: an operation, or a copy between the host and a device. Times are nanoseconds since the run began. Records of this
 * header are filled by the library: `size` is what it knows of, flags are those named here. */
enum {
  TW_STEP_NODE_FAILED = 1, /* it ended the run */
  TW_STEP_NODE_COPY = 2,   /* a copy, which no operation of the graph stands for: op is "CopyToDevice", "CopyToHost" or "CopyToPeer" */
  TW_STEP_NODE_QUEUED = 4  /* its work was put into a queue of the device */
};
typedef struct tw_step_node {
  uint32_t size, flags;
  const char* name;   /* of the operation; of a copy, what is copied */
  const char* op;     /* "MatMul" */
  const char* device; /* "/job:localhost/replica:0/task:0/device:CPU:0" */
  const char* kernel; /* its spec, see plugin/kernel.h; "" for copies */
  int64_t start_ns;   /* when a thread of the run began with it */
  int64_t end_ns;  /* when its results were there: for kernels that complete later and devices with queues, after the thread had gone on */
  int64_t busy_ns; /* how long that thread worked on it: end - start, or less where the end comes later */
  uint64_t output_bytes;    /* of all its outputs, wherever they lie */
  uint64_t allocated_bytes; /* what was allocated for it as it ran: outputs and scratch outside the block that the plan laid out */
  uint32_t thread;          /* 0: the caller's; 1, 2, ...: others, in the order in which they came to help */
  uint32_t reserved;
  uint32_t id;           /* of this record among those of the run */
  uint32_t n_after;      /* how many it had to wait for */
  const uint32_t* after; /* their ids; of a node in a loop of primitives, none are told */
  const char* shapes;    /* "float [2, 3], float [3, 4] -> float [2, 4]": inputs and outputs; "" for copies */
  const char* to;        /* of a copy: the device that it goes to; else "" */
  const char* function;  /* that it is a node of; "": of the graph that was run */
  uint64_t call;         /* which call of that function in this run, from 1 */
  const char* frame;     /* of the innermost loop of primitives that it is in; "": in none */
  uint64_t loop;         /* which time that loop was entered in this run, from 1 */
  int64_t iteration;     /* of that loop, from 0 */
  /* Of a device with queues that tells when its work ran (plugin/device.h, tw_profile_set): the queue, and from when to when on the clock
   * of the run. "" and 0: not told; then end_ns is when the host heard that it was over. */
  const char* queue;
  int64_t device_start_ns, device_end_ns;
} tw_step_node;

/* A time in which something could have gone on and did not. */
enum {
  TW_STEP_WAIT_WORK = 0,     /* the thread had nothing to do: what is left waits for what others do, or for asynchronous calls */
  TW_STEP_WAIT_DEVICE = 1,   /* the thread waited for a queue of a device: `what` */
  TW_STEP_WAIT_LOCK = 2,     /* the thread waited for the lock of a resource: `what`; `name` wanted it */
  TW_STEP_WAIT_RESOURCE = 3, /* `name` waited at a resource, such as a queue that is empty, without a thread */
  TW_STEP_WAIT_THREAD = 4    /* `name` was ready, and no thread free */
};
typedef struct tw_step_wait {
  uint32_t size, flags;
  uint32_t why;    /* TW_STEP_WAIT_... */
  uint32_t thread; /* as of nodes; of the last two none: UINT32_MAX */
  int64_t start_ns, end_ns;
  const char* name; /* of the operation; "": of the run as a whole */
  const char* what; /* "" where there is nothing to name */
} tw_step_wait;

/* All uses of an op in the run. */
typedef struct tw_step_op {
  uint32_t size, flags;
  const char* op;
  uint64_t count;
  int64_t busy_ns; /* sums over its nodes */
  uint64_t output_bytes, allocated_bytes;
} tw_step_op;

/* The run as a whole. */
enum {
  TW_STEP_PLANNED = 1, /* a plan was made for it; otherwise one was there */
  TW_STEP_COUNTED = 2, /* nodes ran side by side as they became ready; otherwise one after the other in the plan's order */
  TW_STEP_FAILED = 4,
  TW_STEP_CUT = 8 /* more happened than is kept: `left_out` records are missing */
};
typedef struct tw_step_total {
  uint32_t size, flags;
  int64_t total_ns;         /* from the call to its return */
  int64_t plan_ns;          /* of these, until the plan was there */
  int64_t wait_ns;          /* how long the caller's thread had nothing to do: others worked, or devices */
  uint64_t block_bytes;     /* what the plan laid out for values and scratch, on all devices together */
  uint64_t allocated_bytes; /* beyond that, over all nodes */
  uint32_t nodes;           /* that ran and are kept */
  uint32_t threads;         /* that ran nodes; those that only helped inside a kernel's loop are not counted */
  uint64_t step;            /* which run of its session it was, from 1; 0: there was no run */
  uint64_t left_out;        /* records beyond the limit */
  int64_t began_ns;         /* when it began, on the machine's monotonic clock */
} tw_step_total;

/* Empty. The caller owns *out_stats. */
TW_EXPORT tw_status* tw_step_stats_create(tw_step_stats** out_stats);
TW_EXPORT void tw_step_stats_destroy(tw_step_stats* stats); /* not while a run fills it; NULL is fine */

/* Records live until the next run with `stats`, or its end. NULL past the end and for NULL. */
TW_EXPORT const tw_step_total* tw_step_stats_total(const tw_step_stats* stats); /* zeros before the first run */
TW_EXPORT uint32_t tw_step_stats_node_count(const tw_step_stats* stats);
TW_EXPORT const tw_step_node* tw_step_stats_node(const tw_step_stats* stats, uint32_t i); /* in the order of their starts */
TW_EXPORT uint32_t tw_step_stats_op_count(const tw_step_stats* stats);
TW_EXPORT const tw_step_op* tw_step_stats_op(const tw_step_stats* stats, uint32_t i); /* the busiest first */
TW_EXPORT uint32_t tw_step_stats_wait_count(const tw_step_stats* stats);
TW_EXPORT const tw_step_wait* tw_step_stats_wait(const tw_step_stats* stats, uint32_t i); /* in the order of their starts */
/* How many records, of nodes and of waits each, are kept of a run; those that come later are counted and left out (TW_STEP_CUT). 262144
 * unless it is said; they take about 200 bytes each, and 0 keeps none but the totals. NULL does nothing. */
TW_EXPORT void tw_step_stats_set_limit(tw_step_stats* stats, uint32_t records);

/* One run, or n of them in one trace, as JSON in the Trace Event Format, which chrome://tracing and Perfetto open. A row for each thread
 * and each queue of a device; operations, copies (with bytes, from where to where) and the thread's waits as bars; beside them what waits
 * without a thread, what is under way on asynchronous kernels, calls of functions and iterations of loops. `thalweg trace top` reads it.
 * The caller owns *out_json. Errors: INVALID_ARGUMENT for NULL. */
TW_EXPORT tw_status* tw_step_stats_json(const tw_step_stats* stats, tw_buffer** out_json);
TW_EXPORT tw_status* tw_step_stats_trace(const tw_step_stats* const* steps, uint32_t n, tw_buffer** out_json);

#ifdef __cplusplus
}
#endif
#endif
