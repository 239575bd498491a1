/* Resources: state that outlives a step (variables, queues, tables, objects of plugins). The host
 * owns names, lifetime and locks; the plugin owns the object. A resource is found by container,
 * type and name; ops hold references to it as handles.
 * Checkpoints contain resources of a type with save and restore: savers find the nodes whose op's
 * schema says `resource x TYPE` of an output. Variables are the host's own resource type,
 * `variable`; their object is a tensor. */
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
  uint64_t format; /* version of the bytes that save writes; restore may get older ones, the host refuses newer ones */
  void* user;
  TW_R void (*destroy)(const tw_host* h, void* object);                       /* after the last user is gone */
  TW_C tw_status* (*save)(const tw_host* h, const void* object, tw_sink* to); /* under a read lock; may block */
  /* Makes a new object from the bytes of save, without a lock; may block. The bytes may be damaged:
   * do not trust sizes in them, and return DATA_LOSS. */
  TW_C tw_status* (*restore)(const tw_host* h, void* user, uint64_t format, tw_source* from, void** out_object);
} tw_resource_def;

typedef struct tw_resource_key {
  TW_HEAD;
  TW_TEXT(type);
  TW_TEXT(container); /* empty: the session's default */
  TW_TEXT(name);      /* empty: always a new resource, which ends with its last handle */
} tw_resource_key;

typedef struct tw_resource_api {
  TW_HEAD;
  /* Puts a handle to the named resource into output o; creates the resource if there is none. make:
   * called at most once; NULL leaves the resource without an object until swap or assign sets one
   * (an uninitialised variable). */
  TW_R tw_status* (*open)(const tw_frame* f, const tw_resource_key* k, tw_status* (*make)(const tw_host* h, void* arg, void** out_object),
                          void* arg, uint32_t o);
  /* Removes the resource of input i (a handle): the name at once, the object with its last user. */
  TW_R tw_status* (*drop)(const tw_frame* f, uint32_t i);
  /* Returns 1 if the resource of input i has an object. Needs no lock. */
  TW_R uint32_t (*exists)(const tw_frame* f, uint32_t i);
  /* Replaces the object, under `update` of input i, and destroys the old one. object: taken, unless
   * the call fails; may be NULL: the resource then has no object. */
  TW_R tw_status* (*swap)(const tw_frame* f, uint32_t i, void* object);
  /* Replaces the tensor of a variable by `value`, under `update` of input i. Shares the buffer;
   * takes no reference of the caller's. */
  TW_R tw_status* (*assign)(const tw_frame* f, uint32_t i, tw_tensor* value);
  /* Writes the checkpoint form of the resource of input i to output o, a string vector: its type,
   * its format in decimal, and the bytes that `save` of the type wrote. The host locks, so only
   * kernels that open nothing may call it. May block. Errors: INVALID_ARGUMENT (a variable);
   * FAILED_PRECONDITION (no object); UNIMPLEMENTED (a type that cannot be saved); those of `save`. */
  TW_R tw_status* (*save)(const tw_frame* f, uint32_t i, uint32_t o);
  /* Restores the resources of inputs i up to i + n - 1 from inputs `saved` up to saved + n - 1, all
   * or none; an empty vector leaves its resource unchanged. The host locks, so only kernels that
   * open nothing may call it. May block. Errors: INVALID_ARGUMENT (another type); UNIMPLEMENTED (a
   * newer format); DATA_LOSS (no such vector); those of `restore`. */
  TW_R tw_status* (*restore)(const tw_frame* f, uint32_t i, uint32_t saved, uint32_t n);
  /* "Not now": suspends a call of an asynchronous kernel that has opened input i for `update` and
   * whose condition is not met (a queue is empty, say). After wait, execute returns NULL without
   * completing the token; the host then releases the locks. When another kernel has updated the
   * resource, the host runs execute again, on any of its threads, with the locks held, the outputs
   * as the call left them, and the same frame except `token` and `memo`. No thread is held
   * meanwhile.
   * condition: a number that the kernels of the type choose for what the call waits for. Of the
   * calls that wait at one resource for one condition only the first runs again, until it no longer
   * waits; then the next does. A new call overtakes waiting calls unless it checks `waiting` and
   * waits behind them. memo: the frame of the next run holds it. A call that has changed something
   * before it waits passes a memo that differs from its frame's; calls that wait for other
   * conditions then run again. An equal memo says that nothing has changed.
   * A call whose step is cancelled, fails elsewhere, is past its deadline, or whose session closes,
   * ends with that failure and does not run again. Its changes stay, so let a call take all that it
   * needs at once, or nothing. Errors: FAILED_PRECONDITION (no call of an asynchronous kernel in a
   * step; input i is not open for update). Only inside execute. */
  TW_R tw_status* (*wait)(const tw_frame* f, uint32_t i, uint64_t condition, uint64_t memo);
  /* Returns how many calls wait for the condition at the resource of input i ahead of the calling
   * one: 0 for the first in line that runs again. Inside execute, under `update`. */
  TW_R uint64_t (*waiting)(const tw_frame* f, uint32_t i, uint64_t condition);
} tw_resource_api;

#ifdef __cplusplus
}
#endif
#endif
