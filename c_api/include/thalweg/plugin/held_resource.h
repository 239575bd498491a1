/* Optional set "held_resource", version 1: resources whose objects have locks of their own. host->query(h, TW_S(TW_HELD_RESOURCE_SET), 1)
 * answers a const tw_held_resource_api*, or NULL where there is none.
 * A kernel that opens a resource (`read`, `update`) has it for the time of its call. Here a plugin holds the resource for as long as it
 * likes, changes the object under a lock of the plugin's own, and says so with `touch`, from anywhere: a mutex is let go by the destructor
 * of a value, wherever that happens to go. Kernels that wait for such a change wait at what they hold.
 * Kernels of one type of resource wait in one of the two ways: here, or with host->resource->wait. Threads: any. */
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
  /* The resource of that name, made if there is none; as host->resource->open, without a handle. make: not NULL. The caller owns *out_held.
   * Errors: INVALID_ARGUMENT (the name belongs to another type, or to another plugin); NOT_FOUND (no such type); those of `make`. */
  TW_R tw_status* (*open)(const tw_frame* f, const tw_resource_key* k, tw_status* (*make)(const tw_host* h, void* arg, void** out_object),
                          void* arg, tw_held_resource** out_held);
  /* The one that input i leads to, which the kernel need not open. Errors: INVALID_ARGUMENT (no handle, another type, another plugin's). */
  TW_R tw_status* (*hold)(const tw_frame* f, uint32_t i, tw_held_resource** out_held);
  TW_R void (*release)(tw_held_resource* r); /* NULL is fine */
  /* Calls visit(arg, object) under the host's read lock, once; the object is NULL where there is none, and may go when visit has returned:
   * it is for visit to keep what it needs of it. */
  TW_R void (*look)(tw_held_resource* r, void (*visit)(void* arg, void* object), void* arg);
  /* How often it was touched: asked before a kernel looks whether what it needs is so. */
  TW_R uint64_t (*touches)(tw_held_resource* r);
  /* Something has changed: calls that wait here and are the first of their condition are run again. f: the call of an asynchronous kernel
   * inside whose execute this is; NULL: wherever it is, in a destructor, under whatever lock; it never blocks, and others hear soon after.
   */
  TW_R void (*touch)(const tw_frame* f, tw_held_resource* r);
  /* "Not now", as host->resource->wait, of what the caller holds. seen: what `touches` answered before the kernel looked; if it was touched
   * since, the call is run again at once. Errors: FAILED_PRECONDITION (no call of an asynchronous kernel in a step). */
  TW_R tw_status* (*wait)(const tw_frame* f, tw_held_resource* r, uint64_t condition, uint64_t memo, uint64_t seen);
  /* How many calls wait for the condition before the calling one, as host->resource->waiting. */
  TW_R uint64_t (*waiting)(const tw_frame* f, tw_held_resource* r, uint64_t condition);
  /* How many kernels have opened the resource behind input i for `update` and let it go, since it was made: as long as the number is the
   * same, so is what it holds. Inside of execute, under `read` or `update` of the input; -1: it is not open. */
  TW_R int64_t (*version)(const tw_frame* f, uint32_t i);
} tw_held_resource_api;

#ifdef __cplusplus
}
#endif
#endif
