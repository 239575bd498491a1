// The functions of the CUDA driver that the plugin calls. They are looked up at run time: the
// plugin does not link the driver's library, and any library with the same entry points may replace
// it. Driver errors become tw::Error here. Threads: read-only once loaded.
#ifndef THALWEG_PLUGINS_CUDA_DRIVER_H_
#define THALWEG_PLUGINS_CUDA_DRIVER_H_

#include <cuda.h>

#include <string>

#include "common/setting.h"

namespace thalweg::cuda {

// clang-format off
#define THALWEG_CUDA_FUNCTIONS(X) \
  X(cuCtxSetCurrent) X(cuCtxSynchronize) X(cuDeviceCanAccessPeer) X(cuDeviceGet) X(cuDeviceGetAttribute) X(cuDeviceGetCount) X(cuDeviceGetDefaultMemPool) \
  X(cuDeviceGetName) X(cuDeviceGetUuid) X(cuDevicePrimaryCtxRelease) X(cuDevicePrimaryCtxRetain) X(cuDeviceTotalMem) \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventElapsedTime) X(cuEventQuery) X(cuEventRecord) X(cuEventSynchronize) X(cuGetErrorName) X(cuGraphDestroy) \
  X(cuGraphExecDestroy) X(cuGraphExecUpdate) X(cuGraphInstantiateWithFlags) X(cuGraphLaunch) X(cuInit) \
  X(cuLaunchKernel) X(cuMemAllocFromPoolAsync) X(cuMemFreeAsync) X(cuMemFreeHost) X(cuMemGetInfo) X(cuMemHostAlloc) \
  X(cuMemHostGetDevicePointer) X(cuMemPoolSetAccess) X(cuMemPoolSetAttribute) X(cuMemPoolTrimTo) X(cuMemcpyDtoDAsync) X(cuMemcpyDtoHAsync) \
  X(cuMemcpyHtoDAsync) X(cuMemcpyPeerAsync) X(cuModuleGetFunction) X(cuModuleLoadData) X(cuModuleUnload) X(cuPointerGetAttribute) X(cuStreamBeginCapture) X(cuStreamCreate) X(cuStreamDestroy) \
  X(cuStreamEndCapture) X(cuStreamIsCapturing) \
  X(cuStreamSynchronize) X(cuStreamWaitEvent) X(cuStreamWaitValue32)
// clang-format on

struct Driver {
#define THALWEG_CUDA_POINTER(name) decltype(&::name) name = nullptr;
  THALWEG_CUDA_FUNCTIONS(THALWEG_CUDA_POINTER)
#undef THALWEG_CUDA_POINTER

  // Opens the library that the setting `library` names, else libcuda.so.1. It stays mapped for
  // good, because it keeps threads of its own. Throws NOT_FOUND without a driver, or
  // FAILED_PRECONDITION if it is too old, with a one-line remedy.
  void Load(const tw_host* host);
};

using common::Setting;

// Returns the error "`what` failed with `error`".
tw::Error Failure(const Driver& driver, CUresult error, const std::string& what);

inline void Check(const Driver& driver, CUresult error, const char* what) {
  if (error != CUDA_SUCCESS) throw Failure(driver, error, what);
}

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_DRIVER_H_
