/* Sessions: running graphs. A session belongs to one graph and its runtime; each run is a step. For every set of feeds, fetches and
 * targets it makes a plan the first time and keeps it; a callable is such a plan in the hand. When the graph has grown since, new
 * operations can be run at once.
 * Plans: a run of feed shapes that were not seen before uses the plan of other shapes again where it fits, and then costs little more than
 * a warm one; else a plan is made. Options bound what is kept: max_plans, max_shape_plans, max_shapes. Orders and memory: the options order
 * and memory_budget, and tw_op_set_priority.
 * Clusters: with the option `target`, the address of a task (server.h), steps run on the tasks of a cluster, state stays there, and
 * failures name the task. Closing such a session ends its steps with CANCELLED. Step statistics are those of all tasks, by one clock. It
 * has no plans as JSON yet (UNIMPLEMENTED), and its report tells of steps and signatures only.
 *
 * Threads: a session and its callables may be used by any number of threads at once; steps over the same variables then interleave, each
 * update being whole. Everything here: since 0.1. */
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

/* What a run is given and gives. Set `size` to sizeof(tw_signature) and what is not used to 0. A run computes only what its fetches and
 * targets need. A feed replaces the value, whoever makes it: placeholders and intermediate values alike. */
typedef struct tw_signature {
  uint32_t size, flags;
  const tw_output* feeds;             /* n_feeds values, each once */
  const tw_output* fetches;           /* n_fetches values; may repeat, may be fed */
  const tw_operation* const* targets; /* n_targets operations that run for what they do */
  uint32_t n_feeds, n_fetches, n_targets, reserved;
  /* Devices, such as "FAKE:0", in whose memory feeds are given and fetches are left: n_feeds and n_fetches names. NULL, as a list or as a
   * name: host memory. A feed that lies elsewhere is copied before the step. */
  const char* const* feed_devices;
  const char* const* fetch_devices;
} tw_signature;

/* How a run may end early, and who watches it. Set `size` to sizeof(tw_run_options) and what is not used to 0. */
typedef struct tw_run_options {
  uint32_t size, flags;
  int64_t timeout_ns;      /* nanoseconds from the start of the run, >= 0; 0: none. Then DEADLINE_EXCEEDED */
  tw_cancel_token* cancel; /* NULL: none. Then CANCELLED. Must live until the run returns */
  tw_step_stats* stats;    /* NULL: none. Filled by the run, see step_stats.h. Must live until the run returns */
} tw_run_options;

/* Operations that came in through tw_graph_import are not trusted: the program did not write them. A session refuses, when a run first
 * needs it and before anything runs, one that touches files, network or system (PERMISSION_DENIED, naming it; plugin/op.h says which do),
 * unless its options say otherwise:
 *  - allow_files=DIR: files beneath DIR, however their paths are written; no links are followed out of it. DIR may be `scheme://folder`.
 *  - trust_imported=true: all that the program's own operations may do; with allow_files, files still only there.
 *  - allow_ops, deny_ops: which ops may run at all.
 * What the program adds to an imported graph (a saver, for instance) is its own and free, whatever values it reads.
 *
 * A session whose graph has imported operations holds at most three quarters of the machine's memory, unless they are trusted or
 * memory_limit says otherwise. memory_limit counts what runs and plans of the session hold: planned blocks, values, scratch, fetched
 * tensors until they are released, values of variables until they are replaced; not the caller's feeds, nor what a kernel takes for itself
 * by other means. What does not fit is RESOURCE_EXHAUSTED, naming operation, bytes and limit. */

/* State is what outlives a step: variables, queues, tables and the like. It lives in a container: in the one that its operation names
 * (attribute `container`), else in the one that the session names (option `container`), else in its graph's own, which the sessions of the
 * graph share and no other graph sees; but a queue, table or other resource to which the program gave a `shared_name` is then in the
 * runtime's container `localhost`, where every graph finds it. A variable's shared_name is its name, and that of an imported operation its
 * file's: neither shares. A session with a target that names no container uses `localhost` of the tasks, as all of their clients do.
 * A graph's own container ends, and its memory is given back, when neither the graph nor a session of it is left; others end with their
 * runtime, or their task. A container is emptied before that by tw_session_reset, tw_runtime_reset and tw_cluster_reset. */

