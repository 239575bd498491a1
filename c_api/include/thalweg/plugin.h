/* Plugins as an application sees them: loading one, unloading it, and what became of each that was found. Writing one: plugin/plugin.h.
 * A runtime looks for plugins in its option plugin_path, in THALWEG_PLUGIN_PATH, in the user's folder and beside libthalweg.so; a process
 * with more rights than who started it, only in the first and the last.
 * A plugin runs with the rights of the process, so none is loaded that others could change: its file, the folder that holds it and those
 * above must belong to root or the user and be writable by nobody else. Fine are a group that is the user's alone, sticky folders (/tmp)
 * further up, and folders that lead to libthalweg.so itself. The runtime option trust_plugin_folders=true switches this off.
 * A file that is new is first looked at by a helper process, thalweg/thalweg-probe beside libthalweg.so; what crashes there, or is not
 * done after five seconds, is quarantined. What is learnt is kept in the user's cache (runtime option plugin_cache), so that later starts
 * open no plugin: each is loaded when something of it is first used. Runtime options: plugin_probe for where no helper can run,
 * plugin_allow for a list of those that may be loaded, plugin_prefer for who wins where two bring the same. Threads: any. Everything here:
 * since 0.1. */
#ifndef THALWEG_PLUGIN_H
#define THALWEG_PLUGIN_H
#include "thalweg/export.h"
#include "thalweg/runtime.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {
  TW_PLUGIN_LOADED = 0,
  TW_PLUGIN_FAILED = 1,      /* could not be loaded */
  TW_PLUGIN_DISABLED = 2,    /* left out by an option */
  TW_PLUGIN_SHADOWED = 3,    /* another brings the same and goes before it: the same file, id, op, ... */
  TW_PLUGIN_KNOWN = 4,       /* fine, and loaded when something of it is first used */
  TW_PLUGIN_QUARANTINED = 5, /* it crashed or hung when it was looked at */
  TW_PLUGIN_NOT_ALLOWED = 6  /* not on the list of the runtime option plugin_allow */
};

/* Loads one plugin file, all of it or nothing; its ops and devices are there at once. May block. Loading the same file again, or one with
 * the same contents, does nothing. runtime: NULL is the default one. path: borrowed. Errors: NOT_FOUND (no such file); PERMISSION_DENIED
 * (others could change it: who, and what to do; or it is not on the allow-list); FAILED_PRECONDITION (another ABI: both numbers and what to
 * do; or nobody can look at it first); ALREADY_EXISTS (id, op or kernel taken: by whom); ABORTED (it crashed when it was looked at) and
 * DEADLINE_EXCEEDED (it was not done in time), in which stage; whatever its init failed with. Threads: any; loads are one by one. */
TW_EXPORT tw_status* tw_plugin_load(tw_runtime* runtime, const char* path);

/* Shuts a plugin down and closes its file. Nothing of it comes back by itself; tw_plugin_load loads it again. May block.
 * runtime: NULL is the default one. id: borrowed; the plugin's id, not its file.
 * Errors: NOT_FOUND (none of that id is loaded); FAILED_PRECONDITION saying what of it is in use (graphs with its ops; sessions with
 * its kernels or devices; lists of ops or devices that have it; resources of its types; tensors on its devices; kernels of other plugins
 * for its ops), or that it is linked in. Nothing has changed then. Threads: any, but none may use anything of the plugin meanwhile. */
TW_EXPORT tw_status* tw_plugin_unload(tw_runtime* runtime, const char* id);

typedef struct tw_plugins tw_plugins; /* every plugin that was looked at, as it was when the list was made */

/* runtime: NULL is the default one. The caller owns *out_plugins. */
TW_EXPORT tw_status* tw_plugins_create(tw_runtime* runtime, tw_plugins** out_plugins);
TW_EXPORT void tw_plugins_destroy(tw_plugins* plugins); /* NULL is fine */
TW_EXPORT uint32_t tw_plugins_count(const tw_plugins* plugins);
/* About plugin i; the texts live as long as the list; NULL past the end. */
TW_EXPORT const char* tw_plugins_id(const tw_plugins* plugins, uint32_t i); /* "" if that could not be found out */
TW_EXPORT const char* tw_plugins_version(const tw_plugins* plugins, uint32_t i);
TW_EXPORT const char* tw_plugins_path(const tw_plugins* plugins, uint32_t i);   /* "" for one linked into the program */
TW_EXPORT const char* tw_plugins_build(const tw_plugins* plugins, uint32_t i);  /* "compiler=...; ..." */
TW_EXPORT const char* tw_plugins_reason(const tw_plugins* plugins, uint32_t i); /* why it is not loaded, or where it was found */
TW_EXPORT const char* tw_plugins_fix(const tw_plugins* plugins, uint32_t i);    /* what to do; "" if loaded */
TW_EXPORT uint32_t tw_plugins_state(const tw_plugins* plugins, uint32_t i);     /* TW_PLUGIN_*; FAILED past the end */
TW_EXPORT uint32_t tw_plugins_kernel_count(const tw_plugins* plugins, uint32_t i);
TW_EXPORT uint32_t tw_plugins_op_count(const tw_plugins* plugins, uint32_t i);
TW_EXPORT const char* tw_plugins_op(const tw_plugins* plugins, uint32_t i, uint32_t k);
TW_EXPORT uint32_t tw_plugins_device_kind_count(const tw_plugins* plugins, uint32_t i);
TW_EXPORT const char* tw_plugins_device_kind(const tw_plugins* plugins, uint32_t i, uint32_t k);
/* What it brings besides: "compiler NAME", "file_system SCHEME", "transport SCHEME", "collective NAME", "membership SCHEME". */
TW_EXPORT uint32_t tw_plugins_role_count(const tw_plugins* plugins, uint32_t i);
TW_EXPORT const char* tw_plugins_role(const tw_plugins* plugins, uint32_t i, uint32_t k);
TW_EXPORT const char* tw_plugins_digest(const tw_plugins* plugins, uint32_t i); /* SHA-256 of the file in hexadecimal; "": not known */

#ifdef __cplusplus
}
#endif
#endif
