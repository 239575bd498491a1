// Factors of 8 bits with one zero point each, as our quantised ops take them: a number and the range [min, max] that its lowest and its
// highest value stand for. In steps of 1 the range says the zero point exactly. Threads: those of Builder.
#pragma once
#include "table.h"

namespace thalweg::onnx {

struct EightBits {
  Value number;    // of type qint8 or quint8
  Value min, max;  // floats
};

// Returns true if v has 8 bits and all its elements have one zero point, which may be absent.
bool IsEightBits(const Value& v, const Value& zero);
// The zero point as a scalar of v's type. REQUIRES: IsEightBits(v, zero).
Value ZeroPointOf(Builder& b, const Value& v, const Value& zero);
EightBits EightBitsOf(Builder& b, const Value& v, const Value& zero);
// The int32 numbers of sums that a quantised op made.
Value SumsOf(Builder& b, const Value& sums);

}  // namespace thalweg::onnx
