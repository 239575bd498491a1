#include "kernels/kernel.h"

#include <algorithm>
#include <bit>

namespace thalweg::opencl {

Place At(const tw_view* v) {
  const uint32_t bytes = ElementBytes(v->dtype);
  return {static_cast<cl_mem>(v->data), bytes ? cl_long(v->offset / bytes) : 0};
}

int64_t NumberAt(const tw_frame* f, Device& device, const Place& from) {
  int64_t value = 0;
  Submit(device, f->stream, "reading a number", [&](cl_command_queue queue, cl_uint n, const cl_event* after, cl_event* event) {
    Check(device.cl().clEnqueueReadBuffer(queue, from.memory, CL_TRUE, size_t(from.first) * sizeof value, sizeof value, &value, n, after,
                                          event),
          "reading a number");
  });
  return value;
}

Kernel::Kernel(const tw_host* host, Device& device, const std::string& text, const char* name)
    : device_(device), name_(name), kernel_(device.MakeKernel(host, text, name)) {
  size_t most = 1;
  const cl_int error = device_.cl().clGetKernelWorkGroupInfo(kernel_, device_.id(), CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr);
  group_ = std::bit_floor(std::min<size_t>(most, 256));
  if (error == CL_SUCCESS) return;
  device_.cl().clReleaseKernel(kernel_);
  throw Failure(error, "clGetKernelWorkGroupInfo");
}

// A CPU gets items of about 10 us of work each. Other devices get one item per task, up to a number
// that fills them many times over.
size_t Kernel::Items(cl_long tasks, cl_long cost) const {
  if (!device_.blocked()) return size_t(std::min<cl_long>(tasks, 1 << 20));
  constexpr cl_long kWork = 16384, kEnough = 1024, kMost = 1 << 16;
  const cl_long per = std::max({cl_long(1), kWork / std::max<cl_long>(cost, 1), std::min(tasks / kEnough, kWork)});
  return size_t(std::min(kMost, (tasks + per - 1) / per));
}

void Kernel::Enqueue(const tw_frame* f, const size_t* global, const size_t* local) const {
  Submit(device_, f->stream, name_, [&](cl_command_queue queue, cl_uint n, const cl_event* after, cl_event* event) {
    const cl_int error = device_.cl().clEnqueueNDRangeKernel(queue, kernel_, 3, nullptr, global, local, n, after, event);
    if (error != CL_SUCCESS) throw Failure(error, std::string(name_) + " on '" + device_.uid() + "'");
  });
}

}  // namespace thalweg::opencl