/* A session of `graph`, which the session keeps alive. options: n texts "key=value", such as "container=eval"; tw_session_option lists
 * them. The caller owns *out_session. Errors: INVALID_ARGUMENT naming the option and what it takes; FAILED_PRECONDITION if no plugin
 * provides a device. */
TW_EXPORT tw_status* tw_session_create(tw_graph* graph, const char* const* options, uint32_t n_options, tw_session** out_session);
/* Option i of a session; NULL past the end. Static. */
TW_EXPORT const tw_option* tw_session_option(uint32_t i);
/* Refuses new steps with FAILED_PRECONDITION and blocks until those that run have ended. Steps that wait at a resource (a queue that is
 * empty, say) end with CANCELLED. Closing twice is fine. Callbacks of runs that were started without waiting may still come. */
TW_EXPORT tw_status* tw_session_close(tw_session* session);
/* Empties a container of state: variables have no value, queues, tables and the like are gone, and their memory is given back once no
 * running step holds it. The session, and every other, goes on: a variable can be initialised again, the rest is made anew by the next step
 * that uses it. Steps that run meanwhile may still use what they have found, and end FAILED_PRECONDITION where it is gone; a call that
 * waits at a queue ends so. container: its name; NULL or "": the session's own default one, which of a session without target and option
 * `container` is its graph's. Of a session with a target: that of every task of the cluster. out_count: how many things it held; may be
 * NULL. Errors: INVALID_ARGUMENT for a name that begins with '<', which are of graphs; with a target those of tw_cluster_reset. */
TW_EXPORT tw_status* tw_session_reset(tw_session* session, const char* container, uint64_t* out_count);
/* Closes and frees. Callables of the session may still be destroyed, not run. NULL is fine. */
TW_EXPORT void tw_session_destroy(tw_session* session);

/* One step; blocks until it is over. feeds: a tensor for each of what->feeds, borrowed, whose dtype must be the value's and whose shape
 * must agree with it. out_fetches: room for what->n_fetches tensors; on success each is a reference that the caller owns, on failure all
 * are NULL. A fetched tensor lies in host memory whatever device made it, unless what->fetch_devices says otherwise. options: may be NULL.
 * Errors: INVALID_ARGUMENT (feeds, fetches; names the value), whatever an operation fails with (its message names op, node, device),
 * FAILED_PRECONDITION (closed; an uninitialised variable), DEADLINE_EXCEEDED, CANCELLED. Variables keep what finished updates gave them,
 * and the session can be used again. */
TW_EXPORT tw_status* tw_session_run(tw_session* session, const tw_signature* what, tw_tensor* const* feeds, const tw_run_options* options,
                                    tw_tensor** out_fetches);

/* The same, prepared: the signature is checked and looked up once. Plans depend on the shapes that are fed: the first run of each makes
 * one. The caller owns *out_callable. Errors: INVALID_ARGUMENT for a value or operation that is none of the session's graph, and for a
 * value fed twice. */
TW_EXPORT tw_status* tw_callable_create(tw_session* session, const tw_signature* what, tw_callable** out_callable);
/* As tw_session_run. A run of shapes seen before makes no heap allocation beyond what is fetched. */
TW_EXPORT tw_status* tw_callable_run(tw_callable* callable, tw_tensor* const* feeds, const tw_run_options* options,
                                     tw_tensor** out_fetches);
TW_EXPORT void tw_callable_destroy(tw_callable* callable); /* not while it runs; NULL is fine */

/* ---- Without waiting ---- */

/* How a run that was started ends: called once. status: NULL, or the failure, which the callback releases. fetches: as many as the
 * signature has, each a reference that the callback owns, all NULL after a failure; the array itself ends with the call.
 * Thread: one of the runtime's for this; it may block, start further runs, and destroy or close what it likes, the runtime included. */
typedef void (*tw_run_done)(void* user, tw_status* status, tw_tensor** fetches);

