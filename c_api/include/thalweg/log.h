/* The log carries messages of the runtime and its plugins that are not errors of a call. It is
 * silent unless a program sets a sink.
 * Threads: any. Everything here: since 0.1. */
#ifndef THALWEG_LOG_H
#define THALWEG_LOG_H
#include "thalweg/export.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {
  TW_LOG_DEBUG = 0,   /* reasons for choices: kernels skipped, plans made */
  TW_LOG_INFO = 1,    /* events: plugins loaded, files written */
  TW_LOG_WARNING = 2, /* likely problems: kernels missing on a device, deprecated attributes */
  TW_LOG_ERROR = 3    /* failures that could not be returned as a status */
};

/* Receives one line (UTF-8, `bytes` long, no end of line). Threads: any, several at once; it must
 * not block for long and must not call back into the runtime. */
typedef void (*tw_log_sink)(void* user, uint32_t level, const char* text, uint64_t bytes);

/* Sends lines of at least `min_level` to `sink` from now on. sink: NULL discards all lines. user:
 * passed to the sink, must live until the sink is replaced.
 * Errors: INVALID_ARGUMENT for a level above 3. Threads: any; a line that another thread is writing
 * may still reach the old sink. */
TW_EXPORT tw_status* tw_log_set_sink(tw_runtime* runtime, tw_log_sink sink, void* user, uint32_t min_level);
/* Writes a line to the log, as plugins do. text: NUL-terminated. Errors: INVALID_ARGUMENT for a
 * level above 3. */
TW_EXPORT tw_status* tw_log_write(tw_runtime* runtime, uint32_t level, const char* text);
/* A ready-made sink that writes "thalweg: warning: ..." to standard error. user: ignored. */
TW_EXPORT void tw_log_to_stderr(void* user, uint32_t level, const char* text, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
