/* Optional set "memory", version 1: accounts for heap memory of plugins. host->query(h,
 * TW_S(TW_MEMORY_SET), 1) returns a const tw_memory_api*, or NULL if the host has none.
 * The host counts tensors, scratch and variants. A plugin counts heap memory that a kernel
 * allocates by itself and whose size depends on the inputs: temporary memory, and memory that an
 * object of the plugin holds between calls. It counts before it allocates, so that it never asks
 * the system for too much.
 * The account of a call belongs to the session of its step, and so to the client and the server of
 * that session. Threads: any, several at once. */
#ifndef THALWEG_PLUGIN_MEMORY_H
#define THALWEG_PLUGIN_MEMORY_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_MEMORY_SET "memory"
typedef struct tw_account tw_account; /* reference-counted account of a session */
typedef struct tw_memory_api {
  TW_HEAD;
  /* Returns the account of the call, borrowed until the call has ended; NULL: no limit. f: NULL:
   * the account that pays on this thread (pays). Inside `restore` of a resource's type this is the
   * account of the restoring call, inside `create` of a kernel the account of its session. */
  TW_R tw_account* (*account)(const tw_frame* f);
  /* Retains an account. An object that holds counted memory keeps the account until it has given
   * all of it back, possibly after the session. */
  TW_R void (*retain)(tw_account* a);
  TW_R void (*release)(tw_account* a); /* NULL is fine */
  /* Counts bytes that are about to be allocated. a: NULL is fine, and counts nothing. Errors:
   * RESOURCE_EXHAUSTED, naming bytes, use, limit and the owner of the limit; nothing is counted
   * then. */
  TW_R tw_status* (*take)(tw_account* a, uint64_t bytes);
  /* Uncounts bytes that are freed. a: NULL is fine. */
  TW_R void (*give)(tw_account* a, uint64_t bytes);
  /* Sets the account for this thread's calls of the host without a frame (host->tensor->make,
   * reading or writing checkpoints); a: NULL is fine and means none. Returns the previous account,
   * borrowed, or NULL; set it again before the callback returns. */
  TW_R tw_account* (*pays)(tw_account* a);
} tw_memory_api;

#ifdef __cplusplus
}
#endif
#endif
