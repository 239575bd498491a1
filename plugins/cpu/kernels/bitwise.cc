// Integers as bits: and, or, exclusive or, complement, shifts. A shift amount is between 0 and one
// less than the type's bits; amounts outside are clamped to that range, as in TensorFlow. Right
// shifts keep the sign of signed numbers.
#include "kernels/bits.h"
#include "kernels/map.h"
#include "kernels/register.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

template <auto kFunction>
void Add(tw::Plugin& p, const char* op) {
  AddZip<kFunction, 1, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p, op);
}

template <class... T>
void AddShiftOf(tw::Plugin& p, const char* op, const BinaryKernel* k) {
  (AddBinary(p, op, tw::dtype<T>, "", *k++), ...);
}
void AddShift(tw::Plugin& p, const char* op, const BinaryKernel* k) {
  AddShiftOf<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p, op, k);
}

}  // namespace

void register_bitwise(tw::Plugin& p) {
  Add<[](auto x, auto y) { return static_cast<decltype(x)>(x & y); }>(p, "BitwiseAnd");
  Add<[](auto x, auto y) { return static_cast<decltype(x)>(x | y); }>(p, "BitwiseOr");
  Add<[](auto x, auto y) { return static_cast<decltype(x)>(x ^ y); }>(p, "BitwiseXor");
  const BitsTable& t = TW_CPU_FOR_ISA(DetectIsa(p.h), Bits);
  AddShift(p, "LeftShift", t.left_shift);
  AddShift(p, "RightShift", t.right_shift);
  AddMap<[](auto x) { return static_cast<decltype(x)>(~x); }, 1, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      p, "Invert");
}

}  // namespace thalweg::cpu
