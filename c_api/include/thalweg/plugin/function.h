/* Functions are graphs inside a graph that kernels call by name, the value of a `func` attribute.
 * Kernels of ops with such attributes (If, While, or a plugin's own) use the optional set
 * "function", version 1: host->query(h, TW_S(TW_FUNCTION_SET), 1) returns a const tw_function_api*.
 * A call is a part of the step: it ends with the step, counts towards its limits, and runs on the
 * calling thread and the threads that help the step. Calls may nest as deep as the session and the
 * thread's stack allow. A kernel that holds a resource open (`read`, `update`) must not call a
 * function that opens it. Threads: several calls of one function at once. */
#ifndef THALWEG_PLUGIN_FUNCTION_H
#define THALWEG_PLUGIN_FUNCTION_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_FUNCTION_SET "function"
typedef struct tw_function tw_function;

/* A call that may leave results in device memory, and that may be asynchronous. */
typedef struct tw_function_call {
  TW_HEAD;
  const tw_function* function;
  tw_tensor** args;        /* as in `call`; may be in memory of devices */
  tw_tensor** out_results; /* as in `call`; room until the call has ended */
  uint32_t anywhere;       /* 1: results may be in memory of devices, for outputs that the kernel's spec names in `anywhere` */
  uint32_t reserved;
  /* NULL: `run` blocks and returns the call's status. Else `run` returns NULL and calls done once
   * with the status, before `run` returns or later, on any thread; s is taken. Only for kernels
   * whose frame has a token, which stays open until then. */
  TW_O void (*done)(void* arg, tw_status* s);
  void* arg;
} tw_function_call;

/* A loop: runs `body` as long as `cond` holds, each time on the previous results of body. */
typedef struct tw_function_loop {
  TW_HEAD;
  const tw_function* cond; /* arguments: the values; result: one bool, which holds if it is true or, if it is not a scalar, has elements */
  const tw_function* body; /* arguments: the values; results: as many values of the same types */
  tw_tensor** values;      /* as args of `call`; on success the last results of body, as references of the caller; else NULL */
  uint32_t anywhere;       /* as in tw_function_call, for the values */
  uint32_t reserved;
} tw_function_loop;

typedef struct tw_function_api {
  TW_HEAD;
  /* Finds the function of that name in the graph of the running node. *out_function lives as long
   * as the kernel's state, which may keep it. NOT_FOUND, naming it. */
  TW_R tw_status* (*find)(const tw_frame* f, const char* name, uint64_t len, const tw_function** out_function);
  TW_R uint32_t (*args)(const tw_function* fn);                    /* number of arguments */
  TW_R uint32_t (*results)(const tw_function* fn);                 /* number of results */
  TW_R uint32_t (*arg_type)(const tw_function* fn, uint32_t i);    /* i < args */
  TW_R uint32_t (*result_type)(const tw_function* fn, uint32_t o); /* o < results */
  /* Runs the function; blocks until it has ended. args: one reference per argument, from `keep`,
   * `make` or an earlier call. The call takes them over, also when it fails, so that the function
   * may reuse the memory of a tensor that nobody else holds. out_results: room for all results; on
   * success each is a reference that the caller owns, on failure all are NULL. Only inside execute.
   * Errors: INVALID_ARGUMENT for arguments of other types or shapes than it takes;
   * RESOURCE_EXHAUSTED if calls are nested too deeply; the errors of its nodes; CANCELLED,
   * DEADLINE_EXCEEDED. */
  TW_R tw_status* (*call)(const tw_frame* f, const tw_function* fn, tw_tensor** args, tw_tensor** out_results);
  /* As `call`, with the choices of the record, which is read before this returns. */
  TW_C tw_status* (*run)(const tw_frame* f, const tw_function_call* call);
  /* Equals alternating calls of `cond` and `body`, without the overhead of each call; blocks until
   * it has ended. For kernels whose frame has no token. *out_iterations: completed runs of the
   * body, also on failure. Errors: those of `call`; INVALID_ARGUMENT if the functions' numbers or
   * types of values do not fit. */
  TW_C tw_status* (*loop)(const tw_frame* f, const tw_function_loop* loop, uint64_t* out_iterations);
} tw_function_api;

#ifdef __cplusplus
}
#endif
#endif
