// Conversion between any two element types, text included.
#pragma once
#include "table.h"

namespace thalweg::onnx {

// Returns the elements of `x` as type `to`. Numbers become the shortest text that reads back as the same number; text is read as decimal.
// saturate: what is too large for an 8-bit floating-point type becomes its largest finite number.
Value Converted(Builder& b, const Value& x, uint32_t to, bool saturate = true);

}  // namespace thalweg::onnx
