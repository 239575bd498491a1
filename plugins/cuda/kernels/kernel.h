// A function of a built-in module, ready to be called, under the names that the kernels of plugins/opencl use: their files are compiled for
// this plugin too, with this header in place of their own.
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

// An address and, in elements, where the tensor begins from there: two arguments of a function.
struct Place {
  CUdeviceptr memory;
  cl_long first;
  const Temporary* of = nullptr;  // whose memory it is, which has no address before the first call
  Place After(cl_long elements) const { return {memory, first + elements, of}; }
};

// Bytes of an element that is one number; 0 for types that no kernel here works on.
uint32_t ElementBytes(uint32_t dtype);
Place At(const tw_view* v);
inline Dims DimsOf(const tw_view* v) { return {v->dims, v->dims + (v->rank > 0 ? v->rank : 0)}; }
// The int64 there, once everything that was enqueued for the call is over; for kernels that may block.
int64_t NumberAt(const tw_frame* f, Device& device, const Place& from);
[[noreturn]] void Invalid(const std::string& text);

struct Range {
  size_t x, y = 1, z = 1;
};

// The arguments of one call, as the driver wants them. Throws where they are too many.
class Arguments {
 public:
  void Add(const void* value, size_t bytes);
  void** pointers() { return pointers_.data(); }
  // What the device may read until the call is over.
  void Need(std::shared_ptr<const void> memory) { needed_.push_back(std::move(memory)); }
  void Hold(cuda::Stream* stream) {
    for (auto& memory : needed_) stream->Hold(std::move(memory));
  }

 private:
  static constexpr size_t kMost = 4096;  // bytes that every driver takes
  alignas(16) char room_[kMost];
  size_t used_ = 0;
  std::vector<void*> pointers_;
  std::vector<std::shared_ptr<const void>> needed_;
};

// Threads: Run from several at once.
class Kernel {
 public:
  // text: see program_text.h; name: a function of it, a literal.
  Kernel(const tw_host* host, Device& device, const std::string& text, const char* name);
  Kernel(const tw::Node& n, const std::string& text, const char* name)
      : Kernel(n.host(), *static_cast<Device*>(n.node->device), text, name) {}

  Device& device() const { return device_; }

  // Threads for `tasks` pieces of work, which the function shares out by FOR_EACH or FOR_RUNS.
  template <class... Args>
  void RunTasks(const tw_frame* f, cl_long tasks, cl_long, const Args&... args) const {
    constexpr cl_long kBlock = 256, kMost = 1 << 20;
    if (tasks <= 0) return;
    Run(f, {size_t(tasks < kMost ? tasks : kMost)}, {size_t(tasks < kBlock ? (tasks + 31) / 32 * 32 : kBlock)}, args...);
  }

  // At least `items` threads in blocks of `group`. Arguments: places, numbers, structures, and vectors of any of them.
  template <class... Args>
  void Run(const tw_frame* f, Range items, Range group, const Args&... args) const {
    Arguments list;
    try {
      cuda::Submit(device_, f->stream, name_, [&](CUstream queue) {
        (Set(queue, &list, args), ...);
        Launch(queue, items, group, list.pointers());
      });
    } catch (...) {  // copies that Set began may still read what they are of
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
  // Several arguments: v.Each(set) hands them on.
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

// The commands of a call while it lives need not wait for each other; a stream here keeps their order all the same.
struct Together {
  explicit Together(const tw_frame*) {}
  ~Together() {}
};

// A kernel that few calls need: found when the first one does.
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

// Memory for the length of a call: taken and given back in the order of the stream that first uses it.
class Temporary {
 public:
  Temporary(Device& device, uint64_t bytes) : device_(device), bytes_(bytes) {}
  // Filled from host memory, which may go away at once.
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
  // Where it is for work on `queue`; all of one call is on one.
  CUdeviceptr On(CUstream queue) const;
  // What it is filled from, which stays until that work is over: not every device has the driver take it along at once. NULL: nothing.
  const std::shared_ptr<std::vector<char>>& content() const { return content_; }

 private:
  CUdeviceptr Keep(std::vector<CUdeviceptr>* tape) const;

  Device& device_;
  const uint64_t bytes_;
  std::shared_ptr<std::vector<char>> content_;
  mutable CUdeviceptr memory_ = 0;
  mutable CUstream queue_ = nullptr;  // where it is given back; NULL: a recording has it, or it was never used
};

struct AttentionCall;
class Copy;
enum class ConvolutionPart;
enum class PoolPart;
struct Layout;
struct Matrix;
struct MatrixSizes;
struct Window;

// Products of matrices (matmul.h) by a library: y = a b, or y + a b, along at most one axis of batch. False: nothing was done, and the
// plugin's own kernel serves.
bool ByLibrary(Device& device, const tw_frame* f, uint32_t type, const MatrixSizes& s, const Matrix& a, const Matrix& b, const Place& y,
               cl_long y_row_step, bool more, const Layout& batch);
// Convolutions of one group (conv.cc), likewise: what `part` says is made of the other two. filter: [height, width, in, out].
bool ConvolvesByLibrary(Device& device, const tw_frame* f, ConvolutionPart part, uint32_t type, const Window& w, cl_long out_channels,
                        const Copy& copy, const Place& images, const Place& filter, const Place& results);
// Pooling (pool.cc), likewise: of images the results, or of the results' gradient that of the images.
bool PoolsByLibrary(Device& device, const tw_frame* f, PoolPart part, uint32_t type, const Window& w, const Place& images,
                    const Place& results);
// Batch normalisation while training (batch_norm.cc), likewise: x of [n, channels, rest], with channels last unless they are first.
// inverse: 1 / sqrt(variance + epsilon).
bool NormalisesByLibrary(Device& device, const tw_frame* f, uint32_t type, const Dims& dims, bool first, float epsilon, const Place& x,
                         const Place& scale, const Place& offset, const Place& mean, const Place& inverse, const Place& y);
bool NormGradientsByLibrary(Device& device, const tw_frame* f, uint32_t type, const Dims& dims, bool first, const Place& x,
                            const Place& mean, const Place& inverse, const Place& dy, const Place& scale, const Place& d_scale,
                            const Place& d_offset, const Place& dx);
// Softmax of rows (softmax.cc), or its logarithm, likewise.
bool SoftmaxByLibrary(Device& device, const tw_frame* f, uint32_t type, cl_long rows, cl_long n, bool logarithm, const Place& x,
                      const Place& y);
// Attention without a bias (attention.cc), likewise, and its gradients.
bool AttendsByLibrary(Device& device, const tw_frame* f, const AttentionCall& call);
bool AttentionGradientsByLibrary(Device& device, const tw_frame* f, const AttentionCall& call);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_KERNEL_H_
