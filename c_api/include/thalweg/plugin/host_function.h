/* Host functions: functions of the program that kernels call by a token (host_function.h of the
 * application API). The kernels of PyFunc and its kin use the optional set "host_function",
 * version 1: host->query(h, TW_S(TW_HOST_FUNCTION_SET), 1) returns a const tw_host_function_api*.
 * Threads: any. */
#ifndef THALWEG_PLUGIN_HOST_FUNCTION_H
#define THALWEG_PLUGIN_HOST_FUNCTION_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_HOST_FUNCTION_SET "host_function"

typedef struct tw_host_function_api {
  TW_HEAD;
  /* Checks that a function of the program has this token, for `create`. Errors: FAILED_PRECONDITION
   * with the remedy. */
  TW_R tw_status* (*find)(const tw_host* h, const char* token, uint64_t len);
  /* Calls the function with the inputs of the frame, which are in host memory, gives all outputs and
   * completes the frame's token. For an asynchronous kernel whose spec says `gives` of all outputs,
   * and `keep` of all inputs if they shall not be copied. No thread waits: the function runs on a
   * thread that may block, and the program ends the call on any thread. If the step is cancelled or
   * its deadline passes, the token is completed at once. If the entry itself fails, the token is not
   * completed: FAILED_PRECONDITION, as find. */
  TW_R tw_status* (*start)(const tw_frame* f, const char* token, uint64_t len);
} tw_host_function_api;

#ifdef __cplusplus
}
#endif
#endif
