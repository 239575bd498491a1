// One call of a cuDNN graph: the graph and the addresses of its tensors.
#ifndef THALWEG_PLUGINS_CUDA_KERNELS_DNN_CALL_H_
#define THALWEG_PLUGINS_CUDA_KERNELS_DNN_CALL_H_

#include "dnn.h"
#include "kernels/kernel.h"

namespace thalweg::opencl {

class DnnCall {
 public:
  using Axes = cuda::DnnTensor::Axes;
  using Operation = cuda::DnnOperation;

  // Each returns the number of the new tensor, for Compute. aligned: in bytes; 0: the alignment of
  // `at`.
  uint32_t Stored(uint32_t type, const Axes& dims, const Axes& steps, const Place& at, uint32_t aligned = 0);
  uint32_t Inside(uint32_t type, const Axes& dims, const Axes& steps) { return graph_.Inside(type, dims, steps); }
  uint32_t Number(float value);
  void Compute(Operation::What what, const std::array<uint32_t, 8>& of, const Operation::Window& window = {}) {
    graph_.Compute(what, of, window);
  }
  // Returns NULL if the library cannot compute the graph.
  using Way = std::shared_ptr<const cuda::Dnn::Way>;
  Way Find(Device& device, const tw_host* host) const;
  void Run(Device& device, const tw_frame* f, const char* what, const Way& way) const;
  // Finds and runs the plan. Returns false if it did nothing.
  bool Run(Device& device, const tw_frame* f, const char* what) const;

 private:
  struct Memory {
    Place at;
    uint32_t element;  // bytes; 0 for a number
    float value;
  };
  cuda::DnnGraph graph_;
  std::vector<Memory> memory_;
};

struct Window;
// Returns the window over images; for a convolution, that of its filter.
DnnCall::Operation::Window DnnWindow(const Window& w);

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_DNN_CALL_H_
