/* An OpenCL library that forwards every call to the machine's own, until its device vanishes.
 * After vanish_after(n), n more calls of the device succeed; then every call except releases
 * returns CL_DEVICE_NOT_AVAILABLE. Work in progress ends first, since no work may touch memory
 * after its owner stops waiting. n < 0: the device never vanishes. counted() returns the number
 * of calls of some kinds. The environment variables DRIVER_VERSION and DEVICE_NAME override the
 * device's own values. */
#define CL_TARGET_OPENCL_VERSION 120
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <CL/cl.h>

static atomic_long left = -1; /* 0: gone */

void vanish_after(long n);
void vanish_after(long n) { atomic_store(&left, n); }

enum { kOnHostMemory, kOtherBuffers, kCopies, kKinds };
static atomic_long counts[kKinds];
static void count(int kind) { atomic_fetch_add(&counts[kind], 1); }

/* Kinds: buffers on host memory, other buffers, commands that copy from or to the host. */
long counted(int kind);
long counted(int kind) { return atomic_load(&counts[kind]); }

/* Makes the latest marker appear failed; PoCL itself would end the process if an event failed. */
static _Atomic(cl_event) marker;
static atomic_int markers_fail;
void fail_marker(void);
void fail_marker(void) { atomic_store(&markers_fail, 1); }

static int gone(void) { return atomic_load(&left) == 0; }

/* Returns true if this call finds the device gone. */
static int refused(void) {
  long n = atomic_load(&left);
  while (n > 0 && !atomic_compare_exchange_weak(&left, &n, n - 1)) continue;
  return n == 0;
}

static void* real(const char* name) {
  static _Atomic(void*) library;
  void* found = atomic_load(&library);
  if (!found) atomic_store(&library, found = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL));
  return found ? dlsym(found, name) : NULL;
}

#define CALL(name, arguments) ((__typeof__(&name))real(#name)) arguments

/* A call that makes an object: returns NULL and an error once the device is gone. */
#define MAKES(type, name, parameters, arguments)   \
  CL_API_ENTRY type CL_API_CALL name parameters {  \
    if (refused()) {                               \
      if (error) *error = CL_DEVICE_NOT_AVAILABLE; \
      return NULL;                                 \
    }                                              \
    return CALL(name, arguments);                  \
  }
/* A call that queries or enqueues. */
#define ASKS(name, parameters, arguments) \
  CL_API_ENTRY cl_int CL_API_CALL name parameters { return refused() ? CL_DEVICE_NOT_AVAILABLE : CALL(name, arguments); }
/* A call that waits or completes work: it is forwarded, and then reports failure. */
#define WAITS(name, parameters, arguments)            \
  CL_API_ENTRY cl_int CL_API_CALL name parameters {   \
    const cl_int answer = CALL(name, arguments);      \
    return gone() ? CL_DEVICE_NOT_AVAILABLE : answer; \
  }
/* A call that always succeeds. */
#define STAYS(name, parameters, arguments) \
  CL_API_ENTRY cl_int CL_API_CALL name parameters { return CALL(name, arguments); }

#define EVENTS cl_uint n, const cl_event *after, cl_event *event
MAKES(cl_context, clCreateContext,
      (const cl_context_properties* p, cl_uint n, const cl_device_id* d, void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*),
       void* user, cl_int* error),
      (p, n, d, notify, user, error))
MAKES(cl_command_queue, clCreateCommandQueue, (cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int* error),
      (c, d, p, error))
CL_API_ENTRY cl_mem CL_API_CALL clCreateBuffer(cl_context c, cl_mem_flags f, size_t bytes, void* host, cl_int* error) {
  count(f & CL_MEM_USE_HOST_PTR ? kOnHostMemory : kOtherBuffers);
  if (refused()) {
    if (error) *error = CL_DEVICE_NOT_AVAILABLE;
    return NULL;
  }
  return CALL(clCreateBuffer, (c, f, bytes, host, error));
}
MAKES(cl_kernel, clCreateKernel, (cl_program p, const char* name, cl_int* error), (p, name, error))
MAKES(cl_program, clCreateProgramWithSource, (cl_context c, cl_uint n, const char** text, const size_t* sizes, cl_int* error),
      (c, n, text, sizes, error))
MAKES(cl_program, clCreateProgramWithBinary,
      (cl_context c, cl_uint n, const cl_device_id* d, const size_t* sizes, const unsigned char** bytes, cl_int* status, cl_int* error),
      (c, n, d, sizes, bytes, status, error))
MAKES(cl_event, clCreateUserEvent, (cl_context c, cl_int* error), (c, error))
ASKS(clBuildProgram,
     (cl_program p, cl_uint n, const cl_device_id* d, const char* options, void(CL_CALLBACK* notify)(cl_program, void*), void* user),
     (p, n, d, options, notify, user))
