// Shared parts of ops on matrices [..., rows, columns]: shapes, and products in gradients.
#pragma once
#include "ops/common/grad.h"

namespace thalweg::ops {

#define OPS_MATRIX_TYPES "{double, float, half, complex64, complex128}"

// Returns the shape of input i, which must have at least two axes.
MaybeDims Matrices(const tw::Shape& s, uint32_t i, const char* name);
// Returns the shape of input i with the sizes of the last two axes merged.
MaybeDims SquareMatrices(const tw::Shape& s, uint32_t i, const char* name);
// Returns the axes before the last two; nullopt if the rank is unknown.
MaybeDims BatchOf(const MaybeDims& matrices);

// Matrices in gradient graphs. Products treat each batch entry by itself; an adjoint is the
// conjugate transpose.
tw_edge Product(const tw::Grad& g, tw_edge a, tw_edge b, bool adjoint_a = false, bool adjoint_b = false);
tw_edge Adjoint(const tw::Grad& g, tw_edge a);
// Returns the elements with -below <= column - row <= above; a negative number keeps all.
tw_edge Band(const tw::Grad& g, tw_edge a, int64_t below, int64_t above);
// Returns matrices with these diagonals, zero elsewhere; and the diagonals of matrices.
tw_edge Diagonal(const tw::Grad& g, tw_edge vectors);
tw_edge DiagonalOf(const tw::Grad& g, tw_edge a);
tw_edge Scale(const tw::Grad& g, tw_edge a, double factor);
// Returns one factor per matrix, [...], as [..., 1, 1].
tw_edge PerMatrix(const tw::Grad& g, tw_edge factors);

}  // namespace thalweg::ops
