// Buffers shared with other libraries. They must be of the device's context, which
// clGetMemObjectInfo returns for any tensor that was exported from the device.
#include "dlpack.h"

#include "device.h"

namespace thalweg::opencl {
namespace {

constexpr uint32_t kDlOpenCl = 4;
constexpr const char* kSameContext = "; make it in the context that clGetMemObjectInfo tells of a tensor exported from this device";

template <class T>
T About(const Api& cl, cl_mem memory, cl_mem_info what) {
  T value{};
  if (const cl_int error = cl.clGetMemObjectInfo(memory, what, sizeof value, &value, nullptr); error != CL_SUCCESS)
    throw tw::Error{TW_INVALID_ARGUMENT, "its memory is no cl_mem: " + ErrorName(error)};
  return value;
}

void CheckMemory(Device& device, cl_mem memory, uint64_t offset, uint64_t bytes) {
  const Api& cl = device.cl();
  if (About<cl_mem_object_type>(cl, memory, CL_MEM_TYPE) != CL_MEM_OBJECT_BUFFER)
    throw tw::Error{TW_INVALID_ARGUMENT, "its memory is an OpenCL image, not a buffer"};
  if (About<cl_context>(cl, memory, CL_MEM_CONTEXT) != device.context())
    throw tw::Error{TW_INVALID_ARGUMENT, std::string("its buffer is of another OpenCL context") + kSameContext};
  if (About<cl_mem_flags>(cl, memory, CL_MEM_FLAGS) & CL_MEM_WRITE_ONLY)
    throw tw::Error{TW_INVALID_ARGUMENT, "its buffer was made CL_MEM_WRITE_ONLY, and kernels are to read it"};
  const size_t size = About<size_t>(cl, memory, CL_MEM_SIZE);
  if (offset > size || bytes > size - offset)
    throw tw::Error{TW_INVALID_ARGUMENT, "its buffer has " + std::to_string(size) + " bytes, fewer than byte_offset " +
                                             std::to_string(offset) + " and the " + std::to_string(bytes) + " bytes of its elements"};
}

void WaitFor(Device& device, cl_command_queue queue) {
  cl_context context = nullptr;
  if (device.cl().clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr) != CL_SUCCESS ||
      context != device.context())
    throw tw::Error{TW_INVALID_ARGUMENT, std::string("the queue to wait for is of another OpenCL context") + kSameContext};
  device.others().Add(queue);
}

int32_t Number(const tw_host*, void* self) { return static_cast<Device*>(self)->number(); }
tw_status* Take(const tw_host* host, void* self, void* memory, uint64_t offset, uint64_t bytes, void* queue) {
  return tw::guard(host, [&] {
    Device& device = *static_cast<Device*>(self);
    CheckMemory(device, static_cast<cl_mem>(memory), offset, bytes);
    if (queue) WaitFor(device, static_cast<cl_command_queue>(queue));
  });
}

}  // namespace

const tw_dlpack_set kDlpack = {TW_SIZED(tw_dlpack_set), kDlOpenCl, 1, Number, Take};

}  // namespace thalweg::opencl
