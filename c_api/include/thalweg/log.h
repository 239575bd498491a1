/* The log: what the runtime and its plugins have to say that is nobody's error. Silent unless a program asks for it.
 * Threads: any. Everything here: since 0.1. */
#ifndef THALWEG_LOG_H
#define THALWEG_LOG_H
#include "thalweg/export.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {
  TW_LOG_DEBUG = 0,   /* why something was chosen: kernels skipped, plans made */
  TW_LOG_INFO = 1,    /* what happened: plugins loaded, files written */
  TW_LOG_WARNING = 2, /* what will hurt: kernels missing on a device, deprecated attributes */
  TW_LOG_ERROR = 3    /* what could not be reported as a status */
};

/* Takes one line (UTF-8, `bytes` long, no end of line). Threads: any, several at once; it must not block for long and must not call back
 * into the runtime. */
typedef void (*tw_log_sink)(void* user, uint32_t level, const char* text, uint64_t bytes);

/* Lines of at least `min_level` go to `sink` from now on; NULL: nowhere. user: handed to the sink, must live until it is replaced.
 * Errors: INVALID_ARGUMENT for a level above 3. Threads: any; a line already on its way may still reach the old sink. */
TW_EXPORT tw_status* tw_log_set_sink(tw_runtime* runtime, tw_log_sink sink, void* user, uint32_t min_level);
/* Writes a line into the log, as plugins do. text: NUL-terminated. Errors: INVALID_ARGUMENT for a level above 3. */
TW_EXPORT tw_status* tw_log_write(tw_runtime* runtime, uint32_t level, const char* text);
/* A ready-made sink: "thalweg: warning: ..." on standard error. user: ignored. */
TW_EXPORT void tw_log_to_stderr(void* user, uint32_t level, const char* text, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
