/* Host functions: functions of the program as operations of graphs. The ops PyFunc, PyFuncStateless
 * and EagerPyFunc call the function that has their attribute `token` as its token. They take and
 * give any number of tensors in host memory.
 *
 *     static void twice(void* user, tw_host_call* call) {
 *       tw_tensor* y = doubled(tw_host_call_input(call, 0));
 *       tw_host_call_finish(call, &y, 1);
 *       tw_tensor_release(y);
 *     }
 *     status = tw_host_function_register(NULL, "example/twice", twice, NULL);
 *
 * A token means something in its process only, and graphs store nothing but the token. A graph with
 * such an operation therefore runs in another process only after that process has registered a
 * function under the token; until then, the first run that needs the operation fails with
 * FAILED_PRECONDITION before any operation runs.
 * Trust: whoever gives this process a graph can make it call each function whose token he knows,
 * with inputs of his choice. Give a function a random token unless such graphs may call it.
 * Gradients: PyFunc and PyFuncStateless have none. The gradient of an EagerPyFunc calls, as a PyFunc,
 * the function whose token is that of the op followed by TW_HOST_GRADIENT. That function gets the
 * inputs, then the outputs, then the incoming gradient of each output of a floating-point or complex
 * type. It gives the gradient of each input of such a type, in the shape of the input.
 * Threads: any. Everything here: since 0.1. */
#ifndef THALWEG_HOST_FUNCTION_H
#define THALWEG_HOST_FUNCTION_H
#include "thalweg/export.h"
#include "thalweg/runtime.h"
#include "thalweg/tensor.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_HOST_GRADIENT "/gradient"

typedef struct tw_host_call tw_host_call; /* one call of a function, until the program ends it */

/* A function of the program. It ends the call with tw_host_call_finish or tw_host_call_fail, before
 * it returns or later, on any thread, exactly once, also if the call is cancelled. Thread: one of
 * the runtime that does not compute, several at once; the function may block and may call anything,
 * also run sessions. A call that nobody ends keeps its step waiting until the step is cancelled.
 * A function that does not return keeps its thread, and what waits for it: the release of the
 * runtime, and tw_host_function_unregister. The thread belongs to the runtime. If it is ended inside
 * the function (pthread_exit, which Python also calls for threads that outlive its interpreter), it
 * stands still for the rest of the process, and nobody waits for it. */
typedef void (*tw_host_function)(void* user, tw_host_call* call);

/* Registers a function under a token. runtime: NULL means the default one. token: copied; not empty.
 * user: passed to the function; must live until the function is unregistered and its calls have
 * ended. Errors: INVALID_ARGUMENT; ALREADY_EXISTS if a function has the token. */
TW_EXPORT tw_status* tw_host_function_register(tw_runtime* runtime, const char* token, tw_host_function function, void* user);
/* Unregisters the function. Waits until no other thread is in the function; no thread enters it
 * afterwards. Calls that the function has begun go on until the program ends them. Operations that
 * need the function then fail with FAILED_PRECONDITION. runtime: NULL means the default one.
 * Errors: NOT_FOUND. */
TW_EXPORT tw_status* tw_host_function_unregister(tw_runtime* runtime, const char* token);
/* Does the same for the end of a program, where a function may never return: waits at most wait_ns
 * nanoseconds, >= 0, for the threads in the function. The runtime gives up those that are in it
 * still: the release of the runtime does not wait for them. Their steps go on to wait for their
 * calls until they are cancelled, so cancel them first. The code of the function, and what user
 * leads to, must live until these threads have returned. They may return and end their calls at any
 * time, even after the runtime is gone. out_inside: receives their number; may be NULL. runtime:
 * NULL means the default one. Errors: NOT_FOUND; INVALID_ARGUMENT for wait_ns < 0 (the function
 * stays registered). */
TW_EXPORT tw_status* tw_host_function_unregister_within(tw_runtime* runtime, const char* token, int64_t wait_ns, uint32_t* out_inside);

/* ---- One call ---- */

/* Return the name of the operation, the number of its inputs and outputs, and the element type that
 * output i must have (0 past the end). call: NULL gives "" and 0. The name lives as long as the call. */
TW_EXPORT const char* tw_host_call_operation(const tw_host_call* call);
TW_EXPORT uint32_t tw_host_call_input_count(const tw_host_call* call);
TW_EXPORT uint32_t tw_host_call_output_count(const tw_host_call* call);
TW_EXPORT uint32_t tw_host_call_output_dtype(const tw_host_call* call, uint32_t i);
/* Returns input i, in host memory; NULL past the end and for NULL. The tensor is borrowed and lives
 * until the call ends; retain it to keep it. Others may read it, so do not write to it. */
TW_EXPORT tw_tensor* tw_host_call_input(const tw_host_call* call, uint32_t i);
/* Returns 1 if the step was cancelled or its deadline has passed, so that the outputs are not needed
 * any more; else 0. The call must be ended nevertheless. NULL gives 0. */
TW_EXPORT uint32_t tw_host_call_cancelled(const tw_host_call* call);
/* Ends the call with its outputs. call: taken; NULL does nothing. outputs: n tensors, retained; may
 * be NULL if n is 0. Their number and types must be those of the operation, which else fails with
 * INVALID_ARGUMENT; so it does for an output that is NULL. */
TW_EXPORT void tw_host_call_finish(tw_host_call* call, tw_tensor* const* outputs, uint32_t n);
/* Ends the call: the operation fails with this code and message. call: taken; NULL does nothing.
 * code: as for tw_status_create. message: copied; NULL is "". cookie: tw_status_cookie of the
 * resulting status returns it, so that the caller of the run finds what the function failed with; 0:
 * none. */
TW_EXPORT void tw_host_call_fail(tw_host_call* call, uint32_t code, const char* message, uint64_t cookie);

#ifdef __cplusplus
}
#endif
#endif
