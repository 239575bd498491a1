/* Optional set "memory", version 1: the account that pays for what a plugin takes from the heap. host->query(h, TW_S(TW_MEMORY_SET), 1)
 * answers a const tw_memory_api*, or NULL where there is none.
 * Tensors, scratch and variants are counted by the host. What a kernel takes from the heap by itself, as much as its inputs ask for, is for
 * the plugin to count: what it needs on the way to its outputs, and what an object of the plugin holds from call to call. It counts before
 * it allocates, so that what is too much is never asked of the system.
 * An account is that of the session whose step a call belongs to, and so of the client and the server that the session belongs to. Threads:
 * any, several at once. */
#ifndef THALWEG_PLUGIN_MEMORY_H
#define THALWEG_PLUGIN_MEMORY_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_MEMORY_SET "memory"
typedef struct tw_account tw_account; /* who pays; reference-counted */
typedef struct tw_memory_api {
  TW_HEAD;
  /* The account of the call, borrowed until it is over; NULL: nobody limits it. f: NULL: who pays on this thread (pays), such as
   * inside `restore` of a resource's type the account of the call that restores it, inside `create` of a kernel that of its session. */
  TW_R tw_account* (*account)(const tw_frame* f);
  /* An object that holds what an account paid for keeps it until it has given all of it back, which may be after the session. */
  TW_R void (*retain)(tw_account* a);
  TW_R void (*release)(tw_account* a); /* NULL is fine */
  /* So many bytes are about to be allocated. a: NULL is fine, and pays nothing. Errors: RESOURCE_EXHAUSTED, naming bytes, use and limit,
   * and whose limit it is; nothing was taken then. */
  TW_R tw_status* (*take)(tw_account* a, uint64_t bytes);
  /* So many of them are free again. a: NULL is fine. */
  TW_R void (*give)(tw_account* a, uint64_t bytes);
  /* From now on a pays for what this thread's calls of the host take that are given no frame (host->tensor->make, checkpoints that are read
   * or written); a: NULL is fine: nobody does. Answers who paid before, borrowed, NULL for nobody, who is to pay again before the callback
   * returns. */
  TW_R tw_account* (*pays)(tw_account* a);
} tw_memory_api;

#ifdef __cplusplus
}
#endif
#endif
