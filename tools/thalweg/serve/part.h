// A tensor, or some rows of one: the values of one request in a tensor that several requests share.
#pragma once
#include <cstdint>
#include <vector>

#include "thalweg/cpp/tensor.hpp"

namespace thalweg::cli::serve {

struct Part {
  tw::Tensor tensor;
  std::vector<int64_t> dims;
  uint64_t first = 0, count = 0;  // its elements

  static Part Whole(const tw::Tensor& tensor) { return {tensor, tensor.dims(), 0, tensor.count()}; }
  // The values. REQUIRES: no strings.
  const char* data() const { return static_cast<const char*>(tw_tensor_data(tensor.c())) + first * element_bytes(); }
  uint64_t element_bytes() const { return tw_dtype_bytes(tensor.dtype()); }
};

}  // namespace thalweg::cli::serve
