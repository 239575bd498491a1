/* Runtimes hold the plugins, devices, threads and state (variables) that the sessions of a program
 * share. Most programs need none of this: if a call takes a runtime, NULL stands for the process's
 * default one, which the first use makes with default options.
 * Create a runtime to choose options, or to separate two parts of a program: runtimes share
 * nothing. Tensors belong to no runtime, so weights can move from one runtime to another as
 * tensors; see variable.h.
 * Threads: any.
 * fork: a process may fork while no other thread is inside a call, and the child may use the
 * runtimes that it inherits. Their threads do not exist in the child, so everything runs on the
 * calling thread, and asynchronous runs never end. Do not use devices with drivers of their own
 * (OpenCL) in the child unless the driver allows it. Everything here: since 0.1. */
#ifndef THALWEG_RUNTIME_H
#define THALWEG_RUNTIME_H
#include "thalweg/export.h"
#include "thalweg/log.h"
#include "thalweg/option.h"
#include "thalweg/thread_pool.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Creates a runtime, loads its plugins and starts its threads; may block for as long as devices
 * take to start.
 * options: n texts "key=value", such as "threads=2"; tw_runtime_option lists them. The later of two
 * with one key wins.
 * A plugin that fails to load is no error here; plugin.h reports it. The caller owns *out_runtime.
 * Errors: INVALID_ARGUMENT naming an option that is unknown or has a value that it cannot take. */
TW_EXPORT tw_status* tw_runtime_create(const char* const* options, uint32_t n_options, tw_runtime** out_runtime);

/* Query function of a plugin that is linked into the program: tw_plugin_query_v0_NAME of sources
 * compiled with -DTHALWEG_STATIC=NAME (plugin/plugin.h). */
struct tw_plugin;
struct tw_host_info;
typedef const struct tw_plugin* (*tw_linked_plugin)(const struct tw_host_info* host);

/* Options, log, threads and plugins of a new runtime. Set `size` to sizeof(tw_runtime_config) and
 * unused fields to 0. */
typedef struct tw_runtime_config {
  uint32_t size, flags;
  const char* const* options; /* as for tw_runtime_create */
  uint32_t n_options;
  uint32_t log_level; /* the log goes to `log` from the start; tw_log_set_sink would miss what plugins write while they load */
  tw_log_sink log;    /* as in log.h; NULL: silent */
  void* log_user;
  /* Threads of the program. The runtime then starts no compute threads. It still starts threads
   * that mostly wait, when they are first needed: for kernels that block (files), and as callers of
   * asynchronous runs (tw_session_run_async). The option `threads` bounds how many are used. The
   * record is copied. NULL: the runtime has threads of its own. */
  const tw_thread_pool* threads;
  const tw_linked_plugin* plugins; /* loaded in this order, before plugins from files; a failure of one is an error here; NULL: none */
  uint32_t n_plugins, reserved;
} tw_runtime_config;

/* The same, with a log, threads and linked plugins. Errors: those of tw_runtime_create;
 * INVALID_ARGUMENT for a pool that cannot schedule; those of tw_plugin_load for a linked plugin.
 * After a failure the pool is not used, and its `release` is not called. */
TW_EXPORT tw_status* tw_runtime_create_with(const tw_runtime_config* config, tw_runtime** out_runtime);
/* Returns the process's default runtime; the caller owns a reference. The first call that needs it
 * makes it, and it lives until the process ends. Environment: THALWEG_OPTIONS holds its options,
 * separated by `;`, for instance "threads=1;load_plugins=false". A process with more rights than
 * its starter (set-user-ID, file capabilities) ignores the variable.
 * Errors: those of tw_runtime_create. */
TW_EXPORT tw_status* tw_runtime_default(tw_runtime** out_runtime);
TW_EXPORT void tw_runtime_retain(tw_runtime* runtime); /* NULL is fine */
/* Releases a reference. Graphs and sessions hold references of their own, so the call may come
 * before their end. NULL is fine. */
TW_EXPORT void tw_runtime_release(tw_runtime* runtime);

/* Returns option i of a runtime; NULL past the end. Static. */
TW_EXPORT const tw_option* tw_runtime_option(uint32_t i);

/* Empties a container of state in this process, as tw_session_reset does, without a session.
 * runtime: NULL means the default one. container: its name; NULL or "" means `localhost`, which
 * local graphs share by `shared_name` and clients of a server in this process use by default.
 * out_count: how many resources it held; may be NULL. Errors: INVALID_ARGUMENT for a name that
 * begins with '<', which is reserved for graphs. */
TW_EXPORT tw_status* tw_runtime_reset(tw_runtime* runtime, const char* container, uint64_t* out_count);

/* Returns the unused memory that the runtime's pools keep for later, of all devices enumerated so
 * far and of the host, to the devices and the system. Memory in use stays. Sessions do this when
 * they are closed; a program that will be idle may do it at any time. runtime: NULL means the
 * default one. Errors: those of making the default runtime. Threads: any. */
TW_EXPORT tw_status* tw_runtime_give_back(tw_runtime* runtime);

#ifdef __cplusplus
}
#endif
#endif
