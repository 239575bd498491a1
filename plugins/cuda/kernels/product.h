// Addresses and alignments for calls of NVIDIA's libraries.
#ifndef THALWEG_PLUGINS_CUDA_KERNELS_PRODUCT_H_
#define THALWEG_PLUGINS_CUDA_KERNELS_PRODUCT_H_

#include "kernels/kernel.h"

namespace thalweg::opencl {

// Returns the alignment of a place in bytes, up to that of the driver's memory.
uint32_t Alignment(const Place& p, uint32_t element_bytes);
// Returns the address of a place for work on that stream.
CUdeviceptr Address(const Place& p, CUstream queue, uint32_t element_bytes);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_PRODUCT_H_
