/* Optional set "timeline", version 1: timelines that a plugin makes and signals, for kernels that hand
 * their work to an engine of the plugin's: a thread, a service, a library with a queue of its own.
 * host->query(h, TW_S(TW_TIMELINE_SET), 1) returns a const tw_timeline_set*, or NULL if the host has
 * none. What a timeline promises is in device.h: values only grow, the first failure stays, and a
 * value is signalled after a failure, too, because the signal permits reuse of memory. An engine that
 * does its work in order needs one timeline, in place of a token and a callback for each call.
 * Threads: any, several at once. */
#ifndef THALWEG_PLUGIN_TIMELINE_H
#define THALWEG_PLUGIN_TIMELINE_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/device.h"
#include "thalweg/plugin/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_TIMELINE_SET "timeline"
typedef struct tw_timeline_set {
  TW_HEAD;
  /* Makes a timeline with value 0, for signal, fail and when of host->timeline. The caller owns one
   * reference; init may make it, and shutdown releases it. */
  TW_R tw_status* (*create)(const tw_host* h, tw_timeline** out_line);
  /* Completes the call's token when `line` reaches `value`: with success, or with the failure that
   * the timeline has then. If the timeline ends first, the call fails with UNAVAILABLE. May complete
   * it before it returns. For a call with a token, once; the plugin does not complete the token
   * itself. The call also ends then if its step was cancelled: until the signal, the work may use the
   * frame's memory. After an error the token is as before.
   * Errors: FAILED_PRECONDITION for a call without a token; INVALID_ARGUMENT without a timeline. */
  TW_R tw_status* (*complete_at)(const tw_frame* f, tw_timeline* line, uint64_t value);
} tw_timeline_set;

#ifdef __cplusplus
}
#endif
#endif
