// Conversion of tensors and shapes to and from their messages. A TensorProto has its elements
// either in `tensor_content` or in the field of its type; a typed field that is too short is filled
// up with its last value (a "splat"), an empty one with zeros.
// Threads: values, no sharing.
#pragma once
#include <cstdint>
#include <functional>

#include "framework/base/status.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

namespace proto {
class TensorProto;
class TensorShapeProto;
}  // namespace proto

// Bytes to which the messages of one import may expand beyond the values they contain: a splat of
// 30 bytes can ask for any amount.
struct SplatBudget {
  uint64_t left = 64u << 20;
  std::function<Status(uint64_t bytes)> may;  // asks the payer before memory is allocated; empty if nobody pays
};

// INVALID_ARGUMENT for a size below -1, too many axes, or sizes together with unknown_rank.
StatusOr<Shape> ShapeFromProto(const proto::TensorShapeProto& p);
void ShapeToProto(const Shape& shape, proto::TensorShapeProto* p);

// Returns the tensor in host memory. Errors: INVALID_ARGUMENT for an unknown type, a shape that is
// incomplete or overflows, and contents that do not fit shape or type; RESOURCE_EXHAUSTED beyond
// the budget (NULL: a fresh one), before anything is allocated; UNIMPLEMENTED for resources and
// variants, which no message can represent.
StatusOr<Tensor> TensorFromProto(const proto::TensorProto& p, SplatBudget* budget = nullptr);
// Converts a tensor in host memory: strings to string_val, all else to tensor_content. Errors:
// UNIMPLEMENTED as above; RESOURCE_EXHAUSTED if the message would exceed protobuf's 2 GiB.
Status TensorToProto(const Tensor& tensor, proto::TensorProto* p);

// Checks bytes from outside for elements that no kernel expects: a bool of 7, a 4-bit integer of
// 100. INVALID_ARGUMENT with the first such element.
Status CheckElements(const Tensor& tensor);

}  // namespace thalweg
