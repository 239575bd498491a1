// The functions of the CUDA driver that the plugin calls, found in the driver's library while running: the plugin is not linked to it, and
// whatever has the same entry points can stand in its place. Errors of the driver become tw::Error here. Threads: read-only once loaded.
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

  // Opens the library that the setting `library` names, else libcuda.so.1, which stays mapped for good: it keeps threads of its own.
  // No driver or one that is too old: NOT_FOUND or FAILED_PRECONDITION, in one line that says what to do.
  void Load(const tw_host* host);
};

using common::Setting;

// The error that says that `what` failed with `error`.
tw::Error Failure(const Driver& driver, CUresult error, const std::string& what);

inline void Check(const Driver& driver, CUresult error, const char* what) {
  if (error != CUDA_SUCCESS) throw Failure(driver, error, what);
}

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_DRIVER_H_
