// Element-wise arithmetic of two arguments that broadcast as in NumPy.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

tw_edge Mul(const tw::Grad& g, tw_edge a, tw_edge b) { return g.op("Mul", {a, b}); }
tw_edge Neg(const tw::Grad& g, tw_edge a) { return g.op("Neg", {a}); }

void AddGradient(const tw::Grad& g) { BroadcastGradient(g, g.dy(), g.dy()); }
void SubGradient(const tw::Grad& g) { BroadcastGradient(g, g.dy(), Neg(g, g.dy())); }
void MulGradient(const tw::Grad& g) { BroadcastGradient(g, Mul(g, g.dy(), Conj(g, g.x(1))), Mul(g, g.dy(), Conj(g, g.x(0)))); }

// With z = x / y: dz/dx = 1 / y and dz/dy = -z / y, so that x need not be kept.
void Quotient(const tw::Grad& g, const char* divide) {
  const tw_edge dx = g.op(divide, {g.dy(), Conj(g, g.x(1))});
  BroadcastGradient(g, dx, Neg(g, Mul(g, dx, Conj(g, g.y()))));
}
void DivGradient(const tw::Grad& g) { Quotient(g, "RealDiv"); }
void DivNoNanGradient(const tw::Grad& g) { Quotient(g, "DivNoNan"); }

// z = x - floor(x / y) y; the floor counts as constant.
void FloorModGradient(const tw::Grad& g) { BroadcastGradient(g, g.dy(), Neg(g, Mul(g, g.dy(), g.op("FloorDiv", {g.x(0), g.x(1)})))); }

// As in TensorFlow, the gradient of the exponent is 0 where log(x) is not a real number, at x <= 0.
void PowGradient(const tw::Grad& g) {
  const tw_edge x = g.x(0), y = g.x(1), cx = Conj(g, x), cy = Conj(g, y);
  const tw_edge zero = Number(g, 0, x), one = Number(g, 1, x);
  const tw_edge dx = Mul(g, g.dy(), Mul(g, cy, g.op("Pow", {cx, g.op("Sub", {cy, one})})));
  const tw_edge has_log = g.op(cx == x ? "Greater" : "NotEqual", {x, zero});
  const tw_edge log = g.op("SelectV2", {has_log, g.op("Log", {g.op("SelectV2", {has_log, cx, one})}), zero});
  BroadcastGradient(g, dx, Mul(g, g.dy(), Mul(g, Conj(g, g.y()), log)));
}

// The selected argument gets the whole gradient; x wins ties.
void Choice(const tw::Grad& g, const char* x_wins) {
  const tw_edge mask = g.op(x_wins, {g.x(0), g.x(1)}), zero = Number(g, 0, g.dy());
  BroadcastGradient(g, g.op("SelectV2", {mask, g.dy(), zero}), g.op("SelectV2", {mask, zero, g.dy()}));
}
void MaximumGradient(const tw::Grad& g) { Choice(g, "GreaterEqual"); }
void MinimumGradient(const tw::Grad& g) { Choice(g, "LessEqual"); }

// SquaredDifference is real for complex arguments, so the imaginary part of its gradient is
// ignored.
void SquaredDifferenceGradient(const tw::Grad& g) {
  const tw_edge twice = Mul(g, Number(g, 2, g.dy()), RealPart(g, g.dy()));
  const tw_edge dx = Mul(g, twice, g.op("Sub", {g.x(0), g.x(1)}));
  BroadcastGradient(g, dx, Neg(g, dx));
}

template <void (*Gradient)(const tw::Grad&)>
void Binary(tw::Plugin& p, const std::string& name, const std::string& types, const std::string& clauses) {
  p.op<Gradient, BinaryRule>(name + "(x: T, y: T) -> (z: T); T: " + types + "; ?elementwise; " + clauses);
}

}  // namespace

void register_binary(tw::Plugin& p) {
  // Add takes strings, so it alone among the sums is not commutative.
  Binary<AddGradient>(p, "Add", "{half, bfloat16, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}",
                      R"(neutral x -0 y -0; ?data x y; doc "x + y; strings are joined")");
  Binary<AddGradient>(p, "AddV2", OPS_ARITHMETIC, R"(commutative; neutral x -0 y -0; ?data x y; doc "x + y")");
  Binary<SubGradient>(p, "Sub", OPS_ARITHMETIC, R"(neutral y 0; ?data x y; doc "x - y")");
  Binary<MulGradient>(p, "Mul", OPS_ARITHMETIC, R"(commutative; neutral x 1 y 1; ?data x y; doc "x * y, element by element")");
  Binary<DivGradient>(p, "Div", OPS_ARITHMETIC, R"(neutral y 1; doc "x / y; of whole numbers, rounded towards 0")");
  Binary<DivGradient>(p, "RealDiv", OPS_ARITHMETIC, R"(neutral y 1; doc "x / y of real numbers")");
  Binary<DivNoNanGradient>(p, "DivNoNan", OPS_FLOATS_COMPLEX, R"(neutral y 1; doc "x / y, and 0 where y is 0")");
  Binary<ZeroGradient>(p, "FloorDiv", OPS_ARITHMETIC, R"(doc "x / y rounded down")");
  Binary<FloorModGradient>(p, "FloorMod", OPS_REALS, R"(doc "what FloorDiv leaves: x - floor(x / y) y, with the sign of y")");
  Binary<PowGradient>(p, "Pow", OPS_SIGNED_COMPLEX, R"(doc "x to the power of y")");
  Binary<MaximumGradient>(p, "Maximum", OPS_REALS, R"(?data x y; doc "the larger of x and y; NaN if either is")");
  Binary<MinimumGradient>(p, "Minimum", OPS_REALS, R"(?data x y; doc "the smaller of x and y; NaN if either is")");
  Binary<SquaredDifferenceGradient>(p, "SquaredDifference", "{half, bfloat16, float, double, int32, int64, complex64, complex128}",
                                    R"(commutative; ?data x y; doc "(x - y) (x - y); of complex numbers, conj(x - y) times x - y")");
}

}  // namespace thalweg::ops
