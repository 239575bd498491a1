/* Sessions run graphs. A session belongs to one graph and its runtime; each run is a step. The
 * first run of a set of feeds, fetches and targets makes a plan, which the session keeps; a
 * callable is a handle to such a plan. Operations that are added to the graph later can be run at
 * once.
 * Plans: a run with new feed shapes reuses the plan of other shapes if that plan fits, and then
 * costs little more than a warm run; otherwise it makes a plan. Options bound the number of kept
 * plans: max_plans, max_shape_plans, max_shapes. The options order and memory_budget, and
 * tw_op_set_priority, influence the order of operations and the memory.
 * Clusters: with the option `target`, the address of a task (server.h), steps run on the tasks of a
 * cluster, state stays there, and failures name the task. Closing such a session ends its steps
 * with CANCELLED. Step statistics cover all tasks on one clock. Such a session has no plans as JSON
 * yet (UNIMPLEMENTED), and its report contains only steps and signatures.
 *
 * Threads: any number of threads may use a session and its callables at once; steps over the same
 * variables then interleave, and each update is atomic. Everything here: since 0.1. */
#ifndef THALWEG_SESSION_H
#define THALWEG_SESSION_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/option.h"
#include "thalweg/step_stats.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_session tw_session;
typedef struct tw_callable tw_callable;         /* a prepared run */
typedef struct tw_cancel_token tw_cancel_token; /* lets another thread stop runs */
typedef struct tw_partial_run tw_partial_run;   /* one step that is run in parts */

/* Inputs and outputs of a run. Set `size` to sizeof(tw_signature) and unused fields to 0. A run
 * computes only the operations that its fetches and targets need. A feed replaces the value of any
 * operation, a placeholder or another. */
typedef struct tw_signature {
  uint32_t size, flags;
  const tw_output* feeds;             /* n_feeds values, each once */
  const tw_output* fetches;           /* n_fetches values; may repeat, may be fed */
  const tw_operation* const* targets; /* n_targets operations that run for their effects */
  uint32_t n_feeds, n_fetches, n_targets, reserved;
  /* Devices, such as "FAKE:0", whose memory holds the feeds and the fetches: n_feeds and n_fetches
   * names. A NULL list or name means host memory. A feed in other memory is copied before the step. */
  const char* const* feed_devices;
  const char* const* fetch_devices;
} tw_signature;

/* Deadline, cancellation and statistics of a run. Set `size` to sizeof(tw_run_options) and unused
 * fields to 0. */
typedef struct tw_run_options {
  uint32_t size, flags;
  int64_t timeout_ns;      /* nanoseconds from the start of the run, >= 0, after which it fails with DEADLINE_EXCEEDED; 0: none */
  tw_cancel_token* cancel; /* ends the run with CANCELLED; NULL: none. Must live until the run returns */
  tw_step_stats* stats;    /* filled by the run, see step_stats.h; NULL: none. Must live until the run returns */
} tw_run_options;

/* Imported operations (tw_graph_import) are not trusted, because the program did not write them. A
 * session refuses an imported operation that touches files, network or system (PERMISSION_DENIED,
 * naming it; plugin/op.h lists them). It does so when a run first needs the operation, before
 * anything runs. Options of the session change this:
 *  - allow_files=DIR: files beneath DIR, in any spelling of the path; links that lead out of DIR
 *    are not followed. DIR may be `scheme://folder`.
 *  - trust_imported=true: imported operations may do what the program's own operations may do; with
 *    allow_files, files still only in DIR.
 *  - allow_ops, deny_ops: the ops that may run at all.
 * Operations that the program adds to an imported graph (a saver, for instance) are its own and not
 * restricted, whatever values they read.
 *
 * A session whose graph has imported operations holds at most three quarters of the machine's
 * memory, unless they are trusted or memory_limit says otherwise. memory_limit counts the memory of
 * the session's runs and plans: planned blocks, values, scratch, fetched tensors until they are
 * released, values of variables until they are replaced. It does not count the caller's feeds, nor
 * memory that a kernel allocates by other means. A request beyond the limit fails with
 * RESOURCE_EXHAUSTED, naming operation, bytes and limit. */

