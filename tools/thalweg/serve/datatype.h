// Element types by the names of the Open Inference Protocol, and 2-byte floats.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thalweg/model.h"

namespace thalweg::cli::serve {

// Returns "FP32" for TW_FLOAT. The protocol has no name for complex and quantised numbers: they get our name in capitals.
std::string DatatypeName(uint32_t dtype);
// Returns TW_INVALID_TYPE for a name that the protocol does not have.
uint32_t FindDatatype(std::string_view name);
// Returns whether the protocols can carry values of the type.
bool IsCarried(uint32_t dtype);

// Formats [2, 3], and [?, 3] for a shape with an unknown size.
std::string DimsText(const std::vector<int64_t>& dims);
std::string DimsText(const tw_shape& shape);

// Convert between 2-byte floats and float. To 2 bytes: the nearest value, ties to even.
float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);
float Bfloat16ToFloat(uint16_t bits);
uint16_t FloatToBfloat16(float value);

}  // namespace thalweg::cli::serve
