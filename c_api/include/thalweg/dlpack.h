/* DLPack: tensors shared with NumPy, PyTorch, JAX, CuPy and others without copying. The structures are those of dlpack.h (0.x:
 * DLManagedTensor; 1.x: DLManagedTensorVersioned), passed as void* so that a program may include whichever dlpack.h it has.
 * Threads: any. Everything here: since 0.1. */
#ifndef THALWEG_DLPACK_H
#define THALWEG_DLPACK_H
#include "thalweg/export.h"
#include "thalweg/runtime.h"
#include "thalweg/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The tensor as a DLManagedTensor*, sharing its memory: the caller owns *out_managed and ends it with its `deleter`; until then it holds a
 * reference to the tensor. The consumer must not write to it, which this form cannot say. Memory is the CPU's, or a device's, under the
 * type and number that its plugin gives: for OpenCL `data` is a cl_mem. Its elements are there already: no queue needs to wait for them,
 * but for those of a tensor that came by tw_tensor_from_dlpack_on with a queue, which are there when that queue has made them. The deleter
 * may run only when no queue of the consumer still reads the memory, which is then used again. Errors: INVALID_ARGUMENT for element types
 * that DLPack has not (string, resource, variant, quantised, below 8 bits), and for tensors on devices whose plugin shares no memory, which
 * tw_tensor_to_host copies; FAILED_PRECONDITION if the tensor's device is no more. */
TW_EXPORT tw_status* tw_tensor_to_dlpack(tw_tensor* tensor, void** out_managed);
/* The same as a DLManagedTensorVersioned* of version 1.0, flagged read-only. */
TW_EXPORT tw_status* tw_tensor_to_dlpack_versioned(tw_tensor* tensor, void** out_managed);
/* A tensor from a DLManagedTensor*. managed: taken, its deleter runs once the tensor's last reference is gone, on any thread, also when
 * this call fails. Memory of the host that is dense, row-major and aligned is shared, and never written to by the runtime, but what its
 * producer writes there shows; anything else is copied. The caller owns *out_tensor. Errors: INVALID_ARGUMENT (memory of a device; an
 * element type that tensors have not, lanes; negative dims). */
TW_EXPORT tw_status* tw_tensor_from_dlpack(void* managed, tw_tensor** out_tensor);
/* The same from a DLManagedTensorVersioned*. The caller owns *out_tensor. Errors: those, and INVALID_ARGUMENT for a major version other
 * than 1. */
TW_EXPORT tw_status* tw_tensor_from_dlpack_versioned(void* managed, tw_tensor** out_tensor);
/* The same from memory of a device too, which is shared and stays there; tw_signature.feed_devices then spares copies. runtime: whose
 * device; NULL is the default one. managed: taken, a DLManagedTensorVersioned* if versioned is 1, a DLManagedTensor* if 0; the deleter runs
 * when the device is done with the memory. queue: borrowed, the native queue (a cl_command_queue, a CUstream) where the work was enqueued
 * that makes the elements: what the device does with them waits for it, on the device; NULL: they are there already. The caller owns
 * *out_tensor. Errors: those; NOT_FOUND, listing the devices that share memory, if none has the type and number; INVALID_ARGUMENT for
 * memory that the device cannot use (of another context, too short, not dense and row-major) and for such a queue. */
TW_EXPORT tw_status* tw_tensor_from_dlpack_on(tw_runtime* runtime, void* managed, uint32_t versioned, void* queue, tw_tensor** out_tensor);

#ifdef __cplusplus
}
#endif
#endif
