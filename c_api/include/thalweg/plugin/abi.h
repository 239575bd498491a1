/* Rules of the plugin ABI, and the macros for them. Every other header of this folder includes this
 * one.
 *
 * The contract, once:
 *  - Records begin with `size` and `flags`, grow only at the end, have no implicit padding, are
 *    passed by pointer, and are in arrays only as arrays of pointers. The maker of a record sets
 *    `size` to the bytes that it fills; its reader reads no more. Only the maker writes to it. The
 *    host refuses an unknown flag bit. A new field never changes the meaning of an old one.
 *  - Values (tw_string, tw_shape, tw_attr) have no header and never change.
 *  - Entries are TW_R required, TW_O optional with a host default, TW_C capability (absent means
 *    UNIMPLEMENTED). The host copies and seals definitions once, at registration; afterwards it
 *    does not check sizes or NULL again.
 *  - tw_status* is NULL for success. Only the host makes statuses; the receiver of a returned
 *    status owns it. Entries returning void cannot fail. The host's entries return INVALID_ARGUMENT
 *    for an index, type, rank or size that does not fit, FAILED_PRECONDITION at a wrong time and
 *    RESOURCE_EXHAUSTED without memory; other codes are listed at the entries. A callback returns
 *    the code that fits (types.h). The host adds op, node and device to the message and returns it
 *    to the caller of the work, unless the header says otherwise.
 *  - Input pointers are borrowed for the call, and not NULL unless said otherwise. `out_` pointers
 *    are written on success only; the caller owns the results and ends them with the matching entry
 *    (release, destroy, close). Text is UTF-8 with a length.
 *  - Callbacks, unless said otherwise: any thread, several at once, no blocking, the host table may
 *    be used, no exceptions.
 *  - No process globals: the host table comes with every call, in its record or as first argument,
 *    and lives until shutdown returns.
 *  - Declarations without a minor exist since minor 0. A later minor appends entries, each marked
 *    TW_SINCE_n, or TW_FILE_SYSTEM_SINCE_n if the minor is that of a role (role.h). The marked name
 *    exists only if the plugin's target is that minor or a later one; the bytes are always there.
 *
 * The ABI is a draft: hosts and plugins must have the same epoch. */
#ifndef THALWEG_PLUGIN_ABI_H
#define THALWEG_PLUGIN_ABI_H
#include <stddef.h>
#include <stdint.h>

#include "thalweg/types.h"

#define TW_EPOCH 3 /* draft number; must match exactly */
#define TW_MINOR 1 /* newest minor that these headers declare */

/* Newest minor whose names the author wants to use; hides names, never bytes. Default: the oldest
 * supported. THALWEG_NEWEST sets this target and those of all roles (role.h) to the newest. */
#ifndef THALWEG_TARGET_MINOR
#ifdef THALWEG_NEWEST
#define THALWEG_TARGET_MINOR TW_MINOR
#else
#define THALWEG_TARGET_MINOR 0
#endif
#endif
/* Oldest host that the plugin accepts. It may be below the target only if TW_HAS guards each newer
 * name. */
#ifndef THALWEG_FLOOR_MINOR
#define THALWEG_FLOOR_MINOR THALWEG_TARGET_MINOR
#endif
/* Features of the floor, in words; an older host names them in its refusal. */
#if THALWEG_FLOOR_MINOR < 1
#define TW_FLOOR_ADDS "the third draft"
#else
#define TW_FLOOR_ADDS "spans and counters of kernels in traces"
#endif
/* Marks a name of minor 1. With an older target the name says what it needs, so that compilers name
 * the remedy. */
#if THALWEG_TARGET_MINOR < 1
#define TW_SINCE_1(name) name##_needs_THALWEG_TARGET_MINOR_1
#else
#define TW_SINCE_1(name) name
#endif

#define TW_R /* required */
#define TW_O /* optional, the host has a default */
#define TW_C /* capability: absent means UNIMPLEMENTED */

#define TW_HEAD uint32_t size, flags
#define TW_TEXT(name) \
  const char* name;   \
  uint64_t name##_len
#define TW_SIZED(type) (uint32_t)sizeof(type), 0u
#define TW_S(literal) literal, sizeof(literal) - 1 /* fills a TW_TEXT, or two arguments */
#define TW_HAS(record, field) ((record)->size >= (uint64_t)((const char*)(&(record)->field + 1) - (const char*)(record)))
#define TW_TRY(call)           \
  do {                         \
    tw_status* tw_s_ = (call); \
    if (tw_s_) return tw_s_;   \
  } while (0)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_host tw_host;         /* the host table; see host.h */
typedef struct tw_timeline tw_timeline; /* a monotonic counter; see device.h */
typedef struct tw_builder tw_builder;   /* the graph being built, or the shape being inferred; see op.h */
typedef uint64_t tw_edge;               /* a value in the graph being built; 0: none */
typedef uint64_t tw_token;              /* one asynchronous call, with a generation; a second completion is detected and ignored */

/* A resolved attribute. Frozen. `data`: `count` values of the type that `kind` (TW_ATTR_*) names. A
 * single value has is_list 0 and count 1. */
typedef struct tw_attr {
  TW_TEXT(name);
  const void* data;
  uint32_t kind, count;
  uint32_t is_list, reserved;
} tw_attr;

/* Receives bytes. put: appends `len` bytes. */
typedef struct tw_sink {
  TW_HEAD;
  void* user;
  TW_R tw_status* (*put)(struct tw_sink* s, const void* bytes, uint64_t len);
} tw_sink;

/* Provides bytes. get: copies up to `n` bytes to `p` and their number to *out_n, 0 at the end. */
typedef struct tw_source {
  TW_HEAD;
  void* user;
  TW_R tw_status* (*get)(struct tw_source* s, void* p, uint64_t n, uint64_t* out_n);
} tw_source;

#ifdef __cplusplus
}
#endif
#endif
