// Steps with matrices that families share. Threads: those of Translation.
#pragma once
#include "common.h"

namespace thalweg::stablehlo {

// The last two axes exchanged; the adjoint has conjugate elements as well.
Value Transposed(Translation& t, const Value& x);
Value Adjoint(Translation& t, const Value& x);
// Solves op(matrix) X = rhs, or X op(matrix) = rhs unless `left`; op is the transpose, the adjoint or nothing. lower: which triangle of
// `matrix` is read. unit: its diagonal counts as ones.
Value SolveTriangular(Translation& t, const Value& matrix, const Value& rhs, bool left, bool lower, bool unit, bool transposed,
                      bool adjoint);

}  // namespace thalweg::stablehlo
