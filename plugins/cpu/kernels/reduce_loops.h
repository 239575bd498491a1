// The loops of reduce.h for one way of combining and one element type. Everything is in an unnamed
// namespace on purpose: objects of different instruction sets include this and must not share a
// function.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_REDUCE_LOOPS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_REDUCE_LOOPS_H_

#include <limits>

#include "kernels/reduce.h"

namespace thalweg::cpu {
namespace {

// Ways of combining. kStart is the result of no elements. Step adds an element. Merge joins two
// accumulators.
template <class Acc>
struct Summing {
  static constexpr Acc kStart = 0;
  template <class T>
  static Acc Step(Acc a, T x) {
    return static_cast<Acc>(a + static_cast<Acc>(x));
  }
  static Acc Merge(Acc a, Acc b) { return static_cast<Acc>(a + b); }
};
template <class Acc>
struct SummingSquares : Summing<Acc> {
  template <class T>
  static Acc Step(Acc a, T x) {
    return static_cast<Acc>(a + static_cast<Acc>(x) * static_cast<Acc>(x));
  }
};
template <class Acc>
struct Multiplying {
  static constexpr Acc kStart = 1;
  template <class T>
  static Acc Step(Acc a, T x) {
    return static_cast<Acc>(a * static_cast<Acc>(x));
  }
  static Acc Merge(Acc a, Acc b) { return static_cast<Acc>(a * b); }
};
// NaN wins. If the type has no infinity, its extreme number stands for it.
template <class Acc>
constexpr Acc kTop = std::numeric_limits<Acc>::has_infinity ? std::numeric_limits<Acc>::infinity() : std::numeric_limits<Acc>::max();
template <class Acc>
constexpr Acc kBottom = std::numeric_limits<Acc>::has_infinity ? -std::numeric_limits<Acc>::infinity() : std::numeric_limits<Acc>::lowest();
template <class Acc>
struct Largest {
  static constexpr Acc kStart = kBottom<Acc>;
  static Acc Step(Acc a, Acc x) { return x < a || a != a ? a : x; }
  static Acc Merge(Acc a, Acc b) { return Step(a, b); }
};
template <class Acc>
struct Smallest {
  static constexpr Acc kStart = kTop<Acc>;
  static Acc Step(Acc a, Acc x) { return a < x || a != a ? a : x; }
  static Acc Merge(Acc a, Acc b) { return Step(a, b); }
};

// T: the element type. Lane: the type in which a row is summed. A row has kLanes sums side by side,
// so the compiler can vectorise without a change in the order of additions, which is the same for
// every vector length. Acc: the type in which rows and blocks are summed.
template <class T, class Acc, class Way, class Lane = Acc, class LaneWay = Way>
struct ReduceLoops {
  static constexpr int kLanes = 32;

  static void Start(void* acc, int64_t n) {
    auto* a = static_cast<Acc*>(acc);
    for (int64_t j = 0; j < n; ++j) a[j] = Way::kStart;
  }
  static void TakeRow(const void* x, int64_t n, void* acc) {
    auto* from = static_cast<const T*>(x);
    auto* a = static_cast<Acc*>(acc);
    int64_t i = 0;
    if (n >= kLanes) {
      Lane lane[kLanes];
      for (int l = 0; l < kLanes; ++l) lane[l] = LaneWay::kStart;
      for (; i + kLanes <= n; i += kLanes)
        for (int l = 0; l < kLanes; ++l) lane[l] = LaneWay::Step(lane[l], from[i + l]);
      for (int half = kLanes / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) lane[l] = LaneWay::Merge(lane[l], lane[l + half]);
      *a = Way::Merge(*a, static_cast<Acc>(lane[0]));
    }
    for (; i < n; ++i) *a = Way::Step(*a, from[i]);
  }
  static void TakeRows(const void* x, int64_t n, int64_t stride, int64_t rows, void* acc) {
    auto* from = static_cast<const T*>(x);
    auto* a = static_cast<Acc*>(acc);
    for (int64_t i = 0; i < rows; ++i, from += stride)
      for (int64_t j = 0; j < n; ++j) a[j] = Way::Step(a[j], from[j]);
  }
  static void Merge(const void* from, int64_t n, void* acc) {
    auto* b = static_cast<const Acc*>(from);
    auto* a = static_cast<Acc*>(acc);
    for (int64_t j = 0; j < n; ++j) a[j] = Way::Merge(a[j], b[j]);
  }
};

template <class T, class Acc>
void FinishPlain(const void* acc, int64_t n, int64_t, void* y) {
  auto* a = static_cast<const Acc*>(acc);
  auto* to = static_cast<T*>(y);
  for (int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(a[j]);
}
// The mean of no elements is NaN, or 0 for integers, which have no NaN. Integers are summed as
// unsigned numbers, so overflow wraps around.
template <class T, class Acc>
void FinishMean(const void* acc, int64_t n, int64_t count, void* y) {
  auto* a = static_cast<const Acc*>(acc);
  auto* to = static_cast<T*>(y);
  for (int64_t j = 0; j < n; ++j) {
    if constexpr (!std::numeric_limits<T>::is_integer)
      to[j] = static_cast<T>(a[j] / static_cast<Acc>(count));
    else if (count == 0)
      to[j] = 0;
    else if constexpr (std::numeric_limits<T>::is_signed)
      to[j] = static_cast<T>(static_cast<int64_t>(a[j]) / count);
    else
      to[j] = static_cast<T>(a[j] / static_cast<Acc>(count));
  }
}
template <class T, class Acc>
void FinishHalf(const void* acc, int64_t n, int64_t, void* y) {
  auto* a = static_cast<const Acc*>(acc);
  auto* to = static_cast<T*>(y);
  for (int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(a[j] / 2);
}

template <class T, class Acc>
void FinishRoot(const void* acc, int64_t n, int64_t, void* y) {
  auto* a = static_cast<const Acc*>(acc);
  auto* to = static_cast<T*>(y);
  for (int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(__builtin_sqrt(a[j]));
}

template <class T, class Acc, class Loops>
constexpr ReduceKernel MakeReduce(void (*finish)(const void*, int64_t, int64_t, void*) = FinishPlain<T, Acc>) {
  return {sizeof(T), sizeof(T), sizeof(Acc), Loops::Start, Loops::TakeRow, Loops::TakeRows, Loops::Merge, finish, nullptr, nullptr};
}

}  // namespace
}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_REDUCE_LOOPS_H_
