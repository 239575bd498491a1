/* Values that go from one part of a step to another which runs in another process. Kernels of _Send and _Recv reach them through the
 * optional set "rendezvous", version 1: host->query(h, TW_S(TW_RENDEZVOUS_SET), 1) answers a const tw_rendezvous_api*.
 * A value is found by its key, once, whichever side comes first. Threads: any. */
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
  /* value: a reference that the call takes over, also when it fails; in host memory, from `keep`. Does not block: it waits for its receiver
   * without a thread. Errors: FAILED_PRECONDITION where the step is of one process; what has ended the step. */
  TW_R tw_status* (*send)(const tw_frame* f, const char* key, uint64_t len, tw_tensor* value);
  /* Of an asynchronous kernel: output `o`, which must be given (clause `gives`), becomes the value, and the frame's token is completed,
   * with the failure if there is one: INVALID_ARGUMENT for a value of another type or shape; UNAVAILABLE naming who is lost; what has ended
   * the step. If the call itself fails, the token is not completed. */
  TW_R tw_status* (*receive)(const tw_frame* f, const char* key, uint64_t len, uint32_t o);
} tw_rendezvous_api;

#ifdef __cplusplus
}
#endif
#endif
