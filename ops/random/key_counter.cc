#include "ops/random/key_counter.h"

namespace thalweg::ops {
namespace {

constexpr int64_t kThreefry = 2;  // its number in `alg`; its counter has one entry, that of Philox two

}  // namespace

void CheckKeyCounter(const tw::Shape& s, uint32_t first) {
  const uint32_t key = first, counter = first + 1;
  WantVector(s, key, "key");
  WantVector(s, counter, "counter");
  const std::optional<int64_t> alg = ScalarValue(s, first + 2, "alg");
  if (s.known(key) && Known(s.dim(key, 0)) && s.dim(key, 0) != 1) Fail("'key' is " + tw::text(s.in(key)) + "; it must hold one number");
  if (s.known(counter) && Known(s.dim(counter, 0)) && s.dim(counter, 0) < (alg == kThreefry ? 1 : 2))
    Fail("'counter' is " + tw::text(s.in(counter)) + "; it must hold two numbers at least");
}

void CheckSeed(const tw::Shape& s, uint32_t i) {
  WantVector(s, i, "seed");
  if (s.known(i) && Known(s.dim(i, 0)) && s.dim(i, 0) != 2) Fail("'seed' is " + tw::text(s.in(i)) + "; it must hold two numbers");
}

MaybeDims EndingWith(const tw::Shape& s, MaybeDims dims, uint32_t i, const std::string& name) {
  const MaybeDims last = In(s, i);
  if (!dims || !last) return dims;
  bool fits = last->size() <= dims->size();
  const size_t lead = fits ? dims->size() - last->size() : 0;
  for (size_t k = 0; fits && k < last->size(); ++k)
    fits = !Known((*dims)[lead + k]) || !Known((*last)[k]) || (*dims)[lead + k] == (*last)[k];
  if (!fits) Fail("'shape' is " + Text(dims) + ", which does not end with the shape " + Text(last) + " of '" + name + "'");
  return dims;  // unknown sizes stay unknown, so that the step checks the value of the shape
}

}  // namespace thalweg::ops
