/* Runtimes: plugins, devices, threads and the state (variables) that the sessions of a program share. Most programs need none of this:
 * wherever a call takes a runtime, NULL stands for the process's default one, made with default options on first use.
 * Make your own to choose options, or to keep two parts of a program apart: runtimes share nothing by themselves. Tensors belong to no
 * runtime: weights go from one to another as what they are, see variable.h.
 * Threads: any.
 * fork: while no other thread is inside a call, a process may fork, and its child may go on with the runtimes that it inherits: their
 * threads are not there, so everything runs on the calling thread, and runs that were started without waiting never end. Devices with
 * drivers of their own (OpenCL) must not be used in the child unless the driver says that it may. Everything here: since 0.1. */
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

/* A runtime with its plugins loaded and its threads started; may block for as long as devices take to start.
 * options: n texts "key=value", such as "threads=2"; tw_runtime_option lists them. The later of two with one key wins.
 * A plugin that fails to load is no error here; see plugin.h for what became of it. The caller owns *out_runtime.
 * Errors: INVALID_ARGUMENT naming an option that is unknown or has a value that it cannot take. */
TW_EXPORT tw_status* tw_runtime_create(const char* const* options, uint32_t n_options, tw_runtime** out_runtime);

/* A plugin that is linked into the program: its query function, tw_plugin_query_v0_NAME of sources compiled with -DTHALWEG_STATIC=NAME
 * (plugin/plugin.h). */
struct tw_plugin;
struct tw_host_info;
typedef const struct tw_plugin* (*tw_linked_plugin)(const struct tw_host_info* host);

/* All that a runtime can be made with. Set `size` to sizeof(tw_runtime_config) and what is not used to 0. */
typedef struct tw_runtime_config {
  uint32_t size, flags;
  const char* const* options; /* as for tw_runtime_create */
  uint32_t n_options;
  uint32_t log_level; /* the log goes to `log` from the start, where tw_log_set_sink comes too late for what plugins say as they load */
  tw_log_sink log;    /* as in log.h; NULL: silent */
  void* log_user;
  /* The program's threads: the runtime then starts none that compute. Those that it still starts, when they are first needed, wait more
   * than they compute: for kernels that block (files), and as callers of runs that nobody waits for (tw_session_run_async). The option
   * `threads` bounds how many are used. Copied. NULL: the runtime has threads of its own. */
  const tw_thread_pool* threads;
  const tw_linked_plugin* plugins; /* loaded in this order, before any from files; one that fails is an error here; NULL: none */
  uint32_t n_plugins, reserved;
} tw_runtime_config;

/* The same with more than options. Errors: those of tw_runtime_create; INVALID_ARGUMENT for a pool that cannot schedule; those of
 * tw_plugin_load for a linked plugin; if it fails, the pool is not used, and its `release` not called. */
TW_EXPORT tw_status* tw_runtime_create_with(const tw_runtime_config* config, tw_runtime** out_runtime);
/* The process's default runtime; the caller owns a reference. It is made by the first call that needs it and stays until the process
 * ends. Environment: THALWEG_OPTIONS holds its options, separated by `;`, for instance "threads=1;load_plugins=false"; a
 * process with more rights than who started it (set-user-ID, file capabilities) does not look there.
 * Errors: those of tw_runtime_create. */
TW_EXPORT tw_status* tw_runtime_default(tw_runtime** out_runtime);
TW_EXPORT void tw_runtime_retain(tw_runtime* runtime); /* NULL is fine */
/* Graphs and sessions hold references of their own, so this may come before their end. NULL is fine. */
TW_EXPORT void tw_runtime_release(tw_runtime* runtime);

/* Option i of a runtime; NULL past the end. Static. */
TW_EXPORT const tw_option* tw_runtime_option(uint32_t i);

/* Empties a container of state in this process, as tw_session_reset does, without a session. runtime: NULL: the default one. container: its
 * name; NULL or "": `localhost`, which local graphs share by `shared_name` and clients of a server in this process by default. out_count:
 * how many things it held; may be NULL. Errors: INVALID_ARGUMENT for a name that begins with '<', which are of graphs. */
TW_EXPORT tw_status* tw_runtime_reset(tw_runtime* runtime, const char* container, uint64_t* out_count);

#ifdef __cplusplus
}
#endif
#endif
