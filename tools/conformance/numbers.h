// Element values as doubles, and the comparison of two tensors by them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "framework/tensor/tensor.h"

namespace thalweg::conformance {

// The elements as numbers, two for a complex one; empty for types that hold none.
std::vector<double> NumbersOf(const Tensor& t);
// A host tensor of these dims: element i is fill(i), rounded to the type, or "s<n>" in one of strings.
StatusOr<Tensor> TensorOf(uint32_t dtype, const Shape& shape, double (*fill)(uint64_t i));
// What differs beyond rounding; empty where nothing does. Shapes, whole numbers and strings must be equal.
// tolerance: as a part of the largest element, in place of what is usual for the type; then for whole numbers, too.
std::string Differs(const Tensor& got, const Tensor& want, std::optional<double> tolerance = {});
// The same bits; variants: empty in the same places.
bool SameBits(const Tensor& a, const Tensor& b);

}  // namespace thalweg::conformance
