// Reads elements of tensors as doubles, and compares tensors by them. Threads: any.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "framework/tensor/tensor.h"

namespace thalweg::conformance {

// Returns the elements as numbers, two for a complex one; empty for types without numbers.
std::vector<double> NumbersOf(const Tensor& t);
// Makes a host tensor of this shape. Element i is fill(i), rounded to the type; a string is "s<n>".
StatusOr<Tensor> TensorOf(uint32_t dtype, const Shape& shape, double (*fill)(uint64_t i));
// Describes a difference beyond rounding; empty if there is none. Shapes, integers and strings must be
// equal. tolerance: a fraction of the largest element, which replaces the type's default; it then also
// applies to integers.
std::string Differs(const Tensor& got, const Tensor& want, std::optional<double> tolerance = {});
// Returns true if both have the same bits; variants and handles: if both are empty in the same places.
bool SameBits(const Tensor& a, const Tensor& b);

}  // namespace thalweg::conformance