/* State outlives a step: variables, queues, tables and the like. It lives in a container. The first
 * that exists of these is the container: the attribute `container` of the operation, the option
 * `container` of the session, the graph's own container. Sessions of one graph share the graph's
 * own container, and no other graph sees it. Exception: if no container is named, a queue, table or
 * other resource to which the program gave a `shared_name` is in the runtime's container
 * `localhost`, where every graph finds it. A variable's shared_name is its name, and that of an
 * imported operation comes from its file; neither shares. A session with a target that names no
 * container uses `localhost` of the tasks, as all of their clients do.
 * A graph's own container ends, and its memory is freed, when neither the graph nor a session of it
 * is left. Other containers end with their runtime, or their task. tw_session_reset,
 * tw_runtime_reset and tw_cluster_reset empty a container before that, and a task empties a
 * container that sessions lease (option `lease`) when the last of them there has ended. */

/* Creates a session of `graph`, which the session keeps alive. options: n texts "key=value", such
 * as "container=eval"; tw_session_option lists them. The caller owns *out_session. Errors:
 * INVALID_ARGUMENT naming the option and what it takes; FAILED_PRECONDITION if no plugin provides a
 * device. */
TW_EXPORT tw_status* tw_session_create(tw_graph* graph, const char* const* options, uint32_t n_options, tw_session** out_session);
/* Returns option i of a session; NULL past the end. Static. */
TW_EXPORT const tw_option* tw_session_option(uint32_t i);
/* Refuses new steps with FAILED_PRECONDITION and blocks until the running steps have ended. Steps
 * that wait at a resource (an empty queue, say) end with CANCELLED. Closing twice is fine.
 * Callbacks of asynchronous runs may still come. */
TW_EXPORT tw_status* tw_session_close(tw_session* session);
/* Empties a container of state: variables lose their values, queues, tables and the like are
 * removed, and their memory is freed once no running step holds it. This and all other sessions can
 * go on: a variable can be initialised again, and the next step that uses another resource creates
 * it anew. Concurrent steps may still use resources that they have found, and end with
 * FAILED_PRECONDITION if a resource is gone; so does a call that waits at a queue. container: its
 * name; NULL or "" means the session's default container, which is its graph's own for a session
 * without target and option `container`. For a session with a target, the container is emptied on
 * every task of the cluster. out_count: how many resources it held; may be NULL. Errors:
 * INVALID_ARGUMENT for a name that begins with '<', which is reserved for graphs; with a target
 * those of tw_cluster_reset. */
TW_EXPORT tw_status* tw_session_reset(tw_session* session, const char* container, uint64_t* out_count);
/* Closes and frees the session. Its callables may still be destroyed, but not run. NULL is fine. */
TW_EXPORT void tw_session_destroy(tw_session* session);

/* Runs one step and blocks until it has ended. feeds: a tensor for each of what->feeds, borrowed;
 * its dtype must be the value's, and its shape must agree with the value's. out_fetches: room for
 * what->n_fetches tensors; on success each is a reference that the caller owns, on failure all are
 * NULL. A fetched tensor is in host memory, whatever device made it, unless what->fetch_devices
 * says otherwise. options: may be NULL. Errors: INVALID_ARGUMENT (feeds, fetches; names the value),
 * the error of an operation (its message names op, node, device), FAILED_PRECONDITION (closed; an
 * uninitialised variable), DEADLINE_EXCEEDED, CANCELLED. After a failure variables keep the values
 * of finished updates, and the session can be used again. */
TW_EXPORT tw_status* tw_session_run(tw_session* session, const tw_signature* what, tw_tensor* const* feeds, const tw_run_options* options,
                                    tw_tensor** out_fetches);

/* Prepares a run: checks and looks up the signature once. Plans depend on the shapes of the feeds;
 * the first run of each set of shapes makes a plan. The caller owns *out_callable. Errors:
 * INVALID_ARGUMENT for a value or operation that is not of the session's graph, and for a value fed
 * twice. */
TW_EXPORT tw_status* tw_callable_create(tw_session* session, const tw_signature* what, tw_callable** out_callable);
/* As tw_session_run. A run with known shapes makes no heap allocation except for its fetches. */
TW_EXPORT tw_status* tw_callable_run(tw_callable* callable, tw_tensor* const* feeds, const tw_run_options* options,
                                     tw_tensor** out_fetches);
TW_EXPORT void tw_callable_destroy(tw_callable* callable); /* not while it runs; NULL is fine */

/* ---- Asynchronous runs ---- */

/* Called once, when an asynchronous run ends. status: NULL, or the failure, which the callback
 * releases. fetches: as many as the signature has, each a reference that the callback owns, all
 * NULL after a failure; the array itself is valid only during the call.
 * Thread: a runtime thread for callbacks; the callback may block, start further runs, and destroy
 * or close any object, the runtime included. */
typedef void (*tw_run_done)(void* user, tw_status* status, tw_tensor** fetches);

