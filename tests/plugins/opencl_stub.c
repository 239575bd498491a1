/* An OpenCL library with one faulty device, selected by the environment variable STUB: "old" is
 * a device of OpenCL 1.1, "broken" one whose compiler refuses every program. opencl_stub_rest.c
 * has the other functions that the plugin looks up. */
#define CL_TARGET_OPENCL_VERSION 120
#include <stdlib.h>
#include <string.h>

#include <CL/cl.h>

static int is(const char* what) {
  const char* stub = getenv("STUB");
  return stub && strcmp(stub, what) == 0;
}

static cl_int give(const void* value, size_t bytes, size_t room, void* to, size_t* needed) {
  if (needed) *needed = bytes;
  if (to && room < bytes) return CL_INVALID_VALUE;
  if (to) memcpy(to, value, bytes);
  return CL_SUCCESS;
}
static cl_int give_text(const char* text, size_t room, void* to, size_t* needed) { return give(text, strlen(text) + 1, room, to, needed); }

static int handle; /* stands for every object */

CL_API_ENTRY cl_int CL_API_CALL clGetPlatformIDs(cl_uint n, cl_platform_id* platforms, cl_uint* found) {
  if (found) *found = 1;
  if (n) *platforms = (cl_platform_id)&handle;
  return CL_SUCCESS;
}
CL_API_ENTRY cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id p, cl_platform_info what, size_t room, void* to, size_t* needed) {
  (void)p, (void)what;
  return give_text("stub", room, to, needed);
}
CL_API_ENTRY cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id* devices, cl_uint* found) {
  (void)p, (void)type;
  if (found) *found = 1;
  if (n) *devices = (cl_device_id)&handle;
  return CL_SUCCESS;
}
CL_API_ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id d, cl_device_info what, size_t room, void* to, size_t* needed) {
  const cl_bool yes = CL_TRUE, no = CL_FALSE;
  const cl_ulong memory = 1u << 30;
  const size_t group = 64;
  const cl_device_type type = CL_DEVICE_TYPE_GPU;
  const cl_device_fp_config none = 0;
  (void)d;
  switch (what) {
    case CL_DEVICE_NAME: return give_text("stub device", room, to, needed);
    case CL_DEVICE_VERSION: return give_text(is("old") ? "OpenCL 1.1 stub" : "OpenCL 1.2 stub", room, to, needed);
    case CL_DRIVER_VERSION: return give_text("0.1", room, to, needed);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE: return give(&yes, sizeof yes, room, to, needed);
    case CL_DEVICE_HOST_UNIFIED_MEMORY: return give(&no, sizeof no, room, to, needed);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_LOCAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return give(&memory, sizeof memory, room, to, needed);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return give(&group, sizeof group, room, to, needed);
    case CL_DEVICE_TYPE: return give(&type, sizeof type, room, to, needed);
    case CL_DEVICE_DOUBLE_FP_CONFIG: return give(&none, sizeof none, room, to, needed);
    default: return CL_INVALID_VALUE;
  }
}
CL_API_ENTRY cl_context CL_API_CALL clCreateContext(const cl_context_properties* p, cl_uint n, const cl_device_id* d,
                                                    void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* user,
                                                    cl_int* error) {
  (void)p, (void)n, (void)d, (void)notify, (void)user;
  *error = CL_SUCCESS;
  return (cl_context)&handle;
}
CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithSource(cl_context c, cl_uint n, const char** text, const size_t* sizes,
                                                              cl_int* error) {
  (void)c, (void)n, (void)text, (void)sizes;
  *error = CL_SUCCESS;
  return (cl_program)&handle;
}
CL_API_ENTRY cl_int CL_API_CALL clBuildProgram(cl_program p, cl_uint n, const cl_device_id* d, const char* options,
                                               void(CL_CALLBACK* notify)(cl_program, void*), void* user) {
  (void)p, (void)n, (void)d, (void)options, (void)notify, (void)user;
  return CL_BUILD_PROGRAM_FAILURE;
}
CL_API_ENTRY cl_int CL_API_CALL clGetProgramBuildInfo(cl_program p, cl_device_id d, cl_program_build_info what, size_t room, void* to,
                                                      size_t* needed) {
  (void)p, (void)d, (void)what;
  return give_text("line 1: the stub understands nothing", room, to, needed);
}
