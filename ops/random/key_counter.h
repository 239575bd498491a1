// Shared shape rules of random ops whose numbers depend on their inputs alone.
#pragma once
#include "ops/common/shape.h"

namespace thalweg::ops {

// Checks inputs `first`, `first` + 1 and `first` + 2: the key, the counter and the number of the
// generator.
void CheckKeyCounter(const tw::Shape& s, uint32_t first);

// Checks input i, a seed of two numbers.
void CheckSeed(const tw::Shape& s, uint32_t i);

// Returns `dims`, whose last sizes must be the shape of input i.
MaybeDims EndingWith(const tw::Shape& s, MaybeDims dims, uint32_t i, const std::string& name);

}  // namespace thalweg::ops