/* As tw_session_run, but returns when the run is accepted. At most `max_async_runs` (a session
 * option) accepted runs are in progress; a further call waits until one has ended. A run that waits
 * for other runs (at a queue, say) or for external events holds no thread. In a session of one
 * thread the run has ended, and done has been called, when the call returns; a run that done starts
 * there begins after done has returned. feeds: retained by the call. what: copied, with its lists.
 * options->cancel and options->stats must live until done is called; options->timeout_ns counts
 * from this call. If the call returns a failure, there is no run and done is not called. Errors,
 * returned: INVALID_ARGUMENT (the signature, a feed that is NULL, done is NULL),
 * FAILED_PRECONDITION (closed); done receives all others. */
TW_EXPORT tw_status* tw_session_run_async(tw_session* session, const tw_signature* what, tw_tensor* const* feeds,
                                          const tw_run_options* options, tw_run_done done, void* user);
/* The same for a callable, which must live until done is called. */
TW_EXPORT tw_status* tw_callable_run_async(tw_callable* callable, tw_tensor* const* feeds, const tw_run_options* options, tw_run_done done,
                                           void* user);

/* ---- Partial runs ---- */

/* Creates one step that runs in parts, so that a feed may depend on an earlier fetch. whole:
 * everything that the parts will feed, fetch and run. Nothing runs yet. The caller owns *out_run,
 * which keeps the session alive. It may be destroyed between any two parts; operations that have
 * not run then never run. Errors: as tw_callable_create.
 * Threads: one part at a time; a second is FAILED_PRECONDITION. */
TW_EXPORT tw_status* tw_partial_run_create(tw_session* session, const tw_signature* whole, tw_partial_run** out_run);
/* Runs a part and blocks until it has ended. part: feeds, fetches and targets of the whole that no
 * earlier part had. feeds (borrowed) and out_fetches (which the caller owns) are as in
 * tw_session_run. A part runs the operations that its fetches and targets need and no earlier part
 * ran, so each operation runs once over all parts, and later parts see the values of earlier parts.
 * A feed may come before it is needed, and is kept until then. options: of this part; a deadline or
 * a cancellation between parts ends nothing.
 * Errors: INVALID_ARGUMENT for an item that is not of the whole, comes twice, or needs a feed that
 * no part gave yet, naming both: nothing has run, and the part may be tried again. Any other error,
 * as in tw_session_run, ends the whole run: later parts fail with FAILED_PRECONDITION, naming the
 * first failure. A part after the last fails the same way; the last part releases all that was
 * kept. UNIMPLEMENTED and INVALID_ARGUMENT for values that cannot pass from one part to another:
 * values inside a loop of Enter and Exit nodes, and references to variables. */
TW_EXPORT tw_status* tw_partial_run_run(tw_partial_run* run, const tw_signature* part, tw_tensor* const* feeds,
                                        const tw_run_options* options, tw_tensor** out_fetches);
/* Returns how many fetches and targets of the whole are left; 0: all have run. */
TW_EXPORT uint64_t tw_partial_run_left(const tw_partial_run* run);
TW_EXPORT void tw_partial_run_destroy(tw_partial_run* run); /* not while a part runs; NULL is fine */

/* ---- Plans of a session ---- */

/* Counters since the session was created. Set `size` to sizeof(tw_session_info) before the call,
 * which fills the rest. */
typedef struct tw_session_info {
  uint32_t size, flags;
  uint64_t steps;       /* runs, failed ones included */
  uint64_t signatures;  /* kept sets of feeds, fetches and targets, those of callables included */
  uint64_t plans;       /* kept plans */
  uint64_t shapes;      /* kept sets of feed shapes with sizes and offsets; a plan serves any number of them */
  uint64_t hits;        /* runs that found both their plan and their shapes */
  uint64_t shape_hits;  /* runs that reused a plan made for other shapes and only computed sizes and offsets */
  uint64_t misses;      /* runs that made a plan */
  uint64_t evictions;   /* signatures of tw_session_run, and shapes, that were evicted */
  uint64_t block_bytes; /* memory for the values of steps, whether a step is running or not */
  uint64_t peak_bytes;  /* maximum of block_bytes so far */
  /* Bytes of lists that were swapped out of a device's memory and back in: see the option
   * swap_memory_above. */
  uint64_t swapped_out_bytes;
  uint64_t swapped_in_bytes;
} tw_session_info;

/* Fills *out_info as far as its size reaches. Errors: INVALID_ARGUMENT. */
TW_EXPORT tw_status* tw_session_report(tw_session* session, tw_session_info* out_info);

