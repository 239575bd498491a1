// Memory that a call takes beside its outputs and that is charged to its session. If the inputs
// determine the amount, kernels use TempArray, tw::TempVector, tw::TempString or tw::Charge. The
// standard containers are only for memory that is small for all inputs.
// Threads: one at a time.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_TEMP_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_TEMP_H_

#include <cstddef>
#include <new>
#include <optional>
#include <utility>

#include "thalweg/cpp/memory.hpp"

namespace thalweg::cpu {

// Holds n elements of a trivial type, not initialised, 64-byte aligned. Throws RESOURCE_EXHAUSTED
// if the session's limit does not allow them.
template <class T>
class TempArray {
 public:
  TempArray() = default;
  TempArray(tw::Payer payer, size_t n) : payer_(payer), bytes_(n * sizeof(T)) {
    payer.take(bytes_);
    try {
      data_ = static_cast<T*>(::operator new(bytes_, std::align_val_t{64}));
    } catch (...) {
      payer.give(bytes_);
      throw;
    }
  }
  TempArray(TempArray&& o) noexcept : payer_(o.payer_), bytes_(o.bytes_), data_(std::exchange(o.data_, nullptr)) {}
  TempArray& operator=(TempArray&& o) noexcept {
    std::swap(payer_, o.payer_);
    std::swap(bytes_, o.bytes_);
    std::swap(data_, o.data_);
    return *this;
  }
  ~TempArray() {
    if (!data_) return;
    ::operator delete(data_, std::align_val_t{64});
    payer_->give(bytes_);
  }
  T* get() const { return data_; }
  T* data() const { return data_; }
  T& operator[](size_t i) const { return data_[i]; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  std::optional<tw::Payer> payer_;
  uint64_t bytes_ = 0;
  T* data_ = nullptr;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_TEMP_H_
