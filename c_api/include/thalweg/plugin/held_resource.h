/* Optional set "held_resource", version 1: resources whose objects have locks of their own.
 * host->query(h, TW_S(TW_HELD_RESOURCE_SET), 1) returns a const tw_held_resource_api*, or NULL if
 * the host has none.
 * A kernel that opens a resource (`read`, `update`) has it only during its call. With this set a
 * plugin holds the resource as long as it likes, changes the object under the plugin's own lock,
 * and reports the change with `touch`, from any place. For example, the destructor of a value may
 * release a mutex, wherever the destructor runs. Kernels that wait for such a change wait at a held
 * resource.
 * Kernels of one type of resource wait in one of the two ways: here, or with host->resource->wait.
 * Threads: any. */
#ifndef THALWEG_PLUGIN_HELD_RESOURCE_H
#define THALWEG_PLUGIN_HELD_RESOURCE_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#include "thalweg/plugin/resource.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_HELD_RESOURCE_SET "held_resource"
typedef struct tw_held_resource tw_held_resource; /* a reference to a resource */
typedef struct tw_held_resource_api {
  TW_HEAD;
  /* Opens the resource of that name and creates it if there is none; as host->resource->open,
   * without a handle. make: not NULL. The caller owns *out_held. Errors: INVALID_ARGUMENT (the name
   * belongs to another type, or to another plugin); NOT_FOUND (no such type); those of `make`. */
  TW_R tw_status* (*open)(const tw_frame* f, const tw_resource_key* k, tw_status* (*make)(const tw_host* h, void* arg, void** out_object),
                          void* arg, tw_held_resource** out_held);
  /* Holds the resource of input i, which the kernel need not open. Errors: INVALID_ARGUMENT (no
   * handle, another type, another plugin's). */
  TW_R tw_status* (*hold)(const tw_frame* f, uint32_t i, tw_held_resource** out_held);
  TW_R void (*release)(tw_held_resource* r); /* NULL is fine */
  /* Calls visit(arg, object) once under the host's read lock; the object is NULL if there is none.
   * The object may be destroyed when visit has returned, so visit must retain what it needs of it. */
  TW_R void (*look)(tw_held_resource* r, void (*visit)(void* arg, void* object), void* arg);
  /* Returns the number of touches; read it before the kernel checks its condition. */
  TW_R uint64_t (*touches)(tw_held_resource* r);
  /* Reports a change: the first waiting call of each condition runs again. f: the call of an
   * asynchronous kernel whose execute calls this; NULL: any other place, such as a destructor,
   * under any lock. The call never blocks; waiting calls are notified soon after. */
  TW_R void (*touch)(const tw_frame* f, tw_held_resource* r);
  /* "Not now", as host->resource->wait, for a held resource. seen: the result of `touches` before
   * the kernel checked its condition; if the resource was touched since, the call runs again at
   * once. Errors: FAILED_PRECONDITION (no call of an asynchronous kernel in a step). */
  TW_R tw_status* (*wait)(const tw_frame* f, tw_held_resource* r, uint64_t condition, uint64_t memo, uint64_t seen);
  /* Returns how many calls wait for the condition ahead of the calling one, as
   * host->resource->waiting. */
  TW_R uint64_t (*waiting)(const tw_frame* f, tw_held_resource* r, uint64_t condition);
  /* Returns how many kernels have opened the resource of input i for `update` and released it,
   * since it was made. Its contents are unchanged as long as the number is. Inside execute, under
   * `read` or `update` of the input; -1: it is not open. */
  TW_R int64_t (*version)(const tw_frame* f, uint32_t i);
} tw_held_resource_api;

#ifdef __cplusplus
}
#endif
#endif
