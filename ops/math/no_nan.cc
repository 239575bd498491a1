// Products and quotients that are 0 if one argument is 0, for any other argument; two arguments
// broadcast as in NumPy.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

tw_edge Mul(const tw::Grad& g, tw_edge a, tw_edge b) { return g.op("Mul", {a, b}); }

void MulNoNanGradient(const tw::Grad& g) {
  BroadcastGradient(g, g.op("MulNoNan", {g.dy(), Conj(g, g.x(1))}), g.op("MulNoNan", {Conj(g, g.x(0)), g.dy()}));
}

// op(x, y) = x f(y). The gradient of x is f(y) where x is not 0, computed by op itself; that of y
// is x slope(y).
void Scaled(const tw::Grad& g, const char* op, tw_edge x, tw_edge y, tw_edge for_y) {
  const tw_edge counts = CastTo(g, g.op("NotEqual", {x, Number(g, 0, x)}), TypeOf(g, x));
  BroadcastGradient(g, Mul(g, g.dy(), g.op(op, {counts, y})), Mul(g, g.dy(), for_y));
}
void XdivyGradient(const tw::Grad& g) {
  const tw_edge x = Conj(g, g.x(0)), y = Conj(g, g.x(1));
  Scaled(g, "Xdivy", x, y, g.op("Xdivy", {g.op("Neg", {x}), g.op("Square", {y})}));
}
void XlogyGradient(const tw::Grad& g) {
  const tw_edge x = Conj(g, g.x(0)), y = Conj(g, g.x(1));
  Scaled(g, "Xlogy", x, y, g.op("Xdivy", {x, y}));
}
void Xlog1pyGradient(const tw::Grad& g) {
  const tw_edge x = Conj(g, g.x(0)), y = Conj(g, g.x(1));
  Scaled(g, "Xlog1py", x, y, g.op("Xdivy", {x, g.op("AddV2", {y, Number(g, 1, y)})}));
}

template <void (*Gradient)(const tw::Grad&)>
void Binary(tw::Plugin& p, const std::string& name, const std::string& doc) {
  p.op<Gradient, BinaryRule>(name + "(x: T, y: T) -> (z: T); T: " OPS_FLOATS_COMPLEX "; ?elementwise; doc \"" + doc + "\"");
}

}  // namespace

void register_no_nan(tw::Plugin& p) {
  Binary<MulNoNanGradient>(p, "MulNoNan", "x * y, and 0 where y is 0, even if x is infinite or NaN");
  Binary<XdivyGradient>(p, "Xdivy", "x / y, and 0 where x is 0, even if y is 0 or NaN");
  Binary<XlogyGradient>(p, "Xlogy", "x log(y), and 0 where x is 0, even if y has no logarithm");
  Binary<Xlog1pyGradient>(p, "Xlog1py", "x log(1 + y), exact for small y, and 0 where x is 0, even if 1 + y has no logarithm");
}

}  // namespace thalweg::ops
