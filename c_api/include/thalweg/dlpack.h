/* DLPack: tensors shared with NumPy, PyTorch, JAX, CuPy and others without copying. The structures are those of dlpack.h (0.x:
 * DLManagedTensor; 1.x: DLManagedTensorVersioned), passed as void* so that a program may include whichever dlpack.h it has.
 * Threads: any. Everything here: since 0.1. */
#ifndef THALWEG_DLPACK_H
#define THALWEG_DLPACK_H
#include "thalweg/export.h"
#include "thalweg/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The tensor as a DLManagedTensor* of CPU memory, sharing it: the caller owns *out_managed and ends it with its `deleter`; until then it
 * holds a reference to the tensor. The consumer must not write to it, which this form cannot say.
 * Errors: INVALID_ARGUMENT for element types that DLPack has not (string, resource, variant, quantised, below 8 bits), and for
 * tensors in the memory of a device, which tw_tensor_to_host copies. */
TW_EXPORT tw_status* tw_tensor_to_dlpack(tw_tensor* tensor, void** out_managed);
/* The same as a DLManagedTensorVersioned* of version 1.0, flagged read-only. */
TW_EXPORT tw_status* tw_tensor_to_dlpack_versioned(tw_tensor* tensor, void** out_managed);
/* A tensor from a DLManagedTensor*. managed: taken, its deleter runs once the tensor's last reference is gone, on any thread, also when
 * this call fails. Memory of the host that is dense, row-major and aligned is shared, and never written to by the runtime, but what its
 * producer writes there shows; anything else is copied. The caller owns *out_tensor. Errors: INVALID_ARGUMENT (memory of another device; an
 * element type that tensors have not, lanes; negative dims). */
TW_EXPORT tw_status* tw_tensor_from_dlpack(void* managed, tw_tensor** out_tensor);
/* The same from a DLManagedTensorVersioned*. The caller owns *out_tensor. Errors: those, and INVALID_ARGUMENT for a major version other
 * than 1. */
TW_EXPORT tw_status* tw_tensor_from_dlpack_versioned(void* managed, tw_tensor** out_tensor);

#ifdef __cplusplus
}
#endif
#endif