ASKS(clSetKernelArg, (cl_kernel k, cl_uint i, size_t bytes, const void* value), (k, i, bytes, value))
ASKS(clEnqueueBarrierWithWaitList, (cl_command_queue q, EVENTS), (q, n, after, event))
ASKS(clEnqueueCopyBuffer, (cl_command_queue q, cl_mem from, cl_mem to, size_t from_at, size_t to_at, size_t bytes, EVENTS),
     (q, from, to, from_at, to_at, bytes, n, after, event))
CL_API_ENTRY cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue q, EVENTS) {
  if (refused()) return CL_DEVICE_NOT_AVAILABLE;
  const cl_int answer = CALL(clEnqueueMarkerWithWaitList, (q, n, after, event));
  if (answer == CL_SUCCESS && event) atomic_store(&marker, *event);
  return answer;
}
ASKS(clEnqueueNDRangeKernel,
     (cl_command_queue q, cl_kernel k, cl_uint rank, const size_t* from, const size_t* global, const size_t* local, EVENTS),
     (q, k, rank, from, global, local, n, after, event))
CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool block, size_t at, size_t bytes, void* to,
                                                    EVENTS) {
  count(kCopies);
  return refused() ? CL_DEVICE_NOT_AVAILABLE : CALL(clEnqueueReadBuffer, (q, m, block, at, bytes, to, n, after, event));
}
CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool block, size_t at, size_t bytes, const void* from,
                                                     EVENTS) {
  count(kCopies);
  return refused() ? CL_DEVICE_NOT_AVAILABLE : CALL(clEnqueueWriteBuffer, (q, m, block, at, bytes, from, n, after, event));
}
ASKS(clGetKernelWorkGroupInfo, (cl_kernel k, cl_device_id d, cl_kernel_work_group_info what, size_t room, void* to, size_t* needed),
     (k, d, what, room, to, needed))
ASKS(clGetMemObjectInfo, (cl_mem m, cl_mem_info what, size_t room, void* to, size_t* needed), (m, what, room, to, needed))
ASKS(clSetMemObjectDestructorCallback, (cl_mem m, void(CL_CALLBACK* notify)(cl_mem, void*), void* user), (m, notify, user))
WAITS(clFinish, (cl_command_queue q), (q))
WAITS(clFlush, (cl_command_queue q), (q))
CL_API_ENTRY cl_int CL_API_CALL clGetEventInfo(cl_event e, cl_event_info what, size_t room, void* to, size_t* needed) {
  const cl_int answer = CALL(clGetEventInfo, (e, what, room, to, needed)), failed = CL_OUT_OF_RESOURCES;
  if (gone()) return CL_DEVICE_NOT_AVAILABLE;
  if (atomic_load(&markers_fail) && e == atomic_load(&marker) && what == CL_EVENT_COMMAND_EXECUTION_STATUS)
    memcpy(to, &failed, sizeof failed);
  return answer;
}
WAITS(clGetEventProfilingInfo, (cl_event e, cl_profiling_info what, size_t room, void* to, size_t* needed), (e, what, room, to, needed))
WAITS(clGetProgramBuildInfo, (cl_program p, cl_device_id d, cl_program_build_info what, size_t room, void* to, size_t* needed),
      (p, d, what, room, to, needed))
WAITS(clGetProgramInfo, (cl_program p, cl_program_info what, size_t room, void* to, size_t* needed), (p, what, room, to, needed))
WAITS(clSetUserEventStatus, (cl_event e, cl_int status), (e, status))
WAITS(clWaitForEvents, (cl_uint n, const cl_event* events), (n, events))
STAYS(clGetCommandQueueInfo, (cl_command_queue q, cl_command_queue_info what, size_t room, void* to, size_t* needed),
      (q, what, room, to, needed))
STAYS(clGetDeviceIDs, (cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id* devices, cl_uint* found),
      (p, type, n, devices, found))
CL_API_ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id d, cl_device_info what, size_t room, void* to, size_t* needed) {
  const char* told = what == CL_DRIVER_VERSION ? getenv("DRIVER_VERSION") : what == CL_DEVICE_NAME ? getenv("DEVICE_NAME") : NULL;
  if (!told) return CALL(clGetDeviceInfo, (d, what, room, to, needed));
  if (needed) *needed = strlen(told) + 1;
  if (to && room <= strlen(told)) return CL_INVALID_VALUE;
  if (to) strcpy(to, told);
  return CL_SUCCESS;
}
STAYS(clGetPlatformIDs, (cl_uint n, cl_platform_id* platforms, cl_uint* found), (n, platforms, found))
STAYS(clGetPlatformInfo, (cl_platform_id p, cl_platform_info what, size_t room, void* to, size_t* needed), (p, what, room, to, needed))
STAYS(clReleaseCommandQueue, (cl_command_queue q), (q))
STAYS(clReleaseContext, (cl_context c), (c))
STAYS(clReleaseEvent, (cl_event e), (e))
STAYS(clReleaseKernel, (cl_kernel k), (k))
STAYS(clReleaseMemObject, (cl_mem m), (m))
STAYS(clReleaseProgram, (cl_program p), (p))
STAYS(clRetainEvent, (cl_event e), (e))
