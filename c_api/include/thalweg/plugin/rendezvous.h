/* Rendezvous: values that pass between parts of a step in different processes. Kernels of _Send and
 * _Recv use the optional set "rendezvous", version 1: host->query(h, TW_S(TW_RENDEZVOUS_SET), 1)
 * returns a const tw_rendezvous_api*. A value is delivered by its key, once, in any order of send
 * and receive. Threads: any. */
#ifndef THALWEG_PLUGIN_RENDEZVOUS_H
#define THALWEG_PLUGIN_RENDEZVOUS_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_RENDEZVOUS_SET "rendezvous"
typedef struct tw_rendezvous_api {
  TW_HEAD;
  /* Sends a value. value: a reference that the call takes over, also when it fails; in host memory,
   * from `keep`. Does not block: the value waits for its receiver without a thread. Errors:
   * FAILED_PRECONDITION if the step has only one process; the error that ended the step. */
  TW_R tw_status* (*send)(const tw_frame* f, const char* key, uint64_t len, tw_tensor* value);
  /* Receives a value; for an asynchronous kernel. Gives the value to output `o`, which must be in
   * clause `gives`, and completes the frame's token. Failures complete the token, too:
   * INVALID_ARGUMENT for a value of another type or shape; UNAVAILABLE naming the lost task; the
   * error that ended the step. If the call itself fails, the token is not completed. */
  TW_R tw_status* (*receive)(const tw_frame* f, const char* key, uint64_t len, uint32_t o);
} tw_rendezvous_api;

#ifdef __cplusplus
}
#endif
#endif