/* As tw_session_run, but returns when the run is accepted. Runs that were accepted and are not over are at most `max_async_runs` (a session
 * option): a call beyond that waits until one is over. While a run waits for other runs (at a queue, say) or for what happens elsewhere, it
 * holds no thread. In a session of one thread the run is over, and done has been called, when the call
 * returns; but a run that done starts there comes after done has returned. feeds: retained by the call; `what` and its lists are copied;
 * options->cancel and options->stats must live until done is called, and the time of options->timeout_ns starts now. A failure that is
 * returned, rather than given to done, means that there was no run: done is not called. Errors, returned: INVALID_ARGUMENT (the signature,
 * a feed that is NULL, done is NULL), FAILED_PRECONDITION (closed); all others go to done. */
TW_EXPORT tw_status* tw_session_run_async(tw_session* session, const tw_signature* what, tw_tensor* const* feeds,
                                          const tw_run_options* options, tw_run_done done, void* user);
/* The same of a callable, which must live until done is called. */
TW_EXPORT tw_status* tw_callable_run_async(tw_callable* callable, tw_tensor* const* feeds, const tw_run_options* options, tw_run_done done,
                                           void* user);

/* ---- A run in parts ---- */

/* One step that feeds and fetches little by little: what to feed next may depend on what was fetched before. whole: all that its parts will
 * feed, fetch and run. Nothing runs yet. The caller owns *out_run, which keeps the session; it may be destroyed at any time between parts,
 * and what was not run then never is. Errors: as tw_callable_create.
 * Threads: one part at a time; a second is FAILED_PRECONDITION. */
TW_EXPORT tw_status* tw_partial_run_create(tw_session* session, const tw_signature* whole, tw_partial_run** out_run);
/* Runs a part and blocks until it is over. part: feeds, fetches and targets of the whole that no earlier part had; feeds, borrowed, and
 * out_fetches, which the caller owns, as of tw_session_run. It runs what its fetches and targets need and no earlier part ran, so every
 * operation runs once in all parts together, and what one part computes later ones see as it was. A feed may come before anything needs
 * it, and is kept until then. options: of this part; a deadline or a token between parts ends nothing.
 * Errors: INVALID_ARGUMENT for what is not of the whole, comes twice, or needs a feed that no part gave yet, naming both: nothing has run,
 * and the part may be tried again. Any other, as of tw_session_run, ends the whole run: later parts are FAILED_PRECONDITION, saying what
 * failed. So is a part after the last, which lets go of all that was kept. UNIMPLEMENTED and INVALID_ARGUMENT of what cannot pass from one
 * part to another: values inside a loop of Enter and Exit nodes, and references to variables. */
TW_EXPORT tw_status* tw_partial_run_run(tw_partial_run* run, const tw_signature* part, tw_tensor* const* feeds,
                                        const tw_run_options* options, tw_tensor** out_fetches);
/* How many fetches and targets of the whole are left; 0: all is done. */
TW_EXPORT uint64_t tw_partial_run_left(const tw_partial_run* run);
TW_EXPORT void tw_partial_run_destroy(tw_partial_run* run); /* not while a part runs; NULL is fine */

/* ---- What a session has planned ---- */

/* Counts since the session was made. Set `size` to sizeof(tw_session_info) before the call, which fills the rest. */
typedef struct tw_session_info {
  uint32_t size, flags;
  uint64_t steps;       /* runs, failed ones included */
  uint64_t signatures;  /* sets of feeds, fetches and targets that are kept, those of callables included */
  uint64_t plans;       /* plans that are kept */
  uint64_t shapes;      /* sets of feed shapes whose sizes and offsets are kept; a plan serves any number of them */
  uint64_t hits;        /* runs that found both their plan and their shapes */
  uint64_t shape_hits;  /* runs that found a plan made for other shapes and only had to work out sizes and offsets */
  uint64_t misses;      /* runs that a plan had to be made for */
  uint64_t evictions;   /* signatures of tw_session_run, and shapes, that were dropped for others */
  uint64_t block_bytes; /* memory that holds the values of steps, whether one is running or not */
  uint64_t peak_bytes;  /* the most that this has been */
  /* Of lists on their way out of a device's memory and back into one: see the option swap_memory_above. */
  uint64_t swapped_out_bytes;
  uint64_t swapped_in_bytes;
} tw_session_info;

