/* Optional set "callback", version 1: work that the host calls later, so that a plugin needs no
 * thread to wait or to poll with. host->query(h, TW_S(TW_CALLBACK_SET), 1) returns a const
 * tw_callback_api*, or NULL if the host has none.
 * Each callback is called at most once. The plugin's code stays loaded until then; shutdown must not
 * return before the plugin has forgotten its timers and watches, and its scheduled work has ended.
 * Threads: entries any, several at once; callbacks as their entries say. */
#ifndef THALWEG_PLUGIN_CALLBACK_H
#define THALWEG_PLUGIN_CALLBACK_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_CALLBACK_SET "callback"
typedef struct tw_callback_api {
  TW_HEAD;
  /* Calls work(arg) soon, on a thread of the host's, or before it returns if there is none. work may
   * block. */
  TW_R tw_status* (*schedule)(const tw_host* h, void (*work)(void* arg), void* arg);
  /* Calls work(arg) when host->run->now has reached `time`. One thread serves all timers, so work may
   * not block; it may set the next timer. *out_id: for forget; never 0. */
  TW_R tw_status* (*at)(const tw_host* h, int64_t time, void (*work)(void* arg), void* arg, uint64_t* out_id);
  /* Calls stop(arg) when the step of the call is cancelled or its deadline passes, on the thread that
   * cancels, or on that of the timers; before it returns, if that has happened already. stop may not
   * block; it may complete the call's token. For a call with a token. Before the token is completed
   * elsewhere than in stop, the plugin forgets the watch. *out_id: for forget; written before stop
   * is called; never 0. */
  TW_R tw_status* (*when_cancelled)(const tw_frame* f, void (*stop)(void* arg), void* arg, uint64_t* out_id);
  /* Forgets a timer or a watch. Returns 1 if it was not called and will not be; 0 if it was called:
   * then it has ended, unless this is inside of it. Waits for one that runs on another thread. */
  TW_R uint32_t (*forget)(const tw_host* h, uint64_t id);
} tw_callback_api;

#ifdef __cplusplus
}
#endif
#endif
