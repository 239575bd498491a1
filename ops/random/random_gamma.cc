// Samples of gamma distributions, by seeds or by key and counter, and the derivative of a sample
// for the shape of its distribution.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/random/key_counter.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

constexpr const char* kTypes = "{half, float, double}";

void Rule(const tw::Shape& s) {
  const MaybeDims samples = ShapeValue(s, 0, "shape"), alpha = In(s, 1);
  Set(s, 0, samples && alpha ? MaybeDims(Join(*samples, *alpha)) : std::nullopt);
}

void SeedRule(const tw::Shape& s) {
  CheckSeed(s, 1);
  Set(s, 0, EndingWith(s, ShapeValue(s, 0, "shape"), 2, "alpha"));
}

void KeyRule(const tw::Shape& s) {
  CheckKeyCounter(s, 1);
  Set(s, 0, EndingWith(s, ShapeValue(s, 0, "shape"), 4, "alpha"));
}

// The samples of one alpha stand along leading axes, so alpha broadcasts with them (Figurnov,
// Mohamed, Mnih: "Implicit reparameterization gradients", 2018). RandomGammaGrad has no kernel for
// half.
template <uint32_t kAlpha>
void Gradient(const tw::Grad& g) {
  const uint32_t type = g.type_in(kAlpha), wide = type == TW_DOUBLE ? TW_DOUBLE : TW_FLOAT;
  const tw_edge slope = g.op("RandomGammaGrad", {CastTo(g, g.x(kAlpha), wide), CastTo(g, g.y(), wide)});
  g.dx(kAlpha, SumTo(g, g.op("Mul", {g.dy(), CastTo(g, slope, type)}), kAlpha, ShapeOut(g, 0)));
}

}  // namespace

void register_random_gamma(tw::Plugin& p) {
  const std::string types = kTypes;
  p.op<Gradient<1>, Rule>(
      "RandomGamma(shape: S, alpha: T) -> (output: T); seed: int = 0; seed2: int = 0; S: " OPS_INDEX "; T: " + types +
      "; stateful; ?data alpha; doc \"samples of the gamma distributions with these alphas and scale 1, `shape` samples of each\"");
  p.op<Gradient<2>, SeedRule>("StatelessRandomGammaV2(shape: T, seed: Tseed, alpha: dtype) -> (output: dtype); dtype: " + types +
                              "; T: " OPS_INDEX "; Tseed: " OPS_INDEX
                              " = int64; ?data alpha; doc \"samples of the gamma distributions with these alphas and scale 1, by seed\"");
  p.op<Gradient<4>, KeyRule>(
      "StatelessRandomGammaV3(shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype) -> (output: dtype); dtype: " +
      types +
      "; shape_dtype: " OPS_INDEX
      " = int32; ?data alpha; doc \"samples of the gamma distributions with these alphas and scale 1, by key and counter; alg 1 is Philox, "
      "3 any\"");
  p.op<nullptr, BinaryRule>(
      "RandomGammaGrad(alpha: T, sample: T) -> (output: T); T: {float, double}; ?data alpha sample; no_gradient \"second derivatives of "
      "samples are not "
      "offered\"; doc \"derivative of a sample of a gamma distribution for its alpha, at the same probability; NaN unless alpha > 0 and "
      "sample >= 0\"");
}

}  // namespace thalweg::ops
