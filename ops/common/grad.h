// Shared parts of gradient builders: undoing a broadcast, the shape of a gradient, conjugates,
// sparse rows. For gradient callbacks only. Every op emitted here and in the families is one of
// this library's, and differentiable again where it matters.
#pragma once
#include <initializer_list>
#include <string_view>

#include "ops/common/shape.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg::ops {

// The gradient of an op whose derivative is 0 wherever it exists: no gradient flows back.
// (`no_gradient` in a schema is for an op that cannot be differentiated: asking for that gradient
// is an error.)
inline void ZeroGradient(const tw::Grad&) {}

// Gives input i what arrives at output o, which is the same value: rows as rows.
void PassBack(const tw::Grad& g, uint32_t i, uint32_t o);

// Static shapes of the forward node.
inline MaybeDims ShapeIn(const tw::Grad& g, uint32_t i) { return ToDims(g.shape_in(i)); }
inline MaybeDims ShapeOut(const tw::Grad& g, uint32_t o) { return ToDims(g.shape_out(o)); }

// Type, static shape and shape vector (int32; a constant if the shape is known) of a value in the
// gradient graph.
uint32_t TypeOf(const tw::Grad& g, tw_edge e);
MaybeDims DimsOf(const tw::Grad& g, tw_edge e);
tw_edge ShapeOf(const tw::Grad& g, tw_edge e);

// Returns the conjugate of a complex value; a real value unchanged.
tw_edge Conj(const tw::Grad& g, tw_edge e);
// Returns a complex value without its imaginary part; a real value unchanged.
tw_edge RealPart(const tw::Grad& g, tw_edge e);
// Splits complex numbers into parts, and joins parts. part: "Real" or "Imag".
tw_edge Part(const tw::Grad& g, const char* part, tw_edge z);
tw_edge Complex(const tw::Grad& g, tw_edge re, tw_edge im);
// Casts the value to another element type; returns it unchanged if it has that type.
tw_edge CastTo(const tw::Grad& g, tw_edge e, uint32_t type);
// Constants: an int32 vector, an int32 scalar, and a scalar of the type of `like`.
inline tw_edge Ints(const tw::Grad& g, const Dims& v) { return g.ints(v); }
tw_edge Int(const tw::Grad& g, int64_t v);
tw_edge Number(const tw::Grad& g, double v, tw_edge like);
// Returns elements [from, end) or [from, to) of a vector; negative positions count from the end.
tw_edge Tail(const tw::Grad& g, tw_edge vector, int64_t from);
tw_edge Head(const tw::Grad& g, tw_edge vector, int64_t to);
// Concatenates vectors.
tw_edge Concat(const tw::Grad& g, std::initializer_list<tw_edge> vectors);
// Returns [1, 1, ...] with `n` (an int32 scalar) ones.
tw_edge Ones(const tw::Grad& g, tw_edge n);

// Sums e, which has the shape of input i broadcast with `other`, back to the shape of input i.
tw_edge SumTo(const tw::Grad& g, tw_edge e, uint32_t i, const MaybeDims& other);
// Sets the gradients of the two inputs of a broadcasting op; dx and dy still have the shape of its
// result. trailing: number of last axes that do not take part in the broadcast.
void BroadcastGradient(const tw::Grad& g, tw_edge dx, tw_edge dy, size_t trailing = 0);

// Returns the sum of the elements of e where `mask` (bool, of the same shape) is true: the gradient
// of a scalar that was broadcast there.
tw_edge SumWhere(const tw::Grad& g, tw_edge mask, tw_edge e);

// Returns 0 .. n-1, for constants.
Dims Iota(int64_t n);

}  // namespace thalweg::ops
