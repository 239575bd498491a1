/* Roles: what a plugin can be. init registers each definition under the name of its role, with the
 * role's version, so that a change of one role costs no other: a host that does not know a role, or
 * has another version of it, leaves out the definitions of that role, says so in its log and in
 * `thalweg plugins --why`, and uses the rest of the plugin. If it leaves out all of them, it refuses
 * the plugin. A kernel whose op was left out is left out, too.
 *
 * A role's major counts its breaks: host and definition must have the same one. Its minor counts
 * additions: the host must have at least the `floor` of the definition, and uses no more than its
 * `minor`: it ignores entries of the definition that a later minor added. The epoch and its minor
 * (abi.h) cover what all roles share: the entry symbol, the descriptor, the rules for records, the
 * host table and its sets. c_api/CHANGELOG.md has a section for each role.
 *
 * A role with later minors has a target and a floor of its own, as in THALWEG_FILE_SYSTEM_TARGET and
 * THALWEG_FILE_SYSTEM_FLOOR. tw_add_file_system registers a definition with both.
 *
 * Definitions are registered with tw_add_op, tw_add_kernel and so on (plugin.h). */
#ifndef THALWEG_PLUGIN_ROLE_H
#define THALWEG_PLUGIN_ROLE_H
#include "thalweg/plugin/abi.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The versions that these headers declare. */
enum {
  TW_OP_MAJOR = 1,          /* "op": op.h */
  TW_OP_MINOR = 0,          /* newest minor */
  TW_KERNEL_MAJOR = 1,      /* "kernel": kernel.h */
  TW_KERNEL_MINOR = 0,      /* newest minor */
  TW_RESOURCE_MAJOR = 1,    /* "resource": resource.h */
  TW_RESOURCE_MINOR = 0,    /* newest minor */
  TW_DEVICE_MAJOR = 1,      /* "device": device.h */
  TW_DEVICE_MINOR = 0,      /* newest minor */
  TW_COMPILER_MAJOR = 1,    /* "compiler": compiler.h */
  TW_COMPILER_MINOR = 0,    /* newest minor */
  TW_FILE_SYSTEM_MAJOR = 1, /* "file_system": file_system.h */
  TW_FILE_SYSTEM_MINOR = 1, /* newest minor */
  TW_TRANSPORT_MAJOR = 1,   /* "transport": transport.h */
  TW_TRANSPORT_MINOR = 0,   /* newest minor */
  TW_COLLECTIVE_MAJOR = 1,  /* "collective": collective.h */
  TW_COLLECTIVE_MINOR = 1,  /* newest minor */
  TW_MEMBERSHIP_MAJOR = 1,  /* "membership": membership.h */
  TW_MEMBERSHIP_MINOR = 0,  /* newest minor */
  TW_IMPORTER_MAJOR = 1,    /* "importer": importer.h */
  TW_IMPORTER_MINOR = 0     /* newest minor */
};

/* Newest minor of the role file_system whose names the author wants to use. Default: the oldest. */
#ifndef THALWEG_FILE_SYSTEM_TARGET
#ifdef THALWEG_NEWEST
#define THALWEG_FILE_SYSTEM_TARGET 1
#else
#define THALWEG_FILE_SYSTEM_TARGET 0
#endif
#endif
/* Oldest minor of the role that suffices for the plugin's file systems. A host ignores the entries
 * of a definition that it does not know, so this is below the target unless the file system is wrong
 * without them. */
#ifndef THALWEG_FILE_SYSTEM_FLOOR
#define THALWEG_FILE_SYSTEM_FLOOR 0
#endif
/* Marks a name of minor 1 of the role, as TW_SINCE_1 does. */
#if THALWEG_FILE_SYSTEM_TARGET < 1
#define TW_FILE_SYSTEM_SINCE_1(name) name##_needs_THALWEG_FILE_SYSTEM_TARGET_1
#else
#define TW_FILE_SYSTEM_SINCE_1(name) name
#endif

/* The same for the role collective. */
#ifndef THALWEG_COLLECTIVE_TARGET
#ifdef THALWEG_NEWEST
#define THALWEG_COLLECTIVE_TARGET 1
#else
#define THALWEG_COLLECTIVE_TARGET 0
#endif
#endif
#ifndef THALWEG_COLLECTIVE_FLOOR
#define THALWEG_COLLECTIVE_FLOOR 0
#endif
#if THALWEG_COLLECTIVE_TARGET < 1
#define TW_COLLECTIVE_SINCE_1(name) name##_needs_THALWEG_COLLECTIVE_TARGET_1
#else
#define TW_COLLECTIVE_SINCE_1(name) name
#endif

/* One definition of one role. */
typedef struct tw_role {
  TW_HEAD;
  TW_TEXT(name);          /* of the role: "op", "device" */
  uint32_t major;         /* of the role; must be the host's */
  uint32_t minor;         /* newest minor of the role that the definition uses */
  uint32_t floor;         /* oldest minor of the role that suffices for it; at most `minor` */
  uint32_t reserved;      /* 0 */
  const void* definition; /* the record of the role: tw_op_def, tw_device_def */
} tw_role;

/* Collects the registrations of init. They take effect after init returned NULL and the host has
 * checked them all. Definitions are copied. */
typedef struct tw_registrar {
  TW_HEAD;
  /* Registers a definition. NULL also for one that the host leaves out because of its role's
   * version. Errors: INVALID_ARGUMENT for a definition that breaks the rules of its role; the host
   * then refuses the whole plugin. */
  TW_R tw_status* (*role)(struct tw_registrar* r, const tw_role* d);
  /* Returns 1 if the host has this major of the role, with at least this minor; 0: it would leave
   * out a definition that needs them. */
  TW_R uint32_t (*offers)(struct tw_registrar* r, const char* role, uint64_t len, uint32_t major, uint32_t minor);
} tw_registrar;

/* Registers a definition of any role. */
static inline tw_status* tw_add_role(tw_registrar* r, const char* name, uint64_t len, uint32_t major, uint32_t minor, uint32_t floor,
                                     const void* definition) {
  tw_role d;
  d.size = (uint32_t)sizeof d;
  d.flags = 0;
  d.name = name;
  d.name_len = len;
  d.major = major;
  d.minor = minor;
  d.floor = floor;
  d.reserved = 0;
  d.definition = definition;
  return r->role(r, &d);
}

#ifdef __cplusplus
}
#endif
#endif
