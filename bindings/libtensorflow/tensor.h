// Tensors of clients: a TF_Tensor is memory of the client or of this library, or a tensor of Thalweg. Strings of the two have
// different layouts (TF_TString, tw_string), so they are copied when a tensor goes into a call or comes out of it.
// Threads: as TF_Tensor, which has one writer or many readers.
#pragma once
#include <memory>
#include <vector>

#include "core.h"
#include "framework/proto/tensor.pb.h"

namespace thalweg::tf {

// Memory that several TF_Tensors may share; ends by its function.
struct Memory {
  void* data = nullptr;
  size_t bytes = 0;
  void (*release)(void* data, size_t bytes, void* arg) = nullptr;
  void* arg = nullptr;
  size_t strings = 0;  // elements that are TF_TString of this library
  TensorRef tensor;    // whose memory this is, if it is a tensor's
  Memory() = default;
  Memory(const Memory&) = delete;
  ~Memory();
};

}  // namespace thalweg::tf

struct TF_Tensor {
  TF_DataType type = TF_FLOAT;
  std::vector<int64_t> dims;
  std::shared_ptr<thalweg::tf::Memory> memory;
};

namespace thalweg::tf {

// Returns the tensor for a call of Thalweg; it keeps the memory until its last holder is gone.
TensorRef ToThalweg(const TF_Tensor& tensor);
// Takes a tensor that a call returned; copies it into host memory if it is elsewhere.
TF_Tensor* FromThalweg(TensorRef tensor);
int64_t Count(const std::vector<int64_t>& dims);
// The tensor of a TensorProto.
TensorRef Decode(const proto::TensorProto& message);
// The TensorProto of a tensor.
proto::TensorProto Encode(tw_tensor* tensor);

}  // namespace thalweg::tf
