// Random tensors that depend on their inputs alone. The stream of generator `alg` starts at the
// given key and counter.
#include "ops/common/types.h"
#include "ops/random/key_counter.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  CheckKeyCounter(s, 1);
  Set(s, 0, ShapeValue(s, 0, "shape"));
}

void IntRule(const tw::Shape& s) {
  const std::optional<int64_t> low = ScalarValue(s, 4, "minval"), high = ScalarValue(s, 5, "maxval");
  if (low && high && *low >= *high)
    Fail("'minval' is " + tw::text(*low) + " and 'maxval' " + tw::text(*high) + "; minval must be below maxval");
  Rule(s);
}

#define INPUTS "shape: Tshape, key: uint64, counter: uint64, alg: int32"
#define INTEGERS "dtype: {int32, int64, uint32, uint64}"
#define NO_GRADIENT "no_gradient \"whole numbers\"; "

void Floats(tw::Plugin& p, const std::string& name, const std::string& doc) {
  p.op<nullptr, Rule>(name +
                      "(shape: Tshape, key: uint64, counter: uint64, alg: int32) -> (output: dtype); dtype: " OPS_FLOATS
                      " = float; Tshape: " OPS_INDEX " = int32; no_gradient \"random numbers do not depend smoothly on an input\"; doc \"" +
                      doc + "; alg 1 is Philox, 3 any\"");
}

}  // namespace

void register_stateless_random(tw::Plugin& p) {
  Floats(p, "StatelessRandomUniformV2", "evenly distributed in [0, 1), by key and counter");
  Floats(p, "StatelessRandomNormalV2", "normally distributed with mean 0 and standard deviation 1, by key and counter");
  Floats(p, "StatelessTruncatedNormalV2", "normally distributed, values beyond 2 drawn again, by key and counter");
  p.op<nullptr, IntRule>("StatelessRandomUniformIntV2(" INPUTS ", minval: dtype, maxval: dtype) -> (output: dtype); " INTEGERS
                         "; Tshape: " OPS_INDEX " = int32; " NO_GRADIENT
                         "doc \"evenly distributed whole numbers in [minval, maxval), by key and counter; alg 1 is Philox, 3 any\"");
  p.op<nullptr, Rule>("StatelessRandomUniformFullIntV2(" INPUTS ") -> (output: dtype); " INTEGERS " = uint64; Tshape: " OPS_INDEX
                      " = int32; " NO_GRADIENT
                      "doc \"evenly distributed among all numbers of the type, by key and counter; alg 1 is Philox, 3 any\"");
}

}  // namespace thalweg::ops
