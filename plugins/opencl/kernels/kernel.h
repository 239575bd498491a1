// A function of kernels/*.cl, ready to be called: what every kernel of this plugin has inside. Arguments are views (a buffer and, as a
// second argument of the function, the first element in it: memory is a handle and an offset here), numbers and vectors of numbers.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_KERNEL_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_KERNEL_H_

#include <mutex>

#include "stream.h"

namespace thalweg::opencl {

struct Range {
  size_t x, y;
};

// Threads: Run from several at once.
class Kernel {
 public:
  // name: a function of kernels/*.cl; a literal.
  Kernel(const tw::Node& node, const char* name)
      : device_(*static_cast<Device*>(node.node->device)), name_(name), kernel_(device_.MakeKernel(node.host(), name)) {
    const cl_int error = device_.cl().clGetKernelWorkGroupInfo(kernel_, device_.id(), CL_KERNEL_WORK_GROUP_SIZE, sizeof largest_group_,
                                                               &largest_group_, nullptr);
    if (error == CL_SUCCESS) return;
    device_.cl().clReleaseKernel(kernel_);
    throw Failure(error, "clGetKernelWorkGroupInfo");
  }
  ~Kernel() { device_.cl().clReleaseKernel(kernel_); }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  const Device& device() const { return device_; }
  size_t largest_group() const { return largest_group_; }

  // At least `items` work-items in groups of `group`, with these arguments.
  template <class... Args>
  void Run(const tw_frame* f, Range items, Range group, const Args&... args) const {
    const size_t global[2] = {(items.x + group.x - 1) / group.x * group.x, (items.y + group.y - 1) / group.y * group.y};
    const size_t local[2] = {group.x, group.y};
    std::lock_guard lock(mutex_);  // arguments belong to the kernel object, until it is enqueued
    cl_uint i = 0;
    (Set(&i, args), ...);
    Submit(device_, f->stream, name_, [&](cl_command_queue queue, cl_event* event) {
      Check(device_.cl().clEnqueueNDRangeKernel(queue, kernel_, 2, nullptr, global, local, 0, nullptr, event), name_);
    });
  }

 private:
  template <class T>
  void Set(cl_uint* i, const T& value) const {
    Check(device_.cl().clSetKernelArg(kernel_, (*i)++, sizeof value, &value), name_);
  }
  void Set(cl_uint* i, const tw_view* view) const {
    cl_mem memory = static_cast<cl_mem>(view->data);
    Set(i, memory);
    Set(i, cl_ulong(view->offset / sizeof(float)));
  }

  Device& device_;
  const char* const name_;
  const cl_kernel kernel_;
  size_t largest_group_ = 0;
  mutable std::mutex mutex_;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_KERNEL_H_
