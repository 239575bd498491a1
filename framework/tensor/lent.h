// Tensors over memory of somebody else. Threads: any.
#pragma once
#include <cstdint>

#include "framework/base/dtype.h"
#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

// The lender's callback for the end of its memory; runs once, when nobody uses the memory any more.
class Lent {
 public:
  Lent(void (*release)(void* user), void* user) : release_(release), user_(user) {}
  Lent(Lent&& o) noexcept : release_(o.release_), user_(o.user_) { o.release_ = nullptr; }
  Lent(const Lent&) = delete;
  ~Lent() {
    if (release_) release_(user_);
  }

 private:
  void (*release_)(void* user);
  void* user_;
};

// Required alignment of an element's address; for a complex number, that of its parts.
inline uint32_t AlignmentOf(uint32_t dtype) {
  const uint32_t size = DTypeBytes(dtype);
  return dtype == TW_COMPLEX64 || dtype == TW_COMPLEX128 ? size / 2 : size;
}

// Makes a host tensor of `bytes` bytes at `data`. read_only: nobody may write to the memory.
// REQUIRES: the bytes are those of dtype and dims, and data has their alignment (AlignmentOf).
StatusOr<Tensor> LendTensor(uint32_t dtype, const int64_t* dims, int32_t rank, void* data, uint64_t bytes, bool read_only, Lent lent);

}  // namespace thalweg
