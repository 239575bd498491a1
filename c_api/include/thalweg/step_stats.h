/* Step statistics record what one run did and how long each part took. Give an object to a run
 * (tw_run_options.stats) and read it when the run has ended. After a failure it holds the parts
 * that ran before the failure. Each run that is given the object clears it first.
 *
 *     tw_step_stats* stats = NULL;
 *     tw_status* s = tw_step_stats_create(&stats);
 *     tw_run_options options = {.size = sizeof options, .stats = stats};
 *     if (!s) s = tw_session_run(session, &what, feeds, &options, fetches);
 *     for (uint32_t i = 0; i < tw_step_stats_op_count(stats); ++i)
 *       printf("%s %lld ns\n", tw_step_stats_op(stats, i)->op, (long long)tw_step_stats_op(stats, i)->busy_ns);
 *
 * Runs without such an object pay nothing; a run with one reads the clock once or twice more per
 * operation. The number of kept records is bounded (tw_step_stats_set_limit). Records also cover
 * the nodes of called functions and of loop iterations.
 * Threads: one run at a time fills it; nobody may read it meanwhile; then any number may.
 * Everything here: since 0.1. */
#ifndef THALWEG_STEP_STATS_H
#define THALWEG_STEP_STATS_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_step_stats tw_step_stats;

/* Record of an operation that ran, or of a copy between the host and a device. Times are
 * nanoseconds since the run began. The library fills the records of this header: `size` is the size
 * that it knows, flags are those named here. */
enum {
  TW_STEP_NODE_FAILED = 1, /* it ended the run */
  TW_STEP_NODE_COPY = 2,   /* a copy that no operation of the graph stands for; op is "CopyToDevice", "CopyToHost" or "CopyToPeer" */
  TW_STEP_NODE_QUEUED = 4  /* its work was enqueued on a queue of the device */
};
typedef struct tw_step_node {
  uint32_t size, flags;
  const char* name;   /* of the operation; for a copy, of the copied value */
  const char* op;     /* "MatMul" */
  const char* device; /* "/job:localhost/replica:0/task:0/device:CPU:0" */
  const char* kernel; /* its spec, see plugin/kernel.h; "" for copies */
  int64_t start_ns;   /* when a thread of the run started it */
  int64_t end_ns;     /* when its results were complete: for asynchronous kernels and devices with queues, after the thread had gone on */
  int64_t busy_ns;    /* how long that thread worked on it: end - start, or less if it completed later */
  uint64_t output_bytes;    /* of all its outputs, in any memory */
  uint64_t allocated_bytes; /* allocated while it ran: outputs and scratch outside the block that the plan laid out */
  uint32_t thread;          /* 0: the caller's; 1, 2, ...: others, in the order in which they joined the run */
  uint32_t reserved;
  uint32_t id;           /* of this record within the run */
  uint32_t n_after;      /* number of records that it waited for */
  const uint32_t* after; /* their ids; none for a node in a loop of primitives */
  const char* shapes;    /* "float [2, 3], float [3, 4] -> float [2, 4]": inputs and outputs; "" for copies */
  const char* to;        /* destination device of a copy; else "" */
  const char* function;  /* function that contains the node; "": the graph of the run */
  uint64_t call;         /* number of the call of that function in this run, from 1 */
  const char* frame;     /* innermost loop of primitives that contains it; "": none */
  uint64_t loop;         /* number of the entry into that loop in this run, from 1 */
  int64_t iteration;     /* of that loop, from 0 */
  /* For a device with queues that reports when its work ran (plugin/device.h, tw_profile_set): the
   * queue, and start and end on the run's clock. "" and 0: not reported; end_ns is then when the
   * host learnt of the completion. */
  const char* queue;
  int64_t device_start_ns, device_end_ns;
} tw_step_node;

