// Compares results for equality, or those of two instruction sets approximately.
#pragma once
#include <string>

#include "tests/fuzz/handles.h"

namespace thalweg::fuzz {

// Describes the first difference in types, shapes or elements, or returns "". NaNs are equal;
// handles are not inspected.
std::string Difference(const Tensor& a, const Tensor& b);

// Describes the fault of `b`, or returns "": other types, shapes or integers, or real numbers that
// differ by more than a few roundings of the largest.
std::string Far(const tw_tensor& a, const tw_tensor& b);

}  // namespace thalweg::fuzz
