/* Functions: graphs that belong to a graph and that kernels call by name, as the value of a `func` attribute says it. Kernels of ops with
 * such attributes (If, While, or a plugin's own) reach them through the optional set "function", version 1: host->query(h,
 * TW_S(TW_FUNCTION_SET), 1) answers a const tw_function_api*.
 * A call is a part of the step: it ends with it, counts towards its limits, and runs on the calling thread and whoever helps the step.
 * Calls may lie within each other, as deep as the session and the thread's stack allow. A kernel that holds a resource open (`read`,
 * `update`) must not call a function that opens it. Threads: several calls of one function at once. */
#ifndef THALWEG_PLUGIN_FUNCTION_H
#define THALWEG_PLUGIN_FUNCTION_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_FUNCTION_SET "function"
typedef struct tw_function tw_function;

/* A call that may leave results where they are made, or be waited for by nobody. */
typedef struct tw_function_call {
  TW_HEAD;
  const tw_function* function;
  tw_tensor** args;        /* as `call` takes them; they may lie in memory of devices */
  tw_tensor** out_results; /* as `call` answers them; room until it is over */
  uint32_t anywhere;       /* 1: results may lie in memory of devices, for outputs that the kernel's spec names in `anywhere` */
  uint32_t reserved;
  /* NULL: `run` waits, and answers what the call ends with. Else `run` answers NULL and this is told the end, once: before `run` returns
   * or later, on any thread; s is taken. Only for kernels whose frame has a token, which stays open until then. */
  TW_O void (*done)(void* arg, tw_status* s);
  void* arg;
} tw_function_call;

/* A loop: `body` for as long as `cond` says so, each time with what it gave before. */
typedef struct tw_function_loop {
  TW_HEAD;
  const tw_function* cond; /* takes the values; gives one bool, which says yes as true or, where it is no scalar, by having elements */
  const tw_function* body; /* takes the values and gives as many, of the same types */
  tw_tensor** values;      /* as `call` takes its args; on success what the body gave last, as references of the caller; else NULL */
  uint32_t anywhere;       /* as in tw_function_call, of the values */
  uint32_t reserved;
} tw_function_loop;

typedef struct tw_function_api {
  TW_HEAD;
  /* The function of that name of the graph whose node runs. *out_function lives as long as the kernel's state, which may keep it.
   * NOT_FOUND, naming it. */
  TW_R tw_status* (*find)(const tw_frame* f, const char* name, uint64_t len, const tw_function** out_function);
  TW_R uint32_t (*args)(const tw_function* fn);                    /* how many it takes */
  TW_R uint32_t (*results)(const tw_function* fn);                 /* how many it gives */
  TW_R uint32_t (*arg_type)(const tw_function* fn, uint32_t i);    /* i < args */
  TW_R uint32_t (*result_type)(const tw_function* fn, uint32_t o); /* o < results */
  /* Runs it; blocks until it is over. args: as many as it takes, from `keep`, `make` or an earlier call; each a reference that the call
   * takes over, also when it fails, so that the function may work in the memory of what nobody else holds. out_results: room for as many as
   * it gives; on success each is a reference that the caller owns, on failure all are NULL. Only inside execute. Errors: INVALID_ARGUMENT
   * for arguments of other types or shapes than it takes; RESOURCE_EXHAUSTED where calls lie too deep within each other; whatever its nodes
   * fail with; CANCELLED, DEADLINE_EXCEEDED. */
  TW_R tw_status* (*call)(const tw_frame* f, const tw_function* fn, tw_tensor** args, tw_tensor** out_results);
  /* As `call`, in ways that the record says, which is read before this returns. */
  TW_C tw_status* (*run)(const tw_frame* f, const tw_function_call* call);
  /* What calls of `cond` and `body` in turn would do, without what each call begins and ends with; blocks until it is over. For kernels
   * whose frame has no token. *out_iterations: how many times the body has run to its end, also on failure. Errors: those of `call`;
   * INVALID_ARGUMENT if the functions' numbers or types of values do not fit. */
  TW_C tw_status* (*loop)(const tw_frame* f, const tw_function_loop* loop, uint64_t* out_iterations);
} tw_function_api;

#ifdef __cplusplus
}
#endif
#endif