/* Returns the plan that a run of the callable with these shapes uses, as JSON; makes and keeps it,
 * as a run would, if there is none. feed_shapes: one per feed, all sizes known; NULL means the plan
 * of the latest run or, before any run, a plan for the shapes that the graph declares, with -1 for
 * unknown sizes, which is not kept. The caller owns *out_json. Errors: INVALID_ARGUMENT for shapes
 * that do not fit; the errors of making a plan. The text is an object
 *     {"engine": "fixed" (one node after the other, in the order of "nodes"), "counted" (a node runs when those it waits for have ended) or
 *      "frames" (the same, once per iteration in loops of Enter, Exit and the like),
 *      "order": "given" or "smallest_peak": how the order was chosen,
 *      "feeds" and "fetches": [name of a value: "x", or "x:1" for output 1],
 *      "nodes": [node], "copies": how many of them copy a value between memories, "copied_bytes": how much, as far as
 *      sizes are known, "saved_bytes": how much more a copy for each reader would be,
 *      "folded": [name of a node whose results were computed in advance],
 *      "merged": [{"node", "into"}: equal nodes, the second serves for both],
 *      "removed": [{"node", "into"}: nodes that change nothing, and the value that stands for their output],
 *      "rewrites": [{"rewriter", "plugin", "rule", "nodes": [name] that went, "added": [op] of the nodes that came, "refused": why
 *      nothing changed, or ""}]: substitutions of graph rewriters; "kept": [{"rewriter", "plugin", "node", "why"}]: nodes that they left,
 *      "claims": [{"compiler", "plugin", "nodes": [name], "loaded": true if it came from a cache, "refused": why they run one by one all
 *      the same, or ""}]: nodes that graph compilers took; "left": [{"compiler", "plugin", "node", "why"}]: nodes that they did not,
 *      "fallbacks": [{"node", "asked", "device", "why"}: nodes that run on another device than requested; see the option `fallback`],
 *      "layouts": [{"order": of axes, such as "NHWC", "transposes": how many values are transposed for it, "bytes": of these, as far as
 *      sizes are known, "nodes": [name]}]: nodes that run in another order of axes than the graph says,
 *      "sequences": [{"frame", "node"}]: loops of Enter, Exit and the like that became one node, which runs an iteration after the other,
 *      "places": [{"node", "op", "device", "why": "asked" (by a name), "shared" (with `with`, which has no choice), "only_there", "first"
 *      (see the option `prefer`), "follows" (the node `with`), "cost", "learned" (see `placement`), "fallback", "cost_ns": of its group,
 *      "other_ns": on the best other}], "block_bytes": [{"device", "bytes"}], "live_bytes": [planned, of each node], "peak_bytes": the
 *      most of these (blocks have gaps), "lower_bound_bytes": no order needs less, "unplanned_bytes": without reuse, "memory": {"budget",
 *      "before", "after", "ordered", "recomputed": [name], "swapped": [{"value", "bytes"}], "recompute_ns", "swap_ns", "step_ns"}}. Node:
 *     {"name", "op" ("" and "copy" for a copy), "device", "kernel": its spec text, "order": 0, 1, ..., "priority",
 *      "after": [order of a node that it waits for], "inputs": [value], "outputs": [value], "scratch": bytes,
 *      "part": [name of a node that it stands for], of a graph compiler's only, "dynamic": true if shapes are computed in every step}
 * A value is
 *     {"id": equal for the same value, "name" ("" for a copy), "dtype", "shape" (sizes, -1: not known before the step; null: nor the rank),
 *      "location": a device, "kind": "block" (planned), "held" (memory of its own), "constant", "feed" or "feed_view";
 *      of a block also "offset", "bytes", and "in_place_of": the id of the value whose memory it reuses or views, if there is one} */
TW_EXPORT tw_status* tw_callable_plan_json(tw_callable* callable, const tw_shape* feed_shapes, tw_buffer** out_json);

/* Creates a token that is not cancelled; the caller owns *out_token. */
TW_EXPORT tw_status* tw_cancel_token_create(tw_cancel_token** out_token);
/* Stops the runs that were given the token and makes later ones fail at once; running kernels end
 * first. Cannot be undone. NULL does nothing. */
TW_EXPORT void tw_cancel_token_cancel(tw_cancel_token* token);
TW_EXPORT uint32_t tw_cancel_token_cancelled(const tw_cancel_token* token); /* 1: yes */
TW_EXPORT void tw_cancel_token_destroy(tw_cancel_token* token);             /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
