/* Statuses report failures of all fallible calls of the application API. NULL is success; the
 * caller owns any other status and releases it with tw_status_release. The codes
 * (TW_INVALID_ARGUMENT and so on) are in types.h.
 * Threads: a status does not change once made, so any number of threads may read it.
 * Everything here: since 0.1. */
#ifndef THALWEG_STATUS_H
#define THALWEG_STATUS_H
#include "thalweg/export.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Returns TW_OK for NULL, else one of TW_CANCELLED .. TW_UNAUTHENTICATED. */
TW_EXPORT uint32_t tw_status_code(const tw_status* status);
/* Returns one line of UTF-8 that says what went wrong, where, with which value, and what to do.
 * Lives as long as the status; "" for NULL. */
TW_EXPORT const char* tw_status_message(const tw_status* status);
/* Returns the name of the operation that failed while it was added, differentiated, planned or run.
 * NULL if there is none, or it is unknown. Lives as long as the status. */
TW_EXPORT const char* tw_status_operation(const tw_status* status);
/* Returns the place in the program where that operation was made, as set by tw_op_set_place. NULL
 * if unknown. Lives as long as the status. */
TW_EXPORT const char* tw_status_place(const tw_status* status);
/* Returns the number that a function of the program gave to tw_host_call_fail (host_function.h), if
 * the status comes from that call; else 0. */
TW_EXPORT uint64_t tw_status_cookie(const tw_status* status);
/* Makes a new status, for callbacks that report a failure. code: 0 or above 16 becomes TW_UNKNOWN.
 * message: copied; NULL is "". Never NULL, even when memory is out. */
TW_EXPORT tw_status* tw_status_create(uint32_t code, const char* message);
/* NULL is fine. */
TW_EXPORT void tw_status_release(tw_status* status);
/* Returns "INVALID_ARGUMENT" for TW_INVALID_ARGUMENT; "UNKNOWN" for a number that is not a code.
 * Static. */
TW_EXPORT const char* tw_status_code_name(uint32_t code);

#ifdef __cplusplus
}
#endif
#endif
