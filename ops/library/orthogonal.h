// Random orthonormal matrices.
#pragma once
#include <cstdint>

#include "ops/library/build.h"

namespace thalweg::library {

// A matrix [rows, columns] of floats, or of doubles: its rows, or its columns if they are fewer, are orthonormal. normal: a matrix of
// independent normal numbers, of shape [the smaller size, the larger size].
tw_output Orthonormal(tw_scope* scope, tw_output normal, uint32_t dtype, int64_t rows, int64_t columns);

}  // namespace thalweg::library
