// What calls of NVIDIA's libraries need to know of memory.
#ifndef THALWEG_PLUGINS_CUDA_KERNELS_PRODUCT_H_
#define THALWEG_PLUGINS_CUDA_KERNELS_PRODUCT_H_

#include "kernels/kernel.h"

namespace thalweg::opencl {

// Bytes to which the address of a place is sure to be aligned, up to what the driver's memory is.
uint32_t Alignment(const Place& p, uint32_t element_bytes);
// For work on that stream.
CUdeviceptr Address(const Place& p, CUstream queue, uint32_t element_bytes);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_PRODUCT_H_
