/* Functions that the plugin looks up in the OpenCL library of opencl_stub.c but never calls. No
 * header: only names matter. */
#define RELEASE(name)     \
  int name(void* object); \
  int name(void* object) { return (void)object, 0; }
#define REFUSE(name) \
  int name(void);    \
  int name(void) { return -59; /* CL_INVALID_OPERATION */ }

RELEASE(clReleaseCommandQueue)
RELEASE(clReleaseContext)
RELEASE(clReleaseEvent)
RELEASE(clReleaseKernel)
RELEASE(clReleaseMemObject)
RELEASE(clReleaseProgram)
REFUSE(clCreateBuffer)
REFUSE(clCreateCommandQueue)
REFUSE(clCreateKernel)
REFUSE(clCreateProgramWithBinary)
REFUSE(clCreateUserEvent)
REFUSE(clEnqueueBarrierWithWaitList)
REFUSE(clEnqueueCopyBuffer)
REFUSE(clEnqueueMarkerWithWaitList)
REFUSE(clEnqueueNDRangeKernel)
REFUSE(clEnqueueReadBuffer)
REFUSE(clEnqueueWriteBuffer)
REFUSE(clFinish)
REFUSE(clFlush)
REFUSE(clGetCommandQueueInfo)
REFUSE(clGetEventInfo)
REFUSE(clGetEventProfilingInfo)
REFUSE(clGetKernelWorkGroupInfo)
REFUSE(clGetMemObjectInfo)
REFUSE(clGetProgramInfo)
REFUSE(clRetainEvent)
REFUSE(clSetKernelArg)
REFUSE(clSetMemObjectDestructorCallback)
REFUSE(clSetUserEventStatus)
REFUSE(clWaitForEvents)
