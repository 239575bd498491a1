/* The host table: one per plugin and runtime, a record per noun. Threads: every entry from any thread, unless its header says less. */
#ifndef THALWEG_PLUGIN_HOST_H
#define THALWEG_PLUGIN_HOST_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/device.h"
#include "thalweg/plugin/kernel.h"
#include "thalweg/plugin/op.h"
#include "thalweg/plugin/resource.h"
#include "thalweg/plugin/status.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

struct tw_host {
  TW_HEAD;
  uint32_t epoch, minor; /* minor: the agreed one */
  void* self;            /* the host's */
  const tw_status_api* status;
  const tw_tensor_api* tensor;
  const tw_graph_api* graph;
  const tw_resource_api* resource;
  const tw_timeline_api* timeline;
  const tw_run_api* run;
  TW_R const void* (*query)(const tw_host* h, const char* set, uint64_t len, uint32_t version); /* returns an optional set; NULL if the
                                                                                                   host does not have it */
  /* Returns the runtime option `plugin.<id>.<key>`, or one of the host's own keys: `path` (of this
   * plugin's file). Errors: NOT_FOUND if it is not set. */
  TW_R tw_status* (*setting)(const tw_host* h, const char* key, uint64_t len, tw_sink* to);
};

/* Makes a tensor in new host memory; see tw_tensor_api.make. */
static inline tw_status* tw_make_tensor(const tw_host* h, uint32_t dtype, const int64_t* dims, uint32_t rank, tw_tensor** out_tensor) {
  tw_tensor_config c;
  c.size = (uint32_t)sizeof c;
  c.flags = 0;
  c.dims = dims;
  c.rank = rank;
  c.dtype = dtype;
  c.data = NULL;
  c.bytes = 0;
  c.release = NULL;
  c.user = NULL;
  return h->tensor->make(h, &c, out_tensor);
}

/* Makes a failure with a literal or computed text. */
static inline tw_status* tw_fail(const tw_host* h, uint32_t code, const char* text, uint64_t len) {
  return h->status->make(h, code, text, len, NULL);
}

#ifdef __cplusplus
}
#endif
#endif
