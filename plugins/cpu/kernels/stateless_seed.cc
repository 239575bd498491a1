// StatelessRandomGetKeyCounter, StatelessRandomGetAlg, StatelessRandomGetKeyCounterAlg: derive key
// and counter from two seeds as TensorFlow does, by one block of Philox over the seeds, so neither
// seed has to be random.
#include "kernels/common/element.h"
#include "kernels/philox.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr int32_t kPhilox = 1;  // the value of the input `alg` of the stateless random ops

template <class S>
void KeyCounter(tw::In<S> seed, tw::Out<uint64_t> key, tw::Out<uint64_t> counter) {
  if (seed.rank() != 1 || seed.size() != 2) throw tw::Error{TW_INTERNAL, "seed " + DimsText(seed.v) + " must be a vector of two numbers"};
  constexpr uint64_t kMixer = 0x02461e293ec8f720;
  const Philox::Block mixed = Philox(kMixer, uint64_t(int64_t(seed[1]))).After(uint64_t(int64_t(seed[0]))).Next();
  const auto joined = [&mixed](int low) { return uint64_t(mixed[size_t(low) + 1]) << 32 | mixed[size_t(low)]; };
  key[0] = joined(0);
  counter[0] = 0;
  counter[1] = joined(2);
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
