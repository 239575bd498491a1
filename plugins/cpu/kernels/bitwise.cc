// Whole numbers as bits: and, or, exclusive or, complement, shifts. A shift is by 0 bits at least and by one less than the type has at
// most: smaller and larger amounts count as these, as in TensorFlow. Right shifts keep the sign of signed numbers.
#include <algorithm>

#include "kernels/map.h"
#include "kernels/register.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

template <class T>
constexpr int Amount(T y) {
  constexpr int kMost = int(sizeof(T)) * 8 - 1;
  return y < 0 ? 0 : int(std::min<uint64_t>(uint64_t(y), kMost));
}

template <auto kFunction>
void Add(tw::Plugin& p, const char* op) {
  AddZip<kFunction, 1, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p, op);
}

}  // namespace

void register_bitwise(tw::Plugin& p) {
  Add<[](auto x, auto y) { return static_cast<decltype(x)>(x & y); }>(p, "BitwiseAnd");
  Add<[](auto x, auto y) { return static_cast<decltype(x)>(x | y); }>(p, "BitwiseOr");
  Add<[](auto x, auto y) { return static_cast<decltype(x)>(x ^ y); }>(p, "BitwiseXor");
  Add<[](auto x, auto y) { return static_cast<decltype(x)>(Wrap(x) << Amount(y)); }>(p, "LeftShift");
  Add<[](auto x, auto y) { return static_cast<decltype(x)>(x >> Amount(y)); }>(p, "RightShift");
  AddMap<[](auto x) { return static_cast<decltype(x)>(~x); }, 1, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      p, "Invert");
}

}  // namespace thalweg::cpu
