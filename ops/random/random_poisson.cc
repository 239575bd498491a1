// Samples of Poisson distributions, by seeds or by a seed alone.
#include "ops/common/types.h"
#include "ops/random/key_counter.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

constexpr const char* kTypes = "{half, float, double, int32, int64}";

void Rule(const tw::Shape& s) {
  const MaybeDims samples = ShapeValue(s, 0, "shape"), rate = In(s, 1);
  Set(s, 0, samples && rate ? MaybeDims(Join(*samples, *rate)) : std::nullopt);
}

void SeedRule(const tw::Shape& s) {
  CheckSeed(s, 1);
  Set(s, 0, EndingWith(s, ShapeValue(s, 0, "shape"), 2, "lam"));
}

}  // namespace

void register_random_poisson(tw::Plugin& p) {
  const std::string types = kTypes;
  p.op<nullptr, Rule>(
      "RandomPoissonV2(shape: S, rate: R) -> (output: dtype); seed: int = 0; seed2: int = 0; S: " OPS_INDEX "; R: " + types +
      " = double; dtype: " + types +
      " = int64; stateful; ?data rate; no_gradient \"whole numbers\"; doc \"samples of the Poisson distributions with these rates, "
      "`shape` samples of each\"");
  p.op<nullptr, SeedRule>(
      "StatelessRandomPoisson(shape: T, seed: Tseed, lam: Rtype) -> (output: dtype); Rtype: " + types + "; dtype: " + types +
      "; T: " OPS_INDEX "; Tseed: " OPS_INDEX
      " = int64; ?data lam; no_gradient \"whole numbers\"; doc \"samples of the Poisson distributions with these rates, by seed\"");
}

}  // namespace thalweg::ops
