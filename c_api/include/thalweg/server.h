/* Servers: one task of a cluster in this process. A cluster consists of jobs of tasks; each task
 * has an address. Any program can be a client: a session with the option `target=ADDRESS`, the
 * address of any of the tasks, runs its steps on the cluster. An operation names its task by its
 * device (`/job:ps/task:0`); an operation without a task runs on the target's task. State lives on
 * the task of its handle, for as long as that task lives. Several clients may share a cluster, and
 * with it the variables of one container.
 * Addresses are `scheme:address`; the plugin that provides the transport for the scheme defines the
 * form of the address. Tasks may start in any order. A cluster is JSON, {"ps": ["unix:ps0"],
 * "worker": ["unix:w0", "unix:w1"]}, or the contents of TF_CONFIG. With {"cluster": {...},
 * "membership": "etcd:host:2379/team"}, a service of a membership plugin tracks by leases which
 * tasks are alive.
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

/* Creates a server that does not listen yet. runtime: NULL means the default one; its devices run
 * the operations. cluster: JSON, as above. job, task: this task of the cluster; job NULL means the
 * JSON's "task". options: n texts "key=value"; tw_server_option lists them. The caller owns
 * *out_server.
 * Errors: INVALID_ARGUMENT naming what is wrong with the cluster or an option; NOT_FOUND for a task
 * that is not in the cluster. */
TW_EXPORT tw_status* tw_server_create(tw_runtime* runtime, const char* cluster, const char* job, uint32_t task, const char* const* options,
                                      uint32_t n_options, tw_server** out_server);
/* Returns option i of a server; NULL past the end. Static. */
TW_EXPORT const tw_option* tw_server_option(uint32_t i);
/* Listens at the task's address and serves clients on its own threads until it is stopped. Call it
 * once per server.
 * Errors: NOT_FOUND for a scheme that no plugin serves; PERMISSION_DENIED for a transport that
 * admits anybody, without the option `insecure`; UNAVAILABLE if the address is taken;
 * FAILED_PRECONDITION if it was started or stopped before. */
TW_EXPORT tw_status* tw_server_start(tw_server* server);
/* Returns the server's actual address, for a cluster that leaves a part of it open. The caller owns
 * *out_address. Errors: FAILED_PRECONDITION if it is not started. */
TW_EXPORT tw_status* tw_server_address(tw_server* server, tw_buffer** out_address);
/* Ends the steps that run here with UNAVAILABLE, disconnects clients and stops listening. Returns
 * when all work of the server has ended. A second call has no effect. */
TW_EXPORT tw_status* tw_server_stop(tw_server* server);
/* Waits until another thread has stopped the server. timeout_ns: nanoseconds, >= 0; 0 means no
 * limit. Errors: DEADLINE_EXCEEDED if it still runs; INVALID_ARGUMENT for a negative time. */
TW_EXPORT tw_status* tw_server_join(tw_server* server, int64_t timeout_ns);
/* Stops and frees the server. NULL is fine. */
TW_EXPORT void tw_server_destroy(tw_server* server);

/* Returns the status of all tasks of a cluster as JSON: {"tasks": [{"job", "task", "address",
 * "error", ...}]}. A task that answers has an empty error and "incarnation", "version", "age_s",
 * "memory_bytes" (of its process), "steps" (begun so far), "sessions" (open), "sandbox"
 * (confinement of its clients; "": none), "devices": [{"name", "used_bytes", "limit_bytes"}],
 * "received": [{"from", "values", "bytes"}] (values of steps, by the task that made them, or
 * "clients"), and "running": [{"session", "step", "age_s", "idle_s" (since the last value was sent
 * or received), "waits" (number of missing values), "waits_for": [{"value", "from"}] (some of
 * them)}]. Numbers beyond 53 bits are texts. runtime: NULL means the default one. options: n texts
 * "key=value", as of a session; they must contain `target`, the address of any task. timeout_ns:
 * nanoseconds within which tasks must answer; 0 means 5 seconds. The caller owns *out_json. Errors:
 * INVALID_ARGUMENT for a wrong option or no target; UNAVAILABLE, DEADLINE_EXCEEDED naming a target
 * that does not answer; those of a session with that target. */
TW_EXPORT tw_status* tw_cluster_status(tw_runtime* runtime, const char* const* options, uint32_t n_options, int64_t timeout_ns,
                                       tw_buffer** out_json);

/* Empties a container of state on every task of a cluster, as tw_session_reset does, without a
 * session. runtime, options, timeout_ns: as in tw_cluster_status. container: its name; NULL or ""
 * means `localhost`, the container of sessions that name none. out_count: how many resources it
 * held, over all tasks; may be NULL. Errors: those of tw_cluster_status; INVALID_ARGUMENT for a
 * name that begins with '<'; the failure of a task that does not answer, naming it: all other tasks
 * have emptied theirs then, and the call may be repeated. */
TW_EXPORT tw_status* tw_cluster_reset(tw_runtime* runtime, const char* const* options, uint32_t n_options, const char* container,
                                      int64_t timeout_ns, uint64_t* out_count);

#ifdef __cplusplus
}
#endif
#endif
