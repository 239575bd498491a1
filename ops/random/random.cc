// Random tensors of a given shape. The two seeds choose the stream of Philox 4x32-10; if both are
// 0, the op takes fresh seeds.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) { Set(s, 0, ShapeValue(s, 0, "shape")); }

void IntRule(const tw::Shape& s) {
  const std::optional<int64_t> low = ScalarValue(s, 1, "minval"), high = ScalarValue(s, 2, "maxval");
  if (low && high && *low >= *high)
    Fail("'minval' is " + tw::text(*low) + " and 'maxval' " + tw::text(*high) + "; minval must be below maxval");
  Rule(s);
}

void Floats(tw::Plugin& p, const std::string& name, const std::string& doc) {
  p.op<nullptr, Rule>(name +
                      "(shape: T) -> (output: dtype); seed: int = 0; seed2: int = 0; dtype: " OPS_FLOATS "; T: " OPS_INDEX
                      "; stateful; no_gradient \"random numbers do not depend on an input\"; doc \"" +
                      doc + "\"");
}

}  // namespace

void register_random(tw::Plugin& p) {
  Floats(p, "RandomUniform", "evenly distributed in [0, 1)");
  Floats(p, "RandomStandardNormal", "normally distributed with mean 0 and standard deviation 1");
  Floats(p, "TruncatedNormal", "normally distributed with mean 0 and standard deviation 1, values beyond 2 drawn again");
  p.op<nullptr, IntRule>(
      "RandomUniformInt(shape: T, minval: Tout, maxval: Tout) -> (output: Tout); seed: int = 0; seed2: int = 0; Tout: " OPS_INDEX
      "; T: " OPS_INDEX "; stateful; no_gradient \"whole numbers\"; doc \"evenly distributed whole numbers in [minval, maxval)\"");
}

}  // namespace thalweg::ops
