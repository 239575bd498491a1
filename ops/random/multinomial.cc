// Multinomial draws class numbers by unnormalised log-probabilities.
#include "ops/common/types.h"
#include "ops/random/key_counter.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantRank(s, 0, 2, "logits");
  const std::optional<int64_t> samples = ScalarValue(s, 1, "num_samples");
  if (samples && *samples < 0) Fail("'num_samples' is " + tw::text(*samples) + "; it must not be negative");
  if (s.known(0) && s.dim(0, 1) == 0 && s.dim(0, 0) != 0) Fail("'logits' is " + tw::text(s.in(0)) + ", which has no classes to draw from");
  s.out(0, Dims{s.known(0) ? s.dim(0, 0) : -1, samples.value_or(-1)});
}

void StatelessRule(const tw::Shape& s) {
  CheckSeed(s, 2);
  Rule(s);
}

}  // namespace

void register_multinomial(tw::Plugin& p) {
  p.op<nullptr, Rule>("Multinomial(logits: T, num_samples: int32) -> (output: output_dtype); seed: int = 0; seed2: int = 0; T: " OPS_REALS
                      "; output_dtype: " OPS_INDEX
                      " = int64; stateful; no_gradient \"whole numbers\"; doc \"for each row, num_samples classes drawn with "
                      "probabilities proportional to exp(logits); logits that are not finite are never drawn\"");
  p.op<nullptr, StatelessRule>("StatelessMultinomial(logits: T, num_samples: int32, seed: Tseed) -> (output: output_dtype); T: " OPS_REALS
                               "; Tseed: " OPS_INDEX " = int64; output_dtype: " OPS_INDEX
                               " = int64; no_gradient \"whole numbers\"; doc \"Multinomial whose draws depend on the seed alone\"");
}

}  // namespace thalweg::ops
