// Constants of a model: an element type, dims and dense elements in the machine's order, shared and never changed. The elements may lie
// in the mapped file. Threads: values.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "thalweg/types.h"

namespace thalweg::importer {

// A failure; `code` as in thalweg/types.h.
struct Error {
  uint32_t code;
  std::string text;
};

using Dims = std::vector<int64_t>;

class Tensor {
 public:
  Tensor() = default;
  // Zeros, or empty strings. Throws Error for sizes beyond what memory can hold.
  Tensor(uint32_t dtype, Dims dims);
  // Elements that `keep` holds alive.
  Tensor(uint32_t dtype, Dims dims, const void* data, std::shared_ptr<const void> keep);
  // A vector or scalar of converted values.
  static Tensor Vector(uint32_t dtype, const std::vector<int64_t>& values);
  static Tensor Vector(uint32_t dtype, const std::vector<double>& values);
  static Tensor Scalar(uint32_t dtype, double value);
  static Tensor String(Dims dims, std::vector<std::string> values);

  uint32_t dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t count() const { return count_; }
  uint64_t bytes() const;  // of dense elements; 0 for strings
  const void* data() const { return data_; }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }
  void* mutable_data() { return const_cast<void*>(data_); }  // only of a tensor that its maker still fills
  const std::vector<std::string>& strings() const { return *strings_; }
  // Element i as an integer or a real number, whatever the type; throws Error for strings and complex numbers.
  int64_t integer(int64_t i) const;
  double real(int64_t i) const;
  std::vector<int64_t> integers() const;
  std::vector<double> reals() const;
  // The same elements under other dims.
  Tensor Reshaped(Dims dims) const;
  const void* identity() const { return data_; }

 private:
  uint32_t dtype_ = 0;
  Dims dims_;
  int64_t count_ = 0;
  const void* data_ = nullptr;
  std::shared_ptr<const void> keep_;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

// Bytes of one element in memory; 0 for strings and unknown types.
uint32_t ElementBytes(uint32_t dtype);
const char* DtypeName(uint32_t dtype);
bool IsInteger(uint32_t dtype);   // signed or unsigned, not bool
bool IsFloating(uint32_t dtype);  // real, half and bfloat16 included
// The product of dims, all >= 0. Throws Error (RESOURCE_EXHAUSTED) on overflow.
int64_t CountOf(const Dims& dims);
std::string Text(const Dims& dims);

}  // namespace thalweg::importer
