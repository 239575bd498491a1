// A tensor, or some rows of one: the values of one request in a tensor that several requests share.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "request_memory.h"
#include "thalweg/cpp/tensor.hpp"

namespace thalweg::cli::serve {

struct Part {
  tw::Tensor tensor;
  std::vector<int64_t> dims;
  uint64_t first = 0, count = 0;         // its elements
  std::shared_ptr<const Charge> charge;  // for the memory of the tensor; all parts of it share it

  static Part Whole(const tw::Tensor& tensor, std::shared_ptr<const Charge> charge) {
    return {tensor, tensor.dims(), 0, tensor.count(), std::move(charge)};
  }
  // The values. REQUIRES: no strings.
  const char* data() const { return static_cast<const char*>(tw_tensor_data(tensor.c())) + first * element_bytes(); }
  uint64_t element_bytes() const { return tw_dtype_bytes(tensor.dtype()); }
};

// Returns the bytes to charge for a tensor of `count` elements, without those of strings; UINT64_MAX for more than there can be.
inline uint64_t TensorBytes(uint32_t dtype, uint64_t count) {
  constexpr uint64_t kTensor = 256;  // the tensor itself, its dimensions and the heap's share
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, uint64_t(tw_dtype_bytes(dtype)), &bytes) || bytes > UINT64_MAX - kTensor) return UINT64_MAX;
  return bytes + kTensor;
}

}  // namespace thalweg::cli::serve
