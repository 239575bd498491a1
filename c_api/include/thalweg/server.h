/* Servers: one task of a cluster in this process. A cluster is jobs of tasks, each reached at an address; any program can be the client of
 * one: a session made with the option `target=ADDRESS`, the address of any of its tasks, runs its steps on them. Operations say by their
 * device where they run (`/job:ps/task:0`); those that say nothing run on the target's task, and state is where its handle is, for as long
 * as its task lives. Several clients may share a cluster, and with it the variables of one container.
 * Addresses are `scheme:address`; the plugin that provides the transport of the scheme says what the address is. Tasks may start in any
 * order. A cluster is JSON, {"ps": ["unix:ps0"], "worker": ["unix:w0", "unix:w1"]}, or what TF_CONFIG holds. With {"cluster": {...},
 * "membership": "etcd:host:2379/team"}, a service of a membership plugin says which tasks are alive, by leases.
 * Failures of steps name the task and its address. Threads: any. Everything here: since 0.1. */
#ifndef THALWEG_SERVER_H
#define THALWEG_SERVER_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/option.h"
#include "thalweg/runtime.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_server tw_server;

/* A server that does not listen yet. runtime: NULL: the default one; its devices do the work. cluster: JSON, as above. job, task: who of it
 * this is; job NULL: as the JSON's "task" says. options: n texts "key=value"; tw_server_option lists them. The caller owns *out_server.
 * Errors: INVALID_ARGUMENT naming what is wrong with the cluster or an option; NOT_FOUND for a task that the cluster has not. */
TW_EXPORT tw_status* tw_server_create(tw_runtime* runtime, const char* cluster, const char* job, uint32_t task, const char* const* options,
                                      uint32_t n_options, tw_server** out_server);
/* Option i of a server; NULL past the end. Static. */
TW_EXPORT const tw_option* tw_server_option(uint32_t i);
/* Listens at the task's address and serves clients, on threads of its own, until it is stopped. Once a server.
 * Errors: NOT_FOUND for a scheme that no plugin serves; PERMISSION_DENIED for a transport that lets in anybody, without the option
 * `insecure`; UNAVAILABLE where the address is taken; FAILED_PRECONDITION when it was started or stopped before. */
TW_EXPORT tw_status* tw_server_start(tw_server* server);
/* The address that it is reached at, where the cluster leaves a part of it open. The caller owns *out_address. Errors:
 * FAILED_PRECONDITION unless it is started. */
TW_EXPORT tw_status* tw_server_address(tw_server* server, tw_buffer** out_address);
/* Ends steps that run here with UNAVAILABLE, lets clients go and listens no more. Returns when nothing of it runs. Again: no effect. */
TW_EXPORT tw_status* tw_server_stop(tw_server* server);
/* Waits until another thread has stopped it. timeout_ns: nanoseconds, >= 0; 0: for ever. Errors: DEADLINE_EXCEEDED: it runs on;
 * INVALID_ARGUMENT for a negative time. */
TW_EXPORT tw_status* tw_server_join(tw_server* server, int64_t timeout_ns);
/* Stops and frees. NULL is fine. */
TW_EXPORT void tw_server_destroy(tw_server* server);

/* What the tasks of a cluster say of themselves, as JSON: {"tasks": [{"job", "task", "address", "error", ...}]}. A task that answers has an
 * empty error and "incarnation", "version", "age_s", "memory_bytes" (of its process), "steps" (that were begun), "sessions" (that are
 * open), "sandbox" (what confines its clients; "": nothing), "devices": [{"name", "used_bytes", "limit_bytes"}], "received": [{"from",
 * "values", "bytes"}] (values of steps, by the task that made them, or "clients"), and "running": [{"session", "step", "age_s", "idle_s"
 * (since a value came or went), "waits" (values that are to come), "waits_for": [{"value", "from"}] (some of them)}]. Numbers beyond 53
 * bits are texts. runtime: NULL: the default one. options: n texts "key=value", as of a session; `target`, the address of any task, must be
 * among them. timeout_ns: nanoseconds in which tasks have to answer; 0: 5 seconds. The caller owns *out_json. Errors: INVALID_ARGUMENT for
 * a wrong option or no target; UNAVAILABLE, DEADLINE_EXCEEDED naming a target that does not answer; those of a session with that target. */
TW_EXPORT tw_status* tw_cluster_status(tw_runtime* runtime, const char* const* options, uint32_t n_options, int64_t timeout_ns,
                                       tw_buffer** out_json);

/* Empties a container of state on every task of a cluster, as tw_session_reset does, without a session. runtime, options, timeout_ns: as of
 * tw_cluster_status. container: its name; NULL or "": `localhost`, in which sessions are that name none. out_count: how many things it
 * held, of all tasks together; may be NULL. Errors: those of tw_cluster_status; INVALID_ARGUMENT for a name that begins with '<'; what a
 * task that does not answer fails with, naming it: all others have emptied theirs then, and it may be done again. */
TW_EXPORT tw_status* tw_cluster_reset(tw_runtime* runtime, const char* const* options, uint32_t n_options, const char* container,
                                      int64_t timeout_ns, uint64_t* out_count);

#ifdef __cplusplus
}
#endif
#endif
