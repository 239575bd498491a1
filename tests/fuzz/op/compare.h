// Whether results are the same, or those of two instruction sets near enough.
#pragma once
#include <string>

#include "tests/fuzz/handles.h"

namespace thalweg::fuzz {

// What differs, or "": types, shapes, elements but for the bits of NaNs. Handles are not looked into.
std::string Difference(const Tensor& a, const Tensor& b);

// What is wrong with `b`, or "": other types, shapes or whole numbers, or real numbers that differ by more than a few roundings of the
// largest.
std::string Far(const tw_tensor& a, const tw_tensor& b);

}  // namespace thalweg::fuzz
