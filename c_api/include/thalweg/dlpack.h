/* DLPack shares tensors with NumPy, PyTorch, JAX, CuPy and others without copying. The structures
 * are those of dlpack.h (0.x: DLManagedTensor; 1.x: DLManagedTensorVersioned). They are passed as
 * void*, so that a program may include any version of dlpack.h.
 * Threads: any. Everything here: since 0.1. */
#ifndef THALWEG_DLPACK_H
#define THALWEG_DLPACK_H
#include "thalweg/export.h"
#include "thalweg/runtime.h"
#include "thalweg/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Exports a tensor as a DLManagedTensor* that shares its memory. The caller owns *out_managed and
 * ends it with its `deleter`; until then it holds a reference to the tensor. The consumer must not
 * write to the memory, which this form cannot express. The memory is the CPU's, or a device's under
 * the type and number that its plugin gives; for OpenCL `data` is a cl_mem. The elements are
 * complete, so no queue has to wait for them. Exception: a tensor that was imported by
 * tw_tensor_from_dlpack_on with a queue is complete when that queue has computed it. Run the
 * deleter only after the consumer's queues have finished reading, because the memory is then used
 * again. Errors: INVALID_ARGUMENT for element types that DLPack does not have (string, resource,
 * variant, quantised, below 8 bits), and for tensors on devices whose plugin shares no memory (copy
 * with tw_tensor_to_host); FAILED_PRECONDITION if the tensor's device no longer exists. */
TW_EXPORT tw_status* tw_tensor_to_dlpack(tw_tensor* tensor, void** out_managed);
/* The same, as a DLManagedTensorVersioned* of version 1.0, flagged read-only. */
TW_EXPORT tw_status* tw_tensor_to_dlpack_versioned(tw_tensor* tensor, void** out_managed);
/* Imports a DLManagedTensor*. managed: taken; its deleter runs after the last reference to the
 * tensor is gone, on any thread, also when this call fails. Host memory that is dense, row-major
 * and aligned is shared: the runtime never writes to it, and later writes of the producer are
 * visible. Other host memory is copied. The caller owns *out_tensor. Errors: INVALID_ARGUMENT
 * (memory of a device; an element type that tensors do not have, lanes; negative dims). */
TW_EXPORT tw_status* tw_tensor_from_dlpack(void* managed, tw_tensor** out_tensor);
/* The same, for a DLManagedTensorVersioned*. The caller owns *out_tensor. Errors: those of
 * tw_tensor_from_dlpack; INVALID_ARGUMENT for a major version other than 1. */
TW_EXPORT tw_status* tw_tensor_from_dlpack_versioned(void* managed, tw_tensor** out_tensor);
/* The same, also for memory of a device, which is shared and stays on the device;
 * tw_signature.feed_devices then avoids copies. runtime: the owner of the device; NULL means the
 * default one. managed: taken, a DLManagedTensorVersioned* if versioned is 1, a DLManagedTensor* if
 * 0; the deleter runs when the device no longer uses the memory. queue: borrowed, the native queue
 * (a cl_command_queue, a CUstream) that computes the elements; the device waits for it before it
 * uses them; NULL means that the elements are complete. The caller owns *out_tensor. Errors: those
 * of tw_tensor_from_dlpack_versioned; NOT_FOUND, listing the devices that share memory, if none has
 * the type and number; INVALID_ARGUMENT for memory that the device cannot use (of another context,
 * too short, not dense and row-major) and for such a queue. */
TW_EXPORT tw_status* tw_tensor_from_dlpack_on(tw_runtime* runtime, void* managed, uint32_t versioned, void* queue, tw_tensor** out_tensor);

#ifdef __cplusplus
}
#endif
#endif