/* A time during which a thread or a node waited. */
enum {
  TW_STEP_WAIT_WORK = 0,     /* the thread had nothing to do: the remaining nodes waited for other threads or for asynchronous calls */
  TW_STEP_WAIT_DEVICE = 1,   /* the thread waited for a queue of a device: `what` */
  TW_STEP_WAIT_LOCK = 2,     /* the thread waited for the lock of a resource: `what`; `name` wanted it */
  TW_STEP_WAIT_RESOURCE = 3, /* `name` waited at a resource, such as a queue that is empty, without a thread */
  TW_STEP_WAIT_THREAD = 4    /* `name` was ready, but no thread was free */
};
typedef struct tw_step_wait {
  uint32_t size, flags;
  uint32_t why;    /* TW_STEP_WAIT_... */
  uint32_t thread; /* as in nodes; UINT32_MAX for the last two */
  int64_t start_ns, end_ns;
  const char* name; /* of the operation; "": the run as a whole */
  const char* what; /* "" if there is nothing to name */
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
  TW_STEP_PLANNED = 1, /* a plan was made for it; otherwise an existing plan was used */
  TW_STEP_COUNTED = 2, /* nodes ran in parallel as they became ready; otherwise one after the other in the plan's order */
  TW_STEP_FAILED = 4,
  TW_STEP_CUT = 8 /* records beyond the limit were dropped: `left_out` are missing */
};
typedef struct tw_step_total {
  uint32_t size, flags;
  int64_t total_ns;         /* from the call to its return */
  int64_t plan_ns;          /* part of total_ns until the plan was available */
  int64_t wait_ns;          /* how long the caller's thread had nothing to do because other threads or devices worked */
  uint64_t block_bytes;     /* planned memory for values and scratch, over all devices */
  uint64_t allocated_bytes; /* beyond block_bytes, over all nodes */
  uint32_t nodes;           /* records of nodes that are kept */
  uint32_t threads;         /* threads that ran nodes, without those that only helped inside a kernel's loop */
  uint64_t step;            /* number of the run in its session, from 1; 0: there was no run */
  uint64_t left_out;        /* records beyond the limit */
  int64_t began_ns;         /* start of the run, on the machine's monotonic clock */
} tw_step_total;

/* Creates an empty object. The caller owns *out_stats. */
TW_EXPORT tw_status* tw_step_stats_create(tw_step_stats** out_stats);
TW_EXPORT void tw_step_stats_destroy(tw_step_stats* stats); /* not while a run fills it; NULL is fine */

/* Records live until the next run with `stats`, or until it is destroyed. NULL past the end and for
 * NULL. */
TW_EXPORT const tw_step_total* tw_step_stats_total(const tw_step_stats* stats); /* zeros before the first run */
TW_EXPORT uint32_t tw_step_stats_node_count(const tw_step_stats* stats);
TW_EXPORT const tw_step_node* tw_step_stats_node(const tw_step_stats* stats, uint32_t i); /* in the order of their starts */
TW_EXPORT uint32_t tw_step_stats_op_count(const tw_step_stats* stats);
TW_EXPORT const tw_step_op* tw_step_stats_op(const tw_step_stats* stats, uint32_t i); /* the busiest first */
TW_EXPORT uint32_t tw_step_stats_wait_count(const tw_step_stats* stats);
TW_EXPORT const tw_step_wait* tw_step_stats_wait(const tw_step_stats* stats, uint32_t i); /* in the order of their starts */
/* Sets how many records, of nodes and of waits each, are kept of a run; later ones are only counted
 * (TW_STEP_CUT). The default is 262144. A record takes about 200 bytes; 0 keeps only the totals.
 * NULL does nothing. */
TW_EXPORT void tw_step_stats_set_limit(tw_step_stats* stats, uint32_t records);

/* Returns one run, or n of them in one trace, as JSON in the Trace Event Format, which
 * chrome://tracing and Perfetto open. Each thread and each queue of a device has a row. Bars are
 * operations, copies (with bytes, source and destination) and waits of the thread, and inside an
 * operation the spans that its kernel reports (plugin/kernel.h). Other rows hold waits without a
 * thread, running asynchronous kernels, function calls and loop iterations. Counters of kernels are
 * curves. The event of a step has the number of its trace, by which plugins name it in their logs;
 * it is 0 for a step of a cluster, whose tasks number their traces themselves.
 * `thalweg trace top` reads it. The caller owns *out_json. Errors: INVALID_ARGUMENT for NULL. */
TW_EXPORT tw_status* tw_step_stats_json(const tw_step_stats* stats, tw_buffer** out_json);
TW_EXPORT tw_status* tw_step_stats_trace(const tw_step_stats* const* steps, uint32_t n, tw_buffer** out_json);

#ifdef __cplusplus
}
#endif
#endif
