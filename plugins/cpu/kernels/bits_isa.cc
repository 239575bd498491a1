// Shifts and choices, built once per instruction set: the baseline has neither shifts by a vector
// of amounts nor wide masks.
#include "kernels/bits.h"

// The output may be an input, but no element depends on another, so the compiler need not check for
// overlap.
#if defined(__GNUC__) && !defined(__clang__)
#define THALWEG_ONE_BY_ONE _Pragma("GCC ivdep")
#else
#define THALWEG_ONE_BY_ONE
#endif

namespace thalweg::cpu::THALWEG_ISA {
namespace {

template <class T>
struct UnsignedOf;
template <>
struct UnsignedOf<int8_t> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<int16_t> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<int32_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<int64_t> {
  using type = uint64_t;
};

// Clamps an amount below 0 or beyond the type's bits to the nearest valid amount.
template <class T>
T Amount(T y) {
  constexpr T kMost = T(sizeof(T) * 8 - 1);
  return y < T(0) ? T(0) : y > kMost ? kMost : y;
}

struct Left {
  template <class T>
  static T Of(T x, T y) {
    if constexpr (T(-1) < T(0))
      return T(typename UnsignedOf<T>::type(x) << Amount(y));
    else
      return T(x << Amount(y));
  }
};
struct Right {
  template <class T>
  static T Of(T x, T y) {
    return T(x >> Amount(y));
  }
};

template <class Shift, class T>
int64_t Run(const void* x, int64_t x_step, const void* y, int64_t y_step, void* z, int64_t n) {
  auto* a = static_cast<const T*>(x);
  auto* b = static_cast<const T*>(y);
  auto* to = static_cast<T*>(z);
  if (x_step && y_step) {
    THALWEG_ONE_BY_ONE
    for (int64_t i = 0; i < n; ++i) to[i] = Shift::Of(a[i], b[i]);
  } else if (x_step) {
    const T c = *b;
    THALWEG_ONE_BY_ONE
    for (int64_t i = 0; i < n; ++i) to[i] = Shift::Of(a[i], c);
  } else {
    const T c = *a;
    THALWEG_ONE_BY_ONE
    for (int64_t i = 0; i < n; ++i) to[i] = Shift::Of(c, b[i]);
  }
  return n;
}

// Uses masks, because a compiler turns a condition into a branch, and the processor mispredicts it
// for random data. Reads bools as numbers, because the compiler does not vectorise loops over bool.
template <class T>
void Choose(const bool* c, const void* t, const void* e, void* to, int64_t n) {
  auto* a = static_cast<const T*>(t);
  auto* b = static_cast<const T*>(e);
  auto* z = static_cast<T*>(to);
  auto* chosen = reinterpret_cast<const uint8_t*>(c);
  THALWEG_ONE_BY_ONE
  for (int64_t i = 0; i < n; ++i) {
    const T mask = T(0 - T(chosen[i] != 0));  // any nonzero byte stands for true
    z[i] = T((a[i] & mask) | (b[i] & T(~mask)));
  }
}

template <class Shift, class T>
constexpr BinaryKernel kShift{Run<Shift, T>, sizeof(T), sizeof(T), 1, nullptr, nullptr};

}  // namespace

const BitsTable& Bits() {
  static constexpr BitsTable t{{kShift<Left, int8_t>, kShift<Left, int16_t>, kShift<Left, int32_t>, kShift<Left, int64_t>,
                                kShift<Left, uint8_t>, kShift<Left, uint16_t>, kShift<Left, uint32_t>, kShift<Left, uint64_t>},
                               {kShift<Right, int8_t>, kShift<Right, int16_t>, kShift<Right, int32_t>, kShift<Right, int64_t>,
                                kShift<Right, uint8_t>, kShift<Right, uint16_t>, kShift<Right, uint32_t>, kShift<Right, uint64_t>},
                               {Choose<uint8_t>, Choose<uint16_t>, Choose<uint32_t>, Choose<uint64_t>}};
  return t;
}

}  // namespace thalweg::cpu::THALWEG_ISA
