// StatelessRandomGetKeyCounter, StatelessRandomGetAlg and both in one. They map a seed to the start
// of the stream of the stateless random ops.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_stateless_seed(tw::Plugin& p) {
  p.op("StatelessRandomGetKeyCounter(seed: Tseed [2]) -> (key: uint64 [1], counter: uint64 [2]); Tseed: " OPS_INDEX
       " = int64; no_gradient \"seeds are whole numbers\"; doc \"the key and counter of Philox that the seed stands for\"");
  p.op(
      "StatelessRandomGetAlg() -> (alg: int32 []); stateful; no_gradient \"it has no inputs\"; "
      "doc \"the generator of the device, as the stateless random ops take it: 1, Philox\"");
  p.op("StatelessRandomGetKeyCounterAlg(seed: Tseed [2]) -> (key: uint64 [1], counter: uint64 [2], alg: int32 []); Tseed: " OPS_INDEX
       " = int64; no_gradient \"seeds are whole numbers\"; doc \"the key and counter that the seed stands for, and the generator\"");
}

}  // namespace thalweg::ops
