// Work for cuDNN, which is opened at first use. Without it the plugin uses its own kernels.
// Threads: any.
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

// A tensor of four axes in the library's order: images are [n, channels, height, width], filters
// [out, in, height, width]. The steps give the order in memory.
struct DnnTensor {
  enum Kind : uint32_t { kStored, kInside, kNumber };  // kInside: passed between operations, never in memory; kNumber: one float
  using Axes = std::array<int64_t, 4>;
  Kind kind;
  uint32_t type;
  int64_t aligned;  // alignment in bytes
  Axes dims, steps;
  auto operator<=>(const DnnTensor&) const = default;
};

struct DnnOperation {
  enum What : uint32_t {  // each with its tensors, in order
    kConvolution,         // images, filter, results; computes the results
    kConvolutionImages,   // the same tensors; computes the images' gradient from that of the results,
    kConvolutionFilter,   // or the filter's gradient
    kAdd,                 // two inputs, which may have axes of size 1, and the result; the next three likewise
    kSubtract,
    kMultiply,
    kDivide,
    kExponential,  // an input and the result; the next three likewise
    kRelu,
    kLargest,  // reduces the axes that have size 1 in the result
    kSum,
    kProduct,      // two matrices in the last two axes, and the result
    kPoolLargest,  // images and results; the next two likewise
    kPoolMean,
    kPoolMeanImages,      // computes the images' gradient from that of the results
    kNormalise,           // batch normalisation of images with scale, offset, epsilon; computes mean, 1 / sqrt(variance + epsilon), results
    kNormaliseGradients,  // images, mean, 1 / sqrt(variance + epsilon), gradient of the results, scale;
                          // computes the gradients of scale, offset, images
    kLogarithm,           // an input and the result
    kRowIndex,            // an input and the result, integers: each element's index along the last axis but one
    kColumnIndex,         // the same along the last axis
    kNotLess,             // two inputs and the result, booleans
    kSelect,              // two inputs, condition, result: the first input where the condition is true
    kTurn,                // an input and the result: a view of the same memory with other steps
  };
  struct Window {
    std::array<int64_t, 2> size, stride, dilation, before, after;  // height, width
    auto operator<=>(const Window&) const = default;
  };
  What what;
  std::array<uint32_t, 8> tensors;  // numbers of tensors, from 1; 0: none
  Window window;                    // of convolutions (without `size`) and pools
  auto operator<=>(const DnnOperation&) const = default;
};

// A graph of operations that the library computes at once.
struct DnnGraph {
  std::vector<DnnTensor> tensors;
  std::vector<DnnOperation> operations;
  auto operator<=>(const DnnGraph&) const = default;

  // Each returns the number of the new tensor.
  uint32_t Stored(uint32_t type, int64_t aligned, const DnnTensor::Axes& dims, const DnnTensor::Axes& steps);
  uint32_t Inside(uint32_t type, const DnnTensor::Axes& dims, const DnnTensor::Axes& steps);  // steps: an order of axes, as if in memory
  uint32_t Number();
  void Compute(DnnOperation::What what, const std::array<uint32_t, 8>& of, const DnnOperation::Window& window = {});
};

// Steps of dense memory with the channels (the second axis) last, or with all axes in order.
DnnTensor::Axes ChannelsLast(const DnnTensor::Axes& dims);
DnnTensor::Axes Dense(const DnnTensor::Axes& dims);

// A layer of LSTM cells over sequences of equal length, from [steps, batch, inputs] to [steps,
// batch, units].
struct DnnLstm {
  uint32_t type;
  int64_t steps, batch, inputs, units;
  auto operator<=>(const DnnLstm&) const = default;
};
// The layout of the layer's parameters in one block of memory, in bytes: for the gates i, f, the
// new content and o, matrices [units, inputs], then matrices [units, units] for the state, and
// biases [units]. Also the size of the workspace.
struct DnnLstmMemory {
  uint64_t parameters, workspace;
  std::array<uint64_t, 8> matrices;
  std::array<uint64_t, 4> biases;
};

struct DnnLibrary;  // one per runtime
std::shared_ptr<DnnLibrary> MakeDnnLibrary();

// One per device.
class Dnn {
 public:
  Dnn(std::shared_ptr<DnnLibrary> library, const Vendors& vendors, std::string architecture);
  ~Dnn();  // REQUIRES: the device's context is current
  Dnn(const Dnn&) = delete;
  Dnn& operator=(const Dnn&) = delete;

  // Returns the library's plan for a graph, cached in memory and on disk, or makes one. NULL: the
  // library cannot compute it. REQUIRES: the device's context is current.
  struct Way;
  std::shared_ptr<const Way> Find(const tw_host* host, const DnnGraph& graph);
  static uint64_t Workspace(const Way& way);
  // memory: an address for each stored tensor and a host address for each number, in their order.
  void Enqueue(const Way& way, CUstream queue, const std::vector<CUdeviceptr>& memory, CUdeviceptr workspace);

  // Does the same for an LSTM layer, forward only and without the outputs that a gradient needs. h,
  // c: the initial state.
  struct Lstm;
  std::shared_ptr<const Lstm> Find(const tw_host* host, const DnnLstm& of);
  static const DnnLstmMemory& Memory(const Lstm& way);
  void Enqueue(const Lstm& way, CUstream queue, CUdeviceptr x, CUdeviceptr h, CUdeviceptr c, CUdeviceptr parameters, CUdeviceptr y,
               CUdeviceptr workspace);

  // Softmax along the last axis, or its logarithm. It uses a direct call, because the graph API has
  // no engine for it. Returns false if it did nothing.
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
