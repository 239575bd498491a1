#include "framework/tensor/lent.h"

#include <memory>
#include <utility>

namespace thalweg {

StatusOr<Tensor> LendTensor(uint32_t dtype, const int64_t* dims, int32_t rank, void* data, uint64_t bytes, bool read_only, Lent lent) {
  auto buffer = std::make_unique<Buffer>();
  auto kept = std::make_unique<Lent>(std::move(lent));
  buffer->data = data;
  buffer->bytes = bytes;
  buffer->read_only = read_only;
  buffer->user = kept.release();
  buffer->release = [](Buffer* b) {
    delete static_cast<Lent*>(b->user);
    delete b;
  };
  return Tensor::Wrap(buffer.release(), 0, dtype, dims, rank);
}

}  // namespace thalweg
