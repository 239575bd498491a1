#include "dnn.h"

namespace thalweg::cuda {

uint32_t DnnGraph::Stored(uint32_t type, int64_t aligned, const DnnTensor::Axes& dims, const DnnTensor::Axes& steps) {
  tensors.push_back({DnnTensor::kStored, type, aligned, dims, steps});
  return uint32_t(tensors.size());
}
uint32_t DnnGraph::Inside(uint32_t type, const DnnTensor::Axes& dims, const DnnTensor::Axes& steps) {
  constexpr int64_t kAnyAlignment = 16;
  tensors.push_back({DnnTensor::kInside, type, kAnyAlignment, dims, steps});
  return uint32_t(tensors.size());
}
uint32_t DnnGraph::Number() {
  constexpr int64_t kFloatBytes = 4;
  tensors.push_back({DnnTensor::kNumber, TW_FLOAT, kFloatBytes, {1, 1, 1, 1}, {1, 1, 1, 1}});
  return uint32_t(tensors.size());
}
void DnnGraph::Compute(DnnOperation::What what, const std::array<uint32_t, 8>& of, const DnnOperation::Window& window) {
  operations.push_back({what, of, window});
}

DnnTensor::Axes ChannelsLast(const DnnTensor::Axes& d) { return {d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]}; }
DnnTensor::Axes Dense(const DnnTensor::Axes& d) { return {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}; }

}  // namespace thalweg::cuda
