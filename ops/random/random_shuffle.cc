// Random orders of the rows of a tensor, by seeds or by key and counter.
#include "ops/common/grad.h"
#include "ops/random/key_counter.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void KeyRule(const tw::Shape& s) {
  CheckKeyCounter(s, 1);
  Set(s, 0, In(s, 0));
}

}  // namespace

void register_random_shuffle(tw::Plugin& p) {
  p.op(
      "RandomShuffle(value: T[*s]) -> (output: T[*s]); seed: int = 0; seed2: int = 0; T: type; stateful; no_gradient \"the order is "
      "lost\"; "
      "doc \"the same rows along the first axis, in random order\"");
  p.op<nullptr, KeyRule>(
      "StatelessShuffle(value: T, key: uint64, counter: uint64, alg: int32) -> (output: T); T: type; no_gradient \"the order is lost\"; "
      "doc \"the same rows along the first axis, in an order by key and counter; alg 1 is Philox, 3 any\"");
}

}  // namespace thalweg::ops
