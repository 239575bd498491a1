// Helpers for the shape rules and gradients of recurrent cells.
#pragma once
#include "ops/common/grad.h"

namespace thalweg::ops {

// The sizes of a step of a recurrent cell.
struct CellSizes {
  int64_t batch, input, cell;
};

// Checks x [batch, input] and `states`, inputs that are [batch, cell]; returns the sizes. sequence:
// x is [time, batch, input].
CellSizes WantCell(const tw::Shape& s, uint32_t x, std::initializer_list<std::pair<uint32_t, const char*>> states, bool sequence = false);
// Reject any shape except weights [input + cell, gates * cell] and bias [gates * cell].
void WantWeights(const tw::Shape& s, const CellSizes& sizes, uint32_t i, const char* name, int64_t gates);
void WantBias(const tw::Shape& s, const CellSizes& sizes, uint32_t i, const char* name, int64_t gates);
// Rejects input i if a known size of it differs from `dims`.
void WantShape(const tw::Shape& s, uint32_t i, const char* name, const Dims& dims);

// Arithmetic of the gradients.
struct Sums {
  const tw::Grad& g;
  tw_edge Mul(tw_edge a, tw_edge b) const { return g.op("Mul", {a, b}); }
  tw_edge Add(tw_edge a, tw_edge b) const { return g.op("AddV2", {a, b}); }
  tw_edge Sub(tw_edge a, tw_edge b) const { return g.op("Sub", {a, b}); }
  tw_edge Less(double from, tw_edge a) const { return Sub(Number(g, from, a), a); }  // from - a
  tw_edge Times(double by, tw_edge a) const { return Mul(Number(g, by, a), a); }
  // dy times the slope of a sigmoid, or of a hyperbolic tangent, whose result is y.
  tw_edge Sigmoid(tw_edge y, tw_edge dy) const { return g.op("SigmoidGrad", {y, dy}); }
  tw_edge Tanh(tw_edge y, tw_edge dy) const { return g.op("TanhGrad", {y, dy}); }
  tw_edge Rows(tw_edge a) const { return g.op("Sum", {a, Ints(g, {0})}); }
  tw_edge Product(tw_edge a, tw_edge b, bool transpose_a = false, bool transpose_b = false) const {
    return g.op("MatMul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  }
  // Beside joins matrices along the columns. Parts cuts a matrix into `parts` of equal width.
  tw_edge Beside(std::vector<tw_edge> matrices) const;
  std::vector<tw_edge> Parts(tw_edge matrix, int64_t parts) const;
  // Cuts a matrix into the columns of input i and the following ones, which belong to input j.
  std::pair<tw_edge, tw_edge> Cut(tw_edge matrix, uint32_t i, uint32_t j) const;
};

}  // namespace thalweg::ops
