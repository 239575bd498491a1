// Convolutions by cuDNN, which is opened with the first of them; without it the plugin's own kernels serve. Threads: any.
#ifndef THALWEG_PLUGINS_CUDA_DNN_H_
#define THALWEG_PLUGINS_CUDA_DNN_H_

#include <cuda.h>

#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "vendors.h"

namespace thalweg::cuda {

// Images have their channels last; filters are [out, height, width, in].
struct Convolution {
  enum What : uint32_t { kForward, kOfImages, kOfFilter };  // results, or a gradient
  What what;
  uint32_t type;
  int64_t n, height, width, channels, out_channels, filter_height, filter_width, out_height, out_width;
  int64_t stride_height, stride_width, dilation_height, dilation_width, before_height, before_width, after_height, after_width;
  int64_t aligned;  // bytes, of all three
  auto operator<=>(const Convolution&) const = default;
};

struct DnnLibrary;  // of a runtime
std::shared_ptr<DnnLibrary> MakeDnnLibrary();

// One per device.
class Dnn {
 public:
  Dnn(std::shared_ptr<DnnLibrary> library, const Vendors& vendors, std::string architecture);
  ~Dnn();  // REQUIRES: the device's context
  Dnn(const Dnn&) = delete;
  Dnn& operator=(const Dnn&) = delete;

  // How the library computes it; kept, on disk too. NULL: not at all. REQUIRES: the device's context.
  struct Way;
  const Way* Find(const tw_host* host, const Convolution& c);
  static uint64_t Workspace(const Way& way);
  void Enqueue(const Way& way, CUstream queue, CUdeviceptr images, CUdeviceptr filter, CUdeviceptr results, CUdeviceptr workspace);

 private:
  bool Start(const tw_host* host);
  std::unique_ptr<Way> Make(const tw_host* host, const Convolution& c);

  const std::shared_ptr<DnnLibrary> library_;
  const Vendors& vendors_;
  const std::string architecture_;
  std::mutex mutex_;
  bool tried_ = false;
  void* handle_ = nullptr;
  std::map<Convolution, std::unique_ptr<Way>> ways_;  // NULL: the library has none
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_DNN_H_
