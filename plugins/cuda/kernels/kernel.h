// A function of a built-in module, ready to be called. The names are those of plugins/opencl, whose
// kernel files are also compiled for this plugin, with this header in place of their own.
#ifndef THALWEG_PLUGINS_CUDA_KERNELS_KERNEL_H_
#define THALWEG_PLUGINS_CUDA_KERNELS_KERNEL_H_

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "program_text.h"
#include "stream.h"

namespace thalweg::opencl {

using cuda::Device;
using cuda::Tile;
using cl_long = int64_t;
using Dims = std::vector<int64_t>;
class Temporary;

// An address and the tensor's offset from it, in elements; passed to a function as two arguments.
struct Place {
  CUdeviceptr memory;
  cl_long first;
  const Temporary* of = nullptr;  // owner of the memory, which gets its address at the first call
  Place After(cl_long elements) const { return {memory, first + elements, of}; }
};

// The number of bytes of an element; 0 for types that no kernel here supports.
uint32_t ElementBytes(uint32_t dtype);
Place At(const tw_view* v);
inline Dims DimsOf(const tw_view* v) { return {v->dims, v->dims + (v->rank > 0 ? v->rank : 0)}; }
// Reads an int64 after all work enqueued for the call is complete. For kernels that may block.
int64_t NumberAt(const tw_frame* f, Device& device, const Place& from);
[[noreturn]] void Invalid(const std::string& text);

struct Range {
  size_t x, y = 1, z = 1;
};

// The arguments of one call in the driver's form. Throws if there are too many.
class Arguments {
 public:
  void Add(const void* value, size_t bytes);
  void** pointers() { return pointers_.data(); }
  // Keeps memory that the device may read until the call is complete.
  void Need(std::shared_ptr<const void> memory) { needed_.push_back(std::move(memory)); }
  void Hold(cuda::Stream* stream) {
    for (auto& memory : needed_) stream->Hold(std::move(memory));
  }

 private:
  static constexpr size_t kMost = 4096;  // every driver accepts this many bytes
  alignas(16) char room_[kMost];
  size_t used_ = 0;
  std::vector<void*> pointers_;
  std::vector<std::shared_ptr<const void>> needed_;
};

// Threads: Run may be called from several threads at once.
class Kernel {
 public:
  // text: see program_text.h. name: a function in it; a string literal.
  Kernel(const tw_host* host, Device& device, const std::string& text, const char* name);
  Kernel(const tw::Node& n, const std::string& text, const char* name)
      : Kernel(n.host(), *static_cast<Device*>(n.node->device), text, name) {}

  Device& device() const { return device_; }

  // Runs threads for `tasks` tasks, which the function distributes by FOR_EACH or FOR_RUNS.
  template <class... Args>
  void RunTasks(const tw_frame* f, cl_long tasks, cl_long, const Args&... args) const {
    constexpr cl_long kBlock = 256, kMost = 1 << 20;
    if (tasks <= 0) return;
    Run(f, {size_t(tasks < kMost ? tasks : kMost)}, {size_t(tasks < kBlock ? (tasks + 31) / 32 * 32 : kBlock)}, args...);
  }

  // Runs at least `items` threads in blocks of `group`. Arguments: places, numbers, structures, and
  // vectors of these.
  template <class... Args>
  void Run(const tw_frame* f, Range items, Range group, const Args&... args) const {
    Arguments list;
    try {
      cuda::Submit(device_, f->stream, name_, [&](CUstream queue) {
        (Set(queue, &list, args), ...);
        Launch(queue, items, group, list.pointers());
      });
    } catch (...) {  // copies that Set started may still read their source
      if (f->stream)
        list.Hold(static_cast<cuda::Stream*>(f->stream));
      else
        device_.driver().cuStreamSynchronize(device_.stream());
      throw;
    }
    if (f->stream) list.Hold(static_cast<cuda::Stream*>(f->stream));
  }

 private:
  void Launch(CUstream queue, Range items, Range group, void** arguments) const;

  template <class T>
  void Set(CUstream, Arguments* list, const T& value) const {
    list->Add(&value, sizeof value);
  }
  // A value that is several arguments: v.Each(set) passes each of them to set.
  template <class T>
    requires requires(const T& v) { v.Each([](const auto&) {}); }
  void Set(CUstream queue, Arguments* list, const T& v) const {
    v.Each([&](const auto& part) { Set(queue, list, part); });
  }
  void Set(CUstream queue, Arguments* list, const Place& place) const;
  template <class T>
  void Set(CUstream queue, Arguments* list, const std::vector<T>& values) const {
    for (const T& v : values) Set(queue, list, v);
  }

