/* Resources: state that outlives a step (variables, queues, tables, whatever a plugin ships). The host owns names, lifetime and locks;
 * the plugin owns the object. A resource is found by container, type and name; ops hold references to it as handles.
 * A type with save and restore is in checkpoints by itself: savers find the nodes whose op's schema says `resource x TYPE` of an output.
 * Variables are the host's own resource type, `variable`: their object is a tensor. */
#ifndef THALWEG_PLUGIN_RESOURCE_H
#define THALWEG_PLUGIN_RESOURCE_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_VARIABLE_TYPE "variable"

typedef struct tw_resource_def {
  TW_HEAD;
  TW_TEXT(type);   /* reverse-DNS */
  uint64_t format; /* version of what save writes; restore may meet older ones, the host refuses newer ones */
  void* user;
  TW_R void (*destroy)(const tw_host* h, void* object);                       /* when nobody uses it any more */
  TW_C tw_status* (*save)(const tw_host* h, const void* object, tw_sink* to); /* under a read lock; may block */
  /* A new object from what save wrote, without a lock; may block. The bytes may be damaged: DATA_LOSS, and no size in them is believed. */
  TW_C tw_status* (*restore)(const tw_host* h, void* user, uint64_t format, tw_source* from, void** out_object);
} tw_resource_def;

typedef struct tw_resource_key {
  TW_HEAD;
  TW_TEXT(type);
  TW_TEXT(container); /* empty: the session's default */
  TW_TEXT(name);      /* empty: always a new resource, which goes with its last handle */
} tw_resource_key;

typedef struct tw_resource_api {
  TW_HEAD;
  /* Puts a handle to the named resource into output o, making the resource if there is none. make: called at most once; NULL leaves the
   * resource without an object until swap or assign gives it one (an uninitialised variable). */
  TW_R tw_status* (*open)(const tw_frame* f, const tw_resource_key* k, tw_status* (*make)(const tw_host* h, void* arg, void** out_object),
                          void* arg, uint32_t o);
  /* Removes the resource that input i (a handle) leads to: the name goes now, the object with its last user. */
  TW_R tw_status* (*drop)(const tw_frame* f, uint32_t i);
  /* 1 if the resource that input i leads to has an object. Needs no lock. */
  TW_R uint32_t (*exists)(const tw_frame* f, uint32_t i);
  /* Under `update` of input i: the object becomes `object`; the old one is destroyed. object: taken, unless the call fails; may be NULL:
   * the resource has none any more. */
  TW_R tw_status* (*swap)(const tw_frame* f, uint32_t i, void* object);
  /* Under `update` of input i, a variable: its tensor becomes `value`, sharing the buffer; takes no reference of the caller's. */
  TW_R tw_status* (*assign)(const tw_frame* f, uint32_t i, tw_tensor* value);
  /* Output o, a string vector, becomes what checkpoints hold of the resource behind input i: its type, its format in decimal, and the bytes
   * that `save` of the type wrote. The host locks: only for kernels that open nothing. May block. Errors: INVALID_ARGUMENT (a variable);
   * FAILED_PRECONDITION (no object); UNIMPLEMENTED (a type that cannot be saved); those of `save`. */
  TW_R tw_status* (*save)(const tw_frame* f, uint32_t i, uint32_t o);
  /* The resources behind inputs i up to i + n - 1 become what inputs `saved` up to saved + n - 1 hold, all or none; an empty vector leaves
   * its resource as it is. The host locks: only for kernels that open nothing. May block. Errors: INVALID_ARGUMENT (another type);
   * UNIMPLEMENTED (a newer format); DATA_LOSS (no such vector); those of `restore`. */
  TW_R tw_status* (*restore)(const tw_frame* f, uint32_t i, uint32_t saved, uint32_t n);
  /* "Not now": for a call of an asynchronous kernel that has opened input i for `update` and finds that what it needs is not so yet (a
   * queue is empty, say). Locks go when execute returns, which it does next, with NULL and without completing the token. Once another
   * kernel has updated the resource, the host runs execute again: on any of its threads, locks held, outputs as the call left them, the
   * same frame but for `token` and `memo`. No thread is held meanwhile. condition: what it waits for, as the kernels of the type number it.
   * Of the calls that wait at one resource for one condition only the first is run again, until it no longer waits; then the next is. A new
   * call passes those who wait unless it asks `waiting` and stands in line behind them. memo: what the frame of the next call holds. A call
   * that has changed something before it waits gives another memo than its frame has; those who wait for other conditions are then run
   * again. The same memo says that nothing has changed. A call whose step is cancelled, fails elsewhere, is past its deadline, or whose
   * session closes, ends with that failure and is not run again: what it changed stays, so let a call take all that it needs at once, or
   * nothing. Errors: FAILED_PRECONDITION (no call of an asynchronous kernel in a step; input i is not open for update). Inside of execute
   * only. */
  TW_R tw_status* (*wait)(const tw_frame* f, uint32_t i, uint64_t condition, uint64_t memo);
  /* How many calls wait for the condition at the resource behind input i before the calling one: 0 for the first in line that is run again.
   * Inside of execute, under `update`. */
  TW_R uint64_t (*waiting)(const tw_frame* f, uint32_t i, uint64_t condition);
} tw_resource_api;

#ifdef __cplusplus
}
#endif
#endif
