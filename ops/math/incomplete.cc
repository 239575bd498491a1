// The incomplete gamma functions Igamma and Igammac, the derivative IgammaGradA, and the incomplete
// beta function Betainc.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

tw_edge Mul(const tw::Grad& g, tw_edge a, tw_edge b) { return g.op("Mul", {a, b}); }
tw_edge Sub(const tw::Grad& g, tw_edge a, tw_edge b) { return g.op("Sub", {a, b}); }

// (a - 1) log(x), and 0 where a is 1 and x is 0.
tw_edge PowerLess1(const tw::Grad& g, tw_edge a, tw_edge x) { return g.op("Xlogy", {Sub(g, a, Number(g, 1, a)), x}); }

// The derivative of P for x is exp((a - 1) log(x) - x - lgamma(a)); that of Q has the other sign.
template <bool kComplement>
void IgammaGradient(const tw::Grad& g) {
  const tw_edge a = g.x(0), x = g.x(1), dy = kComplement ? g.op("Neg", {g.dy()}) : g.dy();
  // IgammaGradA does not support 16-bit types.
  const uint32_t type = g.type_in(0), wide = type == TW_DOUBLE ? TW_DOUBLE : TW_FLOAT;
  const tw_edge by_a = CastTo(g, g.op("IgammaGradA", {CastTo(g, a, wide), CastTo(g, x, wide)}), type);
  const tw_edge by_x = g.op("Exp", {Sub(g, Sub(g, PowerLess1(g, a, x), x), g.op("Lgamma", {a}))});
  BroadcastGradient(g, Mul(g, dy, by_a), Mul(g, dy, by_x));
}

// Inputs are scalars, or have one shape.
void BetaincRule(const tw::Shape& s) {
  static constexpr const char* kNames[] = {"a", "b", "x"};
  MaybeDims out = Dims{};
  bool open = false;  // an input of unknown rank may have any shape, unless another one is known to have axes
  for (uint32_t i = 0; i < 3; ++i) {
    const MaybeDims in = In(s, i);
    if (!in) {
      open = true;
    } else if (!in->empty()) {
      out = out->empty() ? in : Merge(s, out, in, "the shapes of the inputs up to '" + std::string(kNames[i]) + "'");
    }
  }
  if (open && out->empty()) return s.unknown(0);
  Set(s, 0, out);
}

// As in TensorFlow, only x gets a gradient.
void BetaincGradient(const tw::Grad& g) {
  const tw_edge a = g.x(0), b = g.x(1), x = g.x(2);
  const tw_edge log_beta = Sub(g, g.op("AddV2", {g.op("Lgamma", {a}), g.op("Lgamma", {b})}), g.op("Lgamma", {g.op("AddV2", {a, b})}));
  const tw_edge rest = g.op("Xlog1py", {Sub(g, b, Number(g, 1, b)), g.op("Neg", {x})});
  const tw_edge slope = g.op("Exp", {Sub(g, g.op("AddV2", {PowerLess1(g, a, x), rest}), log_beta)});
  g.dx(2, SumTo(g, Mul(g, g.dy(), slope), 2, ShapeOut(g, 0)));
}

#define GAMMA_FLOATS "T: {bfloat16, half, float, double}; "

}  // namespace

void register_incomplete(tw::Plugin& p) {
  p.op<IgammaGradient<false>, BinaryRule>("Igamma(a: T, x: T) -> (z: T); " GAMMA_FLOATS
                                          "doc \"integral of t^(a - 1) exp(-t) from 0 to x, divided by gamma(a)\"");
  p.op<IgammaGradient<true>, BinaryRule>("Igammac(a: T, x: T) -> (z: T); " GAMMA_FLOATS
                                         "doc \"integral of t^(a - 1) exp(-t) from x to infinity, divided by gamma(a)\"");
  p.op<nullptr, BinaryRule>(
      "IgammaGradA(a: T, x: T) -> (z: T); T: {float, double}; no_gradient \"second derivatives of Igamma for a are not offered\"; "
      "doc \"derivative of Igamma for a\"");
  p.op<BetaincGradient, BetaincRule>(
      "Betainc(a: T, b: T, x: T) -> (z: T); T: {float, double}; "
      "doc \"integral of t^(a - 1) (1 - t)^(b - 1) from 0 to x, divided by that from 0 to 1; no gradient flows to a and b\"");
}

}  // namespace thalweg::ops