  Device& device_;
  const char* const name_;
  const CUfunction function_;
};

// While this object lives, the commands of a call need not wait for each other. A CUDA stream keeps
// their order anyway.
struct Together {
  explicit Together(const tw_frame*) {}
  ~Together() {}
};

// A rarely needed kernel: it is looked up at its first use.
class LateKernel {
 public:
  LateKernel(const tw::Node& n, std::string text, const char* name);
  const Kernel& operator*() const;
  const Kernel* operator->() const { return &**this; }

 private:
  const tw_host* host_;
  Device& device_;
  const std::string text_;
  const char* const name_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Kernel> kernel_;
};

// Memory for one call. It is allocated and freed in the order of the stream that first uses it.
class Temporary {
 public:
  Temporary(Device& device, uint64_t bytes) : device_(device), bytes_(bytes) {}
  // Filled from host memory, which the caller may release at once.
  template <class T>
  Temporary(Device& device, const std::vector<T>& from) : device_(device), bytes_(from.size() * sizeof(T)) {
    if (!bytes_) return;
    content_ = std::make_shared<std::vector<char>>(bytes_);
    std::memcpy(content_->data(), from.data(), bytes_);
  }
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  Place place() const { return {0, 0, this}; }
  // Returns its address for work on `queue`; all work of a call is on one queue.
  CUdeviceptr On(CUstream queue) const;
  // The host memory from which it is filled, or NULL. It must live until the copy is complete,
  // because not every device's driver copies it at the call.
  const std::shared_ptr<std::vector<char>>& content() const { return content_; }

 private:
  CUdeviceptr Keep(std::vector<CUdeviceptr>* tape) const;

  Device& device_;
  const uint64_t bytes_;
  std::shared_ptr<std::vector<char>> content_;
  mutable CUdeviceptr memory_ = 0;
  mutable CUstream queue_ = nullptr;  // the queue that frees it; NULL: a recording owns it, or it was never used
};

struct AttentionCall;
class Copy;
enum class ConvolutionPart;
enum class PoolPart;
struct Layout;
struct Matrix;
struct MatrixSizes;
struct Window;

// Matrix products (matmul.h) by a library: y = a b, or y += a b, along at most one axis of batch.
// Returns false if it did nothing; the plugin then uses its own kernel.
bool ByLibrary(Device& device, const tw_frame* f, uint32_t type, const MatrixSizes& s, const Matrix& a, const Matrix& b, const Place& y,
               cl_long y_row_step, bool more, const Layout& batch);
// Convolutions of one group (conv.cc), likewise. Computes `part` from the other two. filter:
// [height, width, in, out].
bool ConvolvesByLibrary(Device& device, const tw_frame* f, ConvolutionPart part, uint32_t type, const Window& w, cl_long out_channels,
                        const Copy& copy, const Place& images, const Place& filter, const Place& results);
// Pooling (pool.cc), likewise: computes the results from the images, or the images' gradient from
// that of the results.
bool PoolsByLibrary(Device& device, const tw_frame* f, PoolPart part, uint32_t type, const Window& w, const Place& images,
                    const Place& results);
// Batch normalisation while training (batch_norm.cc), likewise. dims: [n, channels, rest]. In
// memory the channels are last unless `first`. inverse: 1 / sqrt(variance + epsilon).
bool NormalisesByLibrary(Device& device, const tw_frame* f, uint32_t type, const Dims& dims, bool first, float epsilon, const Place& x,
                         const Place& scale, const Place& offset, const Place& mean, const Place& inverse, const Place& y);
bool NormGradientsByLibrary(Device& device, const tw_frame* f, uint32_t type, const Dims& dims, bool first, const Place& x,
                            const Place& mean, const Place& inverse, const Place& dy, const Place& scale, const Place& d_scale,
                            const Place& d_offset, const Place& dx);
// Softmax of rows (softmax.cc), or its logarithm, likewise.
bool SoftmaxByLibrary(Device& device, const tw_frame* f, uint32_t type, cl_long rows, cl_long n, bool logarithm, const Place& x,
                      const Place& y);
// Attention without a bias (attention.cc) and its gradients, likewise.
bool AttendsByLibrary(Device& device, const tw_frame* f, const AttentionCall& call);
bool AttentionGradientsByLibrary(Device& device, const tw_frame* f, const AttentionCall& call);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_KERNEL_H_
