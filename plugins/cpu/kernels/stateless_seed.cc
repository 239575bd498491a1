// StatelessRandomGetKeyCounter, StatelessRandomGetAlg, StatelessRandomGetKeyCounterAlg: derive key
// and counter from two seeds (seed_key.h).
#include "kernels/common/element.h"
#include "kernels/register.h"
#include "kernels/seed_key.h"

namespace thalweg::cpu {
namespace {

constexpr int32_t kPhilox = 1;  // the value of the input `alg` of the stateless random ops

template <class S>
void KeyCounter(tw::In<S> seed, tw::Out<uint64_t> key, tw::Out<uint64_t> counter) {
  if (seed.rank() != 1 || seed.size() != 2) throw tw::Error{TW_INTERNAL, "seed " + DimsText(seed.v) + " must be a vector of two numbers"};
  const SeedKey made = KeyOf(int64_t(seed[0]), int64_t(seed[1]));
  key[0] = made.key;
  counter[0] = 0;
  counter[1] = made.counter;
}

void Alg(tw::Out<int32_t> alg) { alg[0] = kPhilox; }

template <class S>
void KeyCounterAlg(tw::In<S> seed, tw::Out<uint64_t> key, tw::Out<uint64_t> counter, tw::Out<int32_t> alg) {
  KeyCounter<S>(seed, key, counter);
  Alg(alg);
}

}  // namespace

void register_stateless_seed(tw::Plugin& p) {
  p.kernel<KeyCounter<int32_t>, KeyCounter<int64_t>>("StatelessRandomGetKeyCounter @CPU; cheap");
  p.kernel<Alg>("StatelessRandomGetAlg @CPU; cheap");
  p.kernel<KeyCounterAlg<int32_t>, KeyCounterAlg<int64_t>>("StatelessRandomGetKeyCounterAlg @CPU; cheap");
}

}  // namespace thalweg::cpu
