/* Plugins from the side of an application: loads and unloads them, and reports the state of each.
 * plugin/plugin.h says how to write one. A runtime searches its option plugin_path,
 * THALWEG_PLUGIN_PATH, the user's folder and the folder of libthalweg.so; a process with more
 * rights than its starter searches only the first and the last.
 * A plugin runs with the rights of the process, so the runtime loads only files that nobody else
 * can change. The file, its folder and the folders above must belong to root or the user and be
 * writable by nobody else. Exceptions: a group that only the user is in, sticky folders (/tmp)
 * further up, and folders that lead to libthalweg.so itself. The runtime option
 * trust_plugin_folders=true disables this check.
 * A helper process, thalweg/thalweg-probe beside libthalweg.so, probes a new file first. A file
 * that crashes there is quarantined until its contents change. A file that takes longer than five
 * seconds is quarantined for a minute, and twice as long after each further such probe, up to a
 * day. The results are kept in the user's cache (runtime option plugin_cache), so later starts open
 * no plugin: each is loaded at its first use. Runtime options: plugin_probe for systems where no
 * helper can run, plugin_allow for an allow-list, plugin_prefer for the choice between plugins that
 * provide the same.
 * Threads: any. Everything here: since 0.1. */
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
  TW_PLUGIN_FAILED = 1,      /* loading failed */
  TW_PLUGIN_DISABLED = 2,    /* excluded by an option */
  TW_PLUGIN_SHADOWED = 3,    /* another plugin provides the same (file, id, op, ...) and takes precedence */
  TW_PLUGIN_KNOWN = 4,       /* probed and usable; loaded at its first use */
  TW_PLUGIN_QUARANTINED = 5, /* crashed or hung when it was probed */
  TW_PLUGIN_NOT_ALLOWED = 6  /* not on the list of the runtime option plugin_allow */
};

/* Loads one plugin file completely or not at all; its ops and devices are available at once. May
 * block. Does nothing for a file that is loaded already, or one with the same contents. runtime:
 * NULL means the default one. path: borrowed. Errors: NOT_FOUND (no such file); PERMISSION_DENIED
 * (others could change it: who, and what to do; or it is not on the allow-list);
 * FAILED_PRECONDITION (another ABI: both numbers and what to do; or no helper can probe it);
 * ALREADY_EXISTS (id, op or kernel taken: by whom); ABORTED (it crashed when it was probed) and
 * DEADLINE_EXCEEDED (the probe took too long), in which stage; the errors of its init. Threads:
 * any; loads run one by one. */
TW_EXPORT tw_status* tw_plugin_load(tw_runtime* runtime, const char* path);

/* Shuts a plugin down and closes its file. Only tw_plugin_load loads it again. May block.
 * runtime: NULL means the default one. id: borrowed; the plugin's id, not its file.
 * Errors: NOT_FOUND (none of that id is loaded); FAILED_PRECONDITION saying what of it is in use
 * (graphs with its ops; sessions with its kernels or devices; lists of ops or devices that have it;
 * resources of its types; tensors on its devices; kernels of other plugins for its ops), or that it
 * is linked in. Nothing has changed then. Threads: any, but none may use anything of the plugin
 * meanwhile. */
TW_EXPORT tw_status* tw_plugin_unload(tw_runtime* runtime, const char* id);

typedef struct tw_plugins tw_plugins; /* a snapshot of every plugin that the runtime found */

/* Makes a list of the plugins. runtime: NULL means the default one. The caller owns *out_plugins. */
TW_EXPORT tw_status* tw_plugins_create(tw_runtime* runtime, tw_plugins** out_plugins);
TW_EXPORT void tw_plugins_destroy(tw_plugins* plugins); /* NULL is fine */
TW_EXPORT uint32_t tw_plugins_count(const tw_plugins* plugins);
/* Properties of plugin i. Texts live as long as the list; NULL past the end. */
TW_EXPORT const char* tw_plugins_id(const tw_plugins* plugins, uint32_t i); /* "" if unknown */
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
/* Other parts that it provides: "compiler NAME", "file_system SCHEME", "transport SCHEME",
 * "collective NAME", "membership SCHEME". */
TW_EXPORT uint32_t tw_plugins_role_count(const tw_plugins* plugins, uint32_t i);
TW_EXPORT const char* tw_plugins_role(const tw_plugins* plugins, uint32_t i, uint32_t k);
TW_EXPORT const char* tw_plugins_digest(const tw_plugins* plugins, uint32_t i); /* SHA-256 of the file in hexadecimal; "": unknown */

#ifdef __cplusplus
}
#endif
#endif