/* What the session has done and keeps. out_info: as far as its size reaches. Errors: INVALID_ARGUMENT. */
TW_EXPORT tw_status* tw_session_report(tw_session* session, tw_session_info* out_info);

/* The plan that a run of the callable with these shapes has, as JSON; made and kept, as a run would, if there is none.
 * feed_shapes: one per feed, all sizes known; NULL: the plan of the latest run, or, before any, one for the shapes that the graph declares,
 * unknown sizes being -1, which is not kept. The caller owns *out_json. Errors: INVALID_ARGUMENT for shapes that do not fit; whatever
 * making a plan fails with. The text is an object
 *     {"engine": "fixed" (one node after the other, in the order of "nodes"), "counted" (a node runs when those it waits for are over) or
 *      "frames" (the same, each time anew in loops of Enter, Exit and the like),
 *      "order": "given" or "smallest_peak": how the order was chosen,
 *      "feeds" and "fetches": [name of a value: "x", or "x:1" for output 1],
 *      "nodes": [node], "copies": how many of them copy a value between memories, "copied_bytes": how much, as far as
 *      sizes are known, "saved_bytes": how much more a copy for each reader would be,
 *      "folded": [name of a node whose results were computed in advance],
 *      "merged": [{"node", "into"}: equal nodes, the second serves for both],
 *      "removed": [{"node", "into"}: nodes that change nothing, and the value that stands for their output],
 *      "claims": [{"compiler", "plugin", "nodes": [name], "loaded": whether it was kept from before, "refused": why they run one by one all
 *      the same, or ""}]: what graph compilers took; "left": [{"compiler", "plugin", "node", "why"}]: what they did not,
 *      "fallbacks": [{"node", "asked", "device", "why"}: nodes that run on another device than was asked; see the option `fallback`],
 *      "layouts": [{"order": of axes, such as "NHWC", "transposes": how many values are transposed for it, "bytes": of these, as far as
 *      sizes are known, "nodes": [name]}]: nodes that run in another order of axes than the graph says,
 *      "sequences": [{"frame", "node"}]: loops of Enter, Exit and the like that became one node, which runs an iteration after the other,
 *      "places": [{"node", "op", "device", "why": "asked" (its device, or the session's, admits no other), "shared" (a device with `with`,
 *      which leaves no choice), "only_there" (no other has kernels for it), "first" (the first that has, host memory first), "cost",
 *      "learned" (see the option `placement`), or "fallback", "cost_ns": what its group is thought to take there, "other_ns": and on the
 *      best of the others}], "block_bytes": [{"device", "bytes"}], "peak_bytes": the most that live values take together at any node
 *      (block_bytes also has gaps), "unplanned_bytes": what they would take if no memory were used again}. A node is
 *     {"name", "op" ("" and "copy" for a copy), "device", "kernel": its spec text, "order": 0, 1, ..., "priority",
 *      "after": [order of a node that it waits for], "inputs": [value], "outputs": [value], "scratch": bytes,
 *      "part": [name of a node that it stands for], of a graph compiler's only, "dynamic": whether shapes are worked out in every step}
 * A value is
 *     {"id": equal for the same value, "name" ("" for a copy), "dtype", "shape" (sizes, -1: not known before the step; null: nor the rank),
 *      "location": a device, "kind": "block" (planned), "held" (memory of its own), "constant", "feed" or "feed_view";
 *      of a block also "offset", "bytes", and "in_place_of": the id of the value whose memory it takes over or shows, if there is one} */
TW_EXPORT tw_status* tw_callable_plan_json(tw_callable* callable, const tw_shape* feed_shapes, tw_buffer** out_json);

/* A token not yet cancelled; the caller owns *out_token. */
TW_EXPORT tw_status* tw_cancel_token_create(tw_cancel_token** out_token);
/* Stops the runs that were given the token and makes later ones fail at once; kernels that are running end first. Cannot be undone.
 * NULL does nothing. */
TW_EXPORT void tw_cancel_token_cancel(tw_cancel_token* token);
TW_EXPORT uint32_t tw_cancel_token_cancelled(const tw_cancel_token* token); /* 1: yes */
TW_EXPORT void tw_cancel_token_destroy(tw_cancel_token* token);             /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
