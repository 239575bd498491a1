/* The contents of a plugin file, and everything that a plugin may use: the one header for plugin
 * authors in C. A plugin exports one symbol, tw_plugin_query_v0, and imports nothing of the
 * runtime. See plugins/examples/twice.c for a complete one. */
#ifndef THALWEG_PLUGIN_PLUGIN_H
#define THALWEG_PLUGIN_PLUGIN_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/build_cpu.h"
#include "thalweg/plugin/callback.h"
#include "thalweg/plugin/checkpoint.h"
#include "thalweg/plugin/collective.h"
#include "thalweg/plugin/compiler.h"
#include "thalweg/plugin/file_system.h"
#include "thalweg/plugin/function.h"
#include "thalweg/plugin/group.h"
#include "thalweg/plugin/held_resource.h"
#include "thalweg/plugin/host.h"
#include "thalweg/plugin/host_function.h"
#include "thalweg/plugin/importer.h"
#include "thalweg/plugin/membership.h"
#include "thalweg/plugin/memory.h"
#include "thalweg/plugin/rendezvous.h"
#include "thalweg/plugin/rewriter.h"
#include "thalweg/plugin/role.h"
#include "thalweg/plugin/summary.h"
#include "thalweg/plugin/transport.h"
#include "thalweg/plugin/variant.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Register a definition of a role, as tw_add_role. `d` uses what the role had in minor 0, or up to the
 * role's target (role.h). */
static inline tw_status* tw_add_op(tw_registrar* r, const tw_op_def* d) { return tw_add_role(r, TW_S("op"), TW_OP_MAJOR, 0, 0, d); }
static inline tw_status* tw_add_kernel(tw_registrar* r, const tw_kernel_def* d) {
  return tw_add_role(r, TW_S("kernel"), TW_KERNEL_MAJOR, 0, 0, d);
}
static inline tw_status* tw_add_resource(tw_registrar* r, const tw_resource_def* d) {
  return tw_add_role(r, TW_S("resource"), TW_RESOURCE_MAJOR, 0, 0, d);
}
static inline tw_status* tw_add_device(tw_registrar* r, const tw_device_def* d) {
  return tw_add_role(r, TW_S("device"), TW_DEVICE_MAJOR, 0, 0, d);
}
static inline tw_status* tw_add_compiler(tw_registrar* r, const tw_compiler_def* d) {
  return tw_add_role(r, TW_S("compiler"), TW_COMPILER_MAJOR, 0, 0, d);
}
static inline tw_status* tw_add_file_system(tw_registrar* r, const tw_file_system_def* d) {
  return tw_add_role(r, TW_S("file_system"), TW_FILE_SYSTEM_MAJOR, THALWEG_FILE_SYSTEM_TARGET, THALWEG_FILE_SYSTEM_FLOOR, d);
}
static inline tw_status* tw_add_transport(tw_registrar* r, const tw_transport_def* d) {
  return tw_add_role(r, TW_S("transport"), TW_TRANSPORT_MAJOR, 0, 0, d);
}
static inline tw_status* tw_add_collective(tw_registrar* r, const tw_collective_def* d) {
  return tw_add_role(r, TW_S("collective"), TW_COLLECTIVE_MAJOR, THALWEG_COLLECTIVE_TARGET, THALWEG_COLLECTIVE_FLOOR, d);
}
static inline tw_status* tw_add_membership(tw_registrar* r, const tw_membership_def* d) {
  return tw_add_role(r, TW_S("membership"), TW_MEMBERSHIP_MAJOR, 0, 0, d);
}
static inline tw_status* tw_add_importer(tw_registrar* r, const tw_importer_def* d) {
  return tw_add_role(r, TW_S("importer"), TW_IMPORTER_MAJOR, 0, 0, d);
}

typedef struct tw_host_info {
  TW_HEAD;
  uint32_t epoch, minor;
  TW_TEXT(runtime); /* name and version, for logs */
} tw_host_info;

/* The members up to floor_adds_len never move, in any epoch or major, because a refusal quotes
 * them. */
typedef struct tw_plugin {
  TW_HEAD;
  uint32_t epoch, floor, target, header;
  TW_TEXT(id);         /* reverse-DNS */
  TW_TEXT(version);    /* of the plugin, for people */
  TW_TEXT(floor_adds); /* features of the floor, in words */
  TW_TEXT(build);      /* "key=value; ..." */
  /* May block. *out_instance is NULL at first. After an error the host calls nothing of the plugin
   * any more, so init must free what it made. */
  TW_R tw_status* (*init)(const tw_host* h, tw_registrar* r, void** out_instance);
  /* The last call, once for every init that returned NULL, also if the host then refused the
   * registrations. May block. The plugin's own threads must have ended when it returns, because its
   * code may be unloaded then. */
  TW_O void (*shutdown)(const tw_host* h, void* instance);
} tw_plugin;

typedef const tw_plugin* (*tw_query_fn)(const tw_host_info* host); /* pure and repeatable: no allocation, threads or device access */

#define TW_CAT2(a, b) a##b
#define TW_CAT(a, b) TW_CAT2(a, b)
#ifdef THALWEG_STATIC /* -DTHALWEG_STATIC=name: linked into an application that lists tw_plugin_query_v0_name; keep all else static */
#define TW_QUERY TW_CAT(tw_plugin_query_v0_, THALWEG_STATIC)
#else
#define TW_QUERY tw_plugin_query_v0
#endif
#ifdef __cplusplus
#define TW_ENTRY extern "C" __attribute__((visibility("default"))) const tw_plugin*
#else
#define TW_ENTRY __attribute__((visibility("default"))) const tw_plugin*
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TW_BUILD_SANITIZER "; sanitizer=address"
#elif defined(__SANITIZE_THREAD__)
#define TW_BUILD_SANITIZER "; sanitizer=thread"
#else
#define TW_BUILD_SANITIZER ""
#endif
#ifdef __VERSION__
#define TW_BUILD_COMPILER __VERSION__
#else
#define TW_BUILD_COMPILER "unknown"
#endif
#define TW_BUILD "compiler=" TW_BUILD_COMPILER TW_BUILD_SANITIZER "; cpu=" TW_BUILD_CPU

#define TW_PLUGIN_WITH(ID, VERSION, INIT, SHUTDOWN)              \
  static const tw_plugin tw_this_plugin = {TW_SIZED(tw_plugin),  \
                                           TW_EPOCH,             \
                                           THALWEG_FLOOR_MINOR,  \
                                           THALWEG_TARGET_MINOR, \
                                           TW_MINOR,             \
                                           TW_S(ID),             \
                                           TW_S(VERSION),        \
                                           TW_S(TW_FLOOR_ADDS),  \
                                           TW_S(TW_BUILD),       \
                                           INIT,                 \
                                           SHUTDOWN};            \
  TW_ENTRY TW_QUERY(const tw_host_info* host);                   \
  TW_ENTRY TW_QUERY(const tw_host_info* host) {                  \
    (void)host;                                                  \
    return &tw_this_plugin;                                      \
  }
#define TW_PLUGIN(ID, VERSION, INIT) TW_PLUGIN_WITH(ID, VERSION, INIT, NULL)

#ifdef __cplusplus
}
#endif
#endif
