/* Creates and reads statuses in a plugin. Threads: all entries may be called from any thread. */
#ifndef THALWEG_PLUGIN_STATUS_H
#define THALWEG_PLUGIN_STATUS_H
#include "thalweg/plugin/abi.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_status_api {
  TW_HEAD;
  /* Makes a status. code: TW_CANCELLED .. TW_UNAUTHENTICATED; any other becomes TW_UNKNOWN. text:
   * copied. cause: taken, may be NULL. Never NULL: when memory is out, returns a shared
   * RESOURCE_EXHAUSTED. */
  TW_R tw_status* (*make)(const tw_host* h, uint32_t code, const char* text, uint64_t len, tw_status* cause);
  TW_R uint32_t (*code)(const tw_status* s);                /* NULL: TW_OK */
  TW_R tw_status* (*text)(const tw_status* s, tw_sink* to); /* the message */
  TW_R void (*release)(tw_status* s);                       /* NULL is fine */
} tw_status_api;

#ifdef __cplusplus
}
#endif
#endif
