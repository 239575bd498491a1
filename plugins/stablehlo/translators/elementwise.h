// Element-wise steps that other families share. Threads: those of Translation.
#pragma once
#include <string>

#include "common.h"

namespace thalweg::stablehlo {

// Compares as stablehlo.compare does. direction: "EQ", "NE", "LT", "LE", "GT" or "GE". total: in IEEE 754's total order.
Value Compare(Translation& t, const std::string& direction, bool total, const Value& a, const Value& b);
// Real numbers as integers in IEEE 754's total order; other values themselves.
Value TotalOrder(Translation& t, const Value& x);
// The number of bits that are set, in x's type.
Value PopulationCount(Translation& t, const Value& x);
// Converts as stablehlo.convert does.
Value Convert(Translation& t, const Value& x, uint32_t dtype);
// Rounds to so many bits of exponent and mantissa, and keeps the type.
Value ReducePrecision(Translation& t, const Value& x, int64_t exponent_bits, int64_t mantissa_bits);

}  // namespace thalweg::stablehlo
