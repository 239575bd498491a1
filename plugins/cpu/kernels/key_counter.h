// The random bits of a node that depend on its inputs alone: a key, a counter and the number of the
// generator, or a seed from which these follow.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_KEY_COUNTER_H_
#define THALWEG_PLUGINS_CPU_KERNELS_KEY_COUNTER_H_

#include "kernels/common/element.h"
#include "kernels/philox.h"
#include "kernels/seed_key.h"

namespace thalweg::cpu {

// The values of an op's input `alg`. If the runtime may choose (kAny), it takes Philox.
enum Algorithm { kPhilox = 1, kThreefry = 2, kAny = 3 };

inline Philox StreamOf(const tw::In<uint64_t>& key, const tw::In<uint64_t>& counter, const tw::In<int32_t>& alg) {
  if (key.rank() != 1 || key.size() != 1) throw tw::Error{TW_INTERNAL, "key " + DimsText(key.v) + " must be a vector of one number"};
  if (counter.rank() != 1 || counter.size() < 2)
    throw tw::Error{TW_INTERNAL, "counter " + DimsText(counter.v) + " must be a vector of two numbers at least"};
  if (alg.size() != 1) throw tw::Error{TW_INTERNAL, "alg " + DimsText(alg.v) + " must be a scalar"};
  if (alg[0] == kThreefry) throw tw::Error{TW_UNIMPLEMENTED, "alg 2 (Threefry) is not offered; use 1 (Philox) or 3 (any)"};
  if (alg[0] != kPhilox && alg[0] != kAny) Invalid("alg is " + tw::text(alg[0]) + "; known: 1 (Philox), 3 (any)");
  return Philox(key[0], counter[1]).After(counter[0]);
}

inline Philox StreamOf(const tw::In<tw::Any>& seed) {
  if (seed.rank() != 1 || seed.size() != 2) throw tw::Error{TW_INTERNAL, "seed " + DimsText(seed.v) + " must be a vector of two numbers"};
  const SeedKey made = KeyOf(IndexAt(seed.v, 0), IndexAt(seed.v, 1));
  return Philox(made.key, made.counter);
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_KEY_COUNTER_H_
