// A function of a program, ready to be called. Every kernel of this plugin contains at least one.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_KERNEL_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_KERNEL_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "program_text.h"
#include "stream.h"

namespace thalweg::opencl {

using Dims = std::vector<int64_t>;

// A buffer and the tensor's offset in it, in elements; passed to a function as two arguments.
struct Place {
  cl_mem memory;
  cl_long first;
  Place After(cl_long elements) const { return {memory, first + elements}; }
};

// The number of bytes of an element; 0 for types that no kernel here supports.
uint32_t ElementBytes(uint32_t dtype);
Place At(const tw_view* v);
inline Dims DimsOf(const tw_view* v) { return {v->dims, v->dims + (v->rank > 0 ? v->rank : 0)}; }
// Reads an int64 after all commands enqueued for the call are complete. For kernels that may block.
int64_t NumberAt(const tw_frame* f, Device& device, const Place& from);
[[noreturn]] void Invalid(const std::string& text);

struct Range {
  size_t x, y = 1, z = 1;
};

// Threads: Run may be called from several threads at once.
class Kernel {
 public:
  // text: see program_text.h. name: a function in it; a string literal.
  Kernel(const tw_host* host, Device& device, const std::string& text, const char* name);
  Kernel(const tw::Node& n, const std::string& text, const char* name)
      : Kernel(n.host(), *static_cast<Device*>(n.node->device), text, name) {}
  ~Kernel() { device_.cl().clReleaseKernel(kernel_); }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  Device& device() const { return device_; }

  // Runs items for `tasks` tasks, which the function distributes by FOR_EACH or FOR_RUNS. cost: of
  // one task, in additions.
  template <class... Args>
  void RunTasks(const tw_frame* f, cl_long tasks, cl_long cost, const Args&... args) const {
    if (tasks <= 0) return;
    const size_t group = device_.blocked() ? 1 : group_;
    Run(f, {Items(tasks, cost)}, {group}, args...);
  }

  // Runs at least `items` items in groups of `group`. Arguments: places, numbers, structures, and
  // vectors of these.
  template <class... Args>
  void Run(const tw_frame* f, Range items, Range group, const Args&... args) const {
    const auto whole = [](size_t n, size_t by) { return (n + by - 1) / by * by; };
    const size_t global[3] = {whole(items.x, group.x), whole(items.y, group.y), whole(items.z, group.z)};
    const size_t local[3] = {group.x, group.y, group.z};
    std::lock_guard lock(mutex_);  // the kernel object holds the arguments until it is enqueued
    cl_uint i = 0;
    (Set(&i, args), ...);
    Enqueue(f, global, local);
  }

 private:
  size_t Items(cl_long tasks, cl_long cost) const;
  void Enqueue(const tw_frame* f, const size_t* global, const size_t* local) const;

  void SetBytes(cl_uint* i, const void* value, size_t bytes) const {
    Check(device_.cl().clSetKernelArg(kernel_, (*i)++, bytes, value), name_);
  }
  template <class T>
  void Set(cl_uint* i, const T& value) const {
    SetBytes(i, &value, sizeof value);
  }
  // A value that is several arguments: v.Each(set) passes each of them to set.
  template <class T>
    requires requires(const T& v) { v.Each([](const auto&) {}); }
  void Set(cl_uint* i, const T& v) const {
    v.Each([&](const auto& part) { Set(i, part); });
  }
  void Set(cl_uint* i, const Place& place) const {
    SetBytes(i, &place.memory, sizeof place.memory);
    SetBytes(i, &place.first, sizeof place.first);
  }
  template <class T>
  void Set(cl_uint* i, const std::vector<T>& values) const {
    for (const T& v : values) Set(i, v);
  }

  Device& device_;
  const char* const name_;
  const cl_kernel kernel_;
  size_t group_ = 1;
  mutable std::mutex mutex_;
};

// While this object lives, the commands of a call need not wait for each other.
class Together {
 public:
  explicit Together(const tw_frame* f) : stream_(static_cast<Stream*>(f->stream)) {
    if (stream_) stream_->BeginTogether();
  }
  ~Together() {
    if (stream_) stream_->EndTogether();
  }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

 private:
  Stream* const stream_;
};

// A rarely needed kernel: it is compiled at its first use.
class LateKernel {
 public:
  LateKernel(const tw::Node& n, std::string text, const char* name)
      : host_(n.host()), device_(*static_cast<Device*>(n.node->device)), text_(std::move(text)), name_(name) {}
  const Kernel& operator*() const {
    std::lock_guard lock(mutex_);
    if (!kernel_) kernel_ = std::make_unique<Kernel>(host_, device_, text_, name_);
    return *kernel_;
  }
  const Kernel* operator->() const { return &**this; }

 private:
  const tw_host* host_;
  Device& device_;
  const std::string text_;
  const char* const name_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Kernel> kernel_;
};

// Memory for one call. The driver frees it when the last command that uses it is complete.
class Temporary {
 public:
  Temporary(Device& device, uint64_t bytes) : device_(device), memory_(device.Allocate(bytes)) {}
  // Filled from host memory, which the caller may release at once.
  template <class T>
  Temporary(Device& device, const std::vector<T>& from) : device_(device), memory_(device.Copied(from.data(), from.size() * sizeof(T))) {}
  ~Temporary() { device_.cl().clReleaseMemObject(memory_); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  Place place() const { return {memory_, 0}; }

 private:
  Device& device_;
  const cl_mem memory_;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_KERNEL_H_
