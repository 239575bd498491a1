// What cuDNN computes, which is opened with the first of it; without it the plugin's own kernels serve. Threads: any.
#ifndef THALWEG_PLUGINS_CUDA_DNN_H_
#define THALWEG_PLUGINS_CUDA_DNN_H_

#include <cuda.h>

#include <array>
#include <compare>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "vendors.h"
#include "ways.h"

namespace thalweg::cuda {

// A tensor of four axes, as the library counts them: images are [n, channels, height, width], filters [out, in, height, width], whatever
// their order in memory, which the steps tell.
struct DnnTensor {
  enum Kind : uint32_t { kStored, kInside, kNumber };  // kInside: from one operation to the next, never in memory; kNumber: one float
  using Axes = std::array<int64_t, 4>;
  Kind kind;
  uint32_t type;
  int64_t aligned;  // bytes
  Axes dims, steps;
  auto operator<=>(const DnnTensor&) const = default;
};

struct DnnOperation {
  enum What : uint32_t {  // with the tensors that each has, in order
    kConvolution,         // images, filter, results: makes the last
    kConvolutionImages,   // likewise: makes the images' gradient of that of the results,
    kConvolutionFilter,   // and that of the filter
    kAdd,                 // of two, which may have axes of size 1, makes the third; so do the next three
    kSubtract,
    kMultiply,
    kDivide,
    kExponential,  // of one makes the second; so do the next three
    kRelu,
    kLargest,  // over the axes that have size 1 in the second
    kSum,
    kProduct,      // of matrices, the last two axes: of two makes the third
    kPoolLargest,  // images, results; so do the next two
    kPoolMean,
    kPoolMeanImages,      // makes the images' gradient of that of the results
    kNormalise,           // by batch: images, scale, offset, epsilon; makes mean, 1 / sqrt(variance + epsilon), results
    kNormaliseGradients,  // images, mean, 1 / sqrt(variance + epsilon), gradient of the results, scale; makes those of scale, offset,
                          // images
    kLogarithm,           // of one makes the second
    kRowIndex,            // of one makes the second, whole numbers: where along the last axis but one an element is; so does the next
    kColumnIndex,         // along the last
    kNotLess,             // of two makes the third, truth values
    kSelect,              // of two makes the fourth: the first where the third is true
    kTurn,                // of one makes the second, which would lie in the same memory by other steps
  };
  struct Window {
    std::array<int64_t, 2> size, stride, dilation, before, after;  // height, width
    auto operator<=>(const Window&) const = default;
  };
  What what;
  std::array<uint32_t, 8> tensors;  // counted from 1; 0: there is none
  Window window;                    // of convolutions (without size) and pools
  auto operator<=>(const DnnOperation&) const = default;
};

// What the library is to compute at once.
struct DnnGraph {
  std::vector<DnnTensor> tensors;
  std::vector<DnnOperation> operations;
  auto operator<=>(const DnnGraph&) const = default;

  // Each answers the tensor's number.
  uint32_t Stored(uint32_t type, int64_t aligned, const DnnTensor::Axes& dims, const DnnTensor::Axes& steps);
  uint32_t Inside(uint32_t type, const DnnTensor::Axes& dims, const DnnTensor::Axes& steps);  // steps: an order, as memory would have it
  uint32_t Number();
  void Compute(DnnOperation::What what, const std::array<uint32_t, 8>& of, const DnnOperation::Window& window = {});
};

// Steps of dense memory whose channels, the second axis, come last or where they are counted.
DnnTensor::Axes ChannelsLast(const DnnTensor::Axes& dims);
DnnTensor::Axes Dense(const DnnTensor::Axes& dims);

// A layer of LSTM cells over sequences of one length, from [steps, batch, inputs] to [steps, batch, units].
struct DnnLstm {
  uint32_t type;
  int64_t steps, batch, inputs, units;
  auto operator<=>(const DnnLstm&) const = default;
};
// How its parameters lie in one piece of memory, in bytes: for the gates i, f, the new content and o matrices [units, inputs], then
// [units, units] for the state, and biases [units]; and what the library needs for itself.
struct DnnLstmMemory {
  uint64_t parameters, workspace;
  std::array<uint64_t, 8> matrices;
  std::array<uint64_t, 4> biases;
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
  std::shared_ptr<const Way> Find(const tw_host* host, const DnnGraph& graph);
  static uint64_t Workspace(const Way& way);
  // memory: an address for each tensor that is stored, and one of the host's for each number, in their order.
  void Enqueue(const Way& way, CUstream queue, const std::vector<CUdeviceptr>& memory, CUdeviceptr workspace);

  // The same of such a layer, forward and without what a gradient reads; h and c: its state before the first step.
  struct Lstm;
  std::shared_ptr<const Lstm> Find(const tw_host* host, const DnnLstm& of);
  static const DnnLstmMemory& Memory(const Lstm& way);
  void Enqueue(const Lstm& way, CUstream queue, CUdeviceptr x, CUdeviceptr h, CUdeviceptr c, CUdeviceptr parameters, CUdeviceptr y,
               CUdeviceptr workspace);

  // Softmax along the last axis, or its logarithm, by a call that is no graph: there is no engine for it. False: not done.
  bool Softmax(const tw_host* host, CUstream queue, uint32_t type, int64_t rows, int64_t n, bool logarithm, CUdeviceptr x, CUdeviceptr y);

 private:
  bool Start(const tw_host* host);  // REQUIRES: mutex_
  std::unique_ptr<Way> Make(const tw_host* host, const DnnGraph& graph);
  std::unique_ptr<Lstm> Make(const DnnLstm& of);

  const std::shared_ptr<DnnLibrary> library_;
  const Vendors& vendors_;
  const std::string architecture_;
  std::mutex mutex_;
  bool tried_ = false;
  void* handle_ = nullptr;
  Ways<DnnGraph, Way> ways_{vendors_.plans};
  Ways<DnnLstm, Lstm> lstms_{vendors_.plans};
};

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_DNN_H_
