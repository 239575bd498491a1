// Chains of operations, compiled once per instruction set. The loop switches on each step once per
// block of vectors; that costs as much as a few additions.
#include "fuse/chain.h"
#include "kernels/simd.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

constexpr int kBlock = 8;  // vectors that stay in registers

template <class T>
inline Vec<T> Root(Vec<T> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm512_sqrt_ps((__m512)v);
  else
    return (Vec<T>)_mm512_sqrt_pd((__m512d)v);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm256_sqrt_ps((__m256)v);
  else
    return (Vec<T>)_mm256_sqrt_pd((__m256d)v);
#else
  for (int i = 0; i < kLanes<T>; ++i) {
    if constexpr (sizeof(T) == 4)
      v[i] = __builtin_sqrtf(v[i]);
    else
      v[i] = __builtin_sqrt(v[i]);
  }
  return v;
#endif
}

template <class T>
inline Vec<T> Size(Vec<T> v) {
  using Index = typename Simd<T>::Index;
  const Index sign = (Index)Splat(T(-0.0)), bits = (Index)v;
  return (Vec<T>)(bits & ~sign);
}

// Compute a > b ? a : b and a < b ? a : b in one instruction each; compilers do not find these
// instructions.
template <class T>
inline Vec<T> Greater(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm512_max_ps((__m512)a, (__m512)b);
  else
    return (Vec<T>)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm256_max_ps((__m256)a, (__m256)b);
  else
    return (Vec<T>)_mm256_max_pd((__m256d)a, (__m256d)b);
#else
  return a > b ? a : b;
#endif
}
template <class T>
inline Vec<T> Lesser(Vec<T> a, Vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm512_min_ps((__m512)a, (__m512)b);
  else
    return (Vec<T>)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm256_min_ps((__m256)a, (__m256)b);
  else
    return (Vec<T>)_mm256_min_pd((__m256d)a, (__m256d)b);
#else
  return a < b ? a : b;
#endif
}

// NaN wins on either side.
template <class T>
inline Vec<T> Larger(Vec<T> a, Vec<T> b) {
  return a != a ? a : Greater<T>(a, b);
}
template <class T>
inline Vec<T> Smaller(Vec<T> a, Vec<T> b) {
  return a != a ? a : Lesser<T>(a, b);
}

// Computes a[v] = f(a[v], b) for the vectors of a block. With kFull the block is complete; else it
// has one vector with `rest` elements.
template <class T, bool kFull, class F>
inline void ForOperand(Vec<T>* a, const ChainStep& s, int64_t at, int rest, F&& f) {
  const T* b = static_cast<const T*>(s.b);
  if (s.repeats) {
    const Vec<T> all = Splat(*b);
#pragma GCC unroll 8
    for (int v = 0; v < (kFull ? kBlock : 1); ++v) a[v] = f(a[v], all);
  } else if constexpr (kFull) {
#pragma GCC unroll 8
    for (int v = 0; v < kBlock; ++v) a[v] = f(a[v], Load(b + at + v * kLanes<T>));
  } else {
    a[0] = f(a[0], LoadFirst(b + at, rest));
  }
}
template <class T, bool kFull, class F>
inline void ForEach(Vec<T>* a, F&& f) {
#pragma GCC unroll 8
  for (int v = 0; v < (kFull ? kBlock : 1); ++v) a[v] = f(a[v]);
}

template <class T, bool kFull>
inline __attribute__((always_inline)) void Block(const T* x, const ChainStep* steps, int n_steps, T* y, int64_t at, int rest) {
  using V = Vec<T>;
  const V zero{}, one = Splat(T(1)), six = Splat(T(6));
  V a[kBlock];
  if constexpr (kFull) {
#pragma GCC unroll 8
    for (int v = 0; v < kBlock; ++v) a[v] = Load(x + at + v * kLanes<T>);
  } else {
    a[0] = LoadFirst(x + at, rest);
  }
  for (int i = 0; i < n_steps; ++i) {
    const ChainStep& s = steps[i];
    auto each = [&](auto&& f) { ForEach<T, kFull>(a, f); };
    auto with = [&](auto&& f) { ForOperand<T, kFull>(a, s, at, rest, f); };
    switch (s.link) {
      case Link::kNeg: each([](V u) { return -u; }); break;
      case Link::kAbs: each([](V u) { return Size<T>(u); }); break;
      case Link::kSquare: each([](V u) { return u * u; }); break;
      case Link::kSqrt: each([](V u) { return Root<T>(u); }); break;
      case Link::kRsqrt: each([&](V u) { return one / Root<T>(u); }); break;
      case Link::kReciprocal: each([&](V u) { return one / u; }); break;
      case Link::kRelu: each([&](V u) { return Greater<T>(zero, u); }); break;
      case Link::kRelu6: each([&](V u) { return Lesser<T>(six, Greater<T>(zero, u)); }); break;
      case Link::kAdd: with([](V u, V b) { return u + b; }); break;
      case Link::kMul: with([](V u, V b) { return u * b; }); break;
      case Link::kSquaredDifference: with([](V u, V b) { return (u - b) * (u - b); }); break;
      case Link::kSub: with([](V u, V b) { return u - b; }); break;
      case Link::kDiv: with([](V u, V b) { return u / b; }); break;
      case Link::kMaximum: with([](V u, V b) { return Larger<T>(u, b); }); break;
      case Link::kMinimum: with([](V u, V b) { return Smaller<T>(u, b); }); break;
      case Link::kSubFrom: with([](V u, V b) { return b - u; }); break;
      case Link::kDivInto: with([](V u, V b) { return b / u; }); break;
      case Link::kMaximumOf: with([](V u, V b) { return Larger<T>(b, u); }); break;
      case Link::kMinimumOf: with([](V u, V b) { return Smaller<T>(b, u); }); break;
    }
  }
  if constexpr (kFull) {
#pragma GCC unroll 8
    for (int v = 0; v < kBlock; ++v) Store(y + at + v * kLanes<T>, a[v]);
  } else {
    StoreFirst(y + at, a[0], rest);
  }
}

template <class T>
void Chain(const void* x, const ChainStep* steps, int n_steps, void* y, int64_t n) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  constexpr int64_t kStep = kBlock * kLanes<T>;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) Block<T, true>(from, steps, n_steps, to, i, 0);
  for (; i < n; i += kLanes<T>) Block<T, false>(from, steps, n_steps, to, i, n - i < kLanes<T> ? int(n - i) : kLanes<T>);
}

}  // namespace

const ChainTable& Chains() {
  static constexpr ChainTable table = {Chain<float>, Chain<double>};
  return table;
}

}  // namespace thalweg::cpu::THALWEG_ISA
