// The OpenCL functions that the plugin calls. It finds them in the ICD loader at run time, so on a
// machine without OpenCL the plugin still loads and reports that there are no devices. OpenCL
// errors become tw::Error here. Threads: read-only once loaded.
#ifndef THALWEG_PLUGINS_OPENCL_API_H_
#define THALWEG_PLUGINS_OPENCL_API_H_

#define CL_TARGET_OPENCL_VERSION 120
#include <string>

#include <CL/cl.h>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::opencl {

// clang-format off
#define THALWEG_OPENCL_FUNCTIONS(X) \
  X(clBuildProgram) X(clCreateBuffer) X(clCreateCommandQueue) X(clCreateContext) X(clCreateKernel) \
  X(clCreateProgramWithBinary) X(clCreateProgramWithSource) X(clCreateUserEvent) \
  X(clEnqueueBarrierWithWaitList) X(clEnqueueCopyBuffer) X(clEnqueueMarkerWithWaitList) X(clEnqueueNDRangeKernel) \
  X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) X(clFinish) X(clFlush) X(clGetCommandQueueInfo) X(clGetDeviceIDs) \
  X(clGetDeviceInfo) X(clGetEventInfo) X(clGetEventProfilingInfo) X(clGetKernelWorkGroupInfo) X(clGetMemObjectInfo) X(clGetPlatformIDs) \
  X(clGetPlatformInfo) X(clGetProgramBuildInfo) X(clGetProgramInfo) X(clReleaseCommandQueue) \
  X(clReleaseContext) X(clReleaseEvent) X(clReleaseKernel) X(clReleaseMemObject) \
  X(clReleaseProgram) X(clRetainEvent) X(clSetKernelArg) X(clSetMemObjectDestructorCallback) X(clSetUserEventStatus) X(clWaitForEvents)
// clang-format on

struct Api {
#define THALWEG_OPENCL_POINTER(name) decltype(&::name) name = nullptr;
  THALWEG_OPENCL_FUNCTIONS(THALWEG_OPENCL_POINTER)
#undef THALWEG_OPENCL_POINTER

  // Fills the table from `library`. Returns an empty string on success, else the reason. The
  // library stays mapped for good, because drivers keep threads of their own.
  std::string Load(const std::string& library);
};

// "CL_OUT_OF_RESOURCES", or "OpenCL error -9999" for a code that the standard does not name.
std::string ErrorName(cl_int error);

// Returns the error "`what` failed with `error`".
tw::Error Failure(cl_int error, const std::string& what);

inline void Check(cl_int error, const char* what) {
  if (error != CL_SUCCESS) throw Failure(error, what);
}

// Returns a text property without its terminating zero.
std::string DeviceText(const Api& cl, cl_device_id device, cl_device_info what);
std::string PlatformText(const Api& cl, cl_platform_id platform, cl_platform_info what);

// Returns a property of fixed size; T is its type in the standard.
template <class T>
T DeviceValue(const Api& cl, cl_device_id device, cl_device_info what) {
  T value{};
  Check(cl.clGetDeviceInfo(device, what, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_API_H_
