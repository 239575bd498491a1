// Tensors and shapes to and from their messages. A TensorProto has the elements either in `tensor_content` or in the field of its
// type; a typed field that is too short is filled up with its last value (a "splat"), an empty one with zeros.
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

// How many bytes the messages of one import may unfold beyond what they spell out: a splat of 30 bytes can ask for any amount.
struct SplatBudget {
  uint64_t left = 64u << 20;
  std::function<Status(uint64_t bytes)> may;  // who pays for it is asked before it is made; empty: nobody
};

// INVALID_ARGUMENT for a size below -1, too many axes, or sizes beside unknown_rank.
StatusOr<Shape> ShapeFromProto(const proto::TensorShapeProto& p);
void ShapeToProto(const Shape& shape, proto::TensorShapeProto* p);

// In host memory. Errors: INVALID_ARGUMENT for an unknown type, a shape that is not complete or overflows, and contents that do not fit
// shape or type; RESOURCE_EXHAUSTED beyond the budget (NULL: a fresh one), before anything is allocated; UNIMPLEMENTED for resources and
// variants, which no message can bring to life.
StatusOr<Tensor> TensorFromProto(const proto::TensorProto& p, SplatBudget* budget = nullptr);
// From host memory: strings in string_val, all else in tensor_content. Errors: UNIMPLEMENTED as above; RESOURCE_EXHAUSTED where the
// message would pass protobuf's 2 GiB.
Status TensorToProto(const Tensor& tensor, proto::TensorProto* p);

// Bytes from outside may hold what no kernel expects: a bool of 7, a 4-bit integer of 100. INVALID_ARGUMENT with the first such element.
Status CheckElements(const Tensor& tensor);

}  // namespace thalweg
