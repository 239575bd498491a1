// RandomShuffle permutes the rows of a tensor at random.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_random_shuffle(tw::Plugin& p) {
  p.op(
      "RandomShuffle(value: T[*s]) -> (output: T[*s]); seed: int = 0; seed2: int = 0; T: type; stateful; no_gradient \"the order is "
      "lost\"; "
      "doc \"the same rows along the first axis, in random order\"");
}

}  // namespace thalweg::ops
