// The rule of binary ops before opset 7.
#pragma once
#include "table.h"

namespace thalweg::onnx {

// Returns input 1, with axes of size 1 added where an attribute `axis` of an old opset wants them.
Value AlignedOperand(Builder& b, Node& n);

}  // namespace thalweg::onnx
