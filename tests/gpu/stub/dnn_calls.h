// Shared by cuDNN's calls that are not part of graphs.
#pragma once
#include <cudnn.h>

#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

struct DnnStubHandle {
  cudaStream_t stream = nullptr;
};

struct DnnStubShape {  // a tensor descriptor
  cudnnDataType_t type{};
  std::vector<int> dims, steps;
};
inline DnnStubShape& ShapeOf(cudnnTensorDescriptor_t d) { return *reinterpret_cast<DnnStubShape*>(d); }
