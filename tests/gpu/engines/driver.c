/* Stands in for CUDA's driver library: has the functions that cuDNN looks up before it lists its
 * engines. The functions do nothing, and there is no device. */
/* clang-format off */
#define NAMES(X) \
  X(cuCtxGetCurrent) X(cuCtxGetDevice) X(cuCtxGetLimit) X(cuCtxPopCurrent) X(cuCtxPopCurrent_v2) X(cuCtxPushCurrent) \
  X(cuCtxPushCurrent_v2) X(cuDeviceGet) X(cuDeviceGetAttribute) X(cuDeviceGetCount) X(cuDevicePrimaryCtxRelease) \
  X(cuDevicePrimaryCtxRelease_v2) X(cuDevicePrimaryCtxReset) X(cuDevicePrimaryCtxReset_v2) X(cuDevicePrimaryCtxRetain) \
  X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuGetErrorName) X(cuGetErrorString) X(cuInit) X(cuKernelGetAttribute) \
  X(cuKernelSetAttribute) X(cuLaunchCooperativeKernel) X(cuLaunchKernel) X(cuLaunchKernelEx) X(cuLibraryGetKernel) X(cuLibraryLoadData) \
  X(cuLibraryLoadFromFile) X(cuLibraryUnload) X(cuLinkAddData) X(cuLinkAddData_v2) X(cuLinkAddFile_v2) X(cuLinkComplete) X(cuLinkCreate) \
  X(cuLinkCreate_v2) X(cuLinkDestroy) X(cuMemcpyDtoH_v2) X(cuModuleGetFunction) X(cuModuleGetGlobal_v2) X(cuModuleLoadData) \
  X(cuModuleLoadDataEx) X(cuModuleLoadFatBinary) X(cuModuleUnload) X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuOccupancyMaxPotentialClusterSize) X(cuStreamGetCtx) X(cuStreamSynchronize) X(cuTensorMapEncodeTiled)
/* clang-format on */

enum { kNoDevice = 100 };

#define ABSENT(name) \
  int name(void);    \
  int name(void) { return kNoDevice; }
NAMES(ABSENT)

int cuDriverGetVersion(int* version);
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
