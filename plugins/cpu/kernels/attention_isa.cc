// Rows of attention scores, compiled once per instruction set. The last elements of a row are
// padded to a whole packet and take the same path as all others. Sums run in the lanes of one
// packet and then across the lanes.
#include <math.h>
#include <string.h>

#include <Eigen/Core>

#include "kernels/attention.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

namespace packet = Eigen::internal;
template <class T>
using Packet = typename packet::packet_traits<T>::type;
template <class T>
constexpr int kLanes = packet::packet_traits<T>::size;

template <class T>
constexpr T kInf = __builtin_huge_val();
// Below this argument the exponential is less than the smallest normal number, which is negligible
// beside the row's largest, 1.
template <class T>
constexpr T kNothingBelow = sizeof(T) == sizeof(float) ? T(-87.3) : T(-708.3);

inline float ExpOne(float x) { return expf(x); }
inline double ExpOne(double x) { return exp(x); }

template <class T>
Packet<T> Splat(T x) {
  return packet::pset1<Packet<T>>(x);
}

// Returns the n elements at x, n below kLanes, with `rest` in the other lanes.
template <class T>
Packet<T> First(const T* x, int64_t n, T rest) {
  T lanes[kLanes<T>];
  for (T& lane : lanes) lane = rest;
  memcpy(lanes, x, size_t(n) * sizeof(T));
  return packet::ploadu<Packet<T>>(lanes);
}
template <class T>
void StoreFirst(T* y, const Packet<T>& v, int64_t n) {
  T lanes[kLanes<T>];
  packet::pstoreu(lanes, v);
  memcpy(y, lanes, size_t(n) * sizeof(T));
}

// Eigen's pexp clamps its argument, so it turns -infinity into a positive number and NaN into a
// number. This corrects both.
template <class T>
Packet<T> Exp(const Packet<T>& x) {
  const Packet<T> y = packet::pselect(packet::pcmp_lt(x, Splat(kNothingBelow<T>)), Splat(T(0)), packet::pexp(x));
  return packet::pselect(packet::pcmp_eq(x, x), y, x);
}

// Computes exp(s - shift) in place, and returns the sum of the row.
template <class T>
T ExpRow(T* s, T shift, int64_t n) {
  constexpr int L = kLanes<T>;
  const Packet<T> less = Splat(shift);
  Packet<T> sum = Splat(T(0));
  int64_t c = 0;
  for (; c + L <= n; c += L) {
    const Packet<T> y = Exp<T>(packet::psub(packet::ploadu<Packet<T>>(s + c), less));
    packet::pstoreu(s + c, y);
    sum = packet::padd(sum, y);
  }
  if (c < n) {
    const Packet<T> y = Exp<T>(packet::psub(First(s + c, n - c, -kInf<T>), less));
    StoreFirst<T>(s + c, y, n - c);
    sum = packet::padd(sum, y);
  }
  return packet::predux(sum);
}

template <class T>
T Largest(const T* s, int64_t n) {
  constexpr int L = kLanes<T>;
  Packet<T> most = Splat(-kInf<T>);
  int64_t c = 0;
  for (; c + L <= n; c += L) most = packet::pmax(most, packet::ploadu<Packet<T>>(s + c));
  if (c < n) most = packet::pmax(most, First(s + c, n - c, -kInf<T>));
  return packet::predux_max(most);
}

template <class T>
void Add(const T* x, int64_t x_step, T* __restrict y, int64_t n) {
  if (x_step) {
    for (int64_t c = 0; c < n; ++c) y[c] += x[c];
  } else {
    const T all = *x;
    for (int64_t c = 0; c < n; ++c) y[c] += all;
  }
}

template <class T>
void Grow(const ScoreRows& of, T* s, T* most, T* sum, T* keep) {
  for (int64_t r = 0; r < of.rows; ++r, s += of.step) {
    const T here = Largest(s, of.columns), now = most[r] < here ? here : most[r], shift = now == -kInf<T> ? T(0) : now;
    keep[r] = ExpOne(most[r] - shift);
    sum[r] = sum[r] * keep[r] + ExpRow(s, shift, of.columns);
    most[r] = now;
  }
}

template <class T>
void Shares(const ScoreRows& of, T* s, const T* shift) {
  for (int64_t r = 0; r < of.rows; ++r, s += of.step) {
    if (shift[r] == -kInf<T>)
      for (int64_t c = 0; c < of.columns; ++c) s[c] = 0;
    else
      ExpRow(s, shift[r], of.columns);
  }
}

template <class T>
void Slopes(const ScoreRows& of, const T* p, T* __restrict to, const T* shift) {
  for (int64_t r = 0; r < of.rows; ++r, p += of.step, to += of.step)
    for (int64_t c = 0; c < of.columns; ++c) to[c] = p[c] * (to[c] - shift[r]);
}

template <class T>
void AddRows(int64_t rows, int64_t columns, const T* x, const T* keep, T* __restrict y) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const T by = keep ? keep[r] : T(1);
    for (int64_t c = 0; c < columns; ++c) y[c] = y[c] * by + x[c];
  }
}

template <class T>
void Scale(const T* x, T factor, T* y, int64_t n) {
  for (int64_t c = 0; c < n; ++c) y[c] = x[c] * factor;
}

template <class T>
T Dot(const T* x, const T* y, int64_t n) {
  constexpr int L = kLanes<T>;
  Packet<T> sum = Splat(T(0));
  int64_t c = 0;
  for (; c + L <= n; c += L) sum = packet::pmadd(packet::ploadu<Packet<T>>(x + c), packet::ploadu<Packet<T>>(y + c), sum);
  if (c < n) sum = packet::pmadd(First(x + c, n - c, T(0)), First(y + c, n - c, T(0)), sum);
  return packet::predux(sum);
}

template <class T>
constexpr AttentionEntries<T> kEntries = {Add<T>, Grow<T>, Shares<T>, Slopes<T>, AddRows<T>, Scale<T>, Dot<T>};

}  // namespace

const AttentionTable& Attention() {
  static constexpr AttentionTable table = {kEntries<float>, kEntries<double>};
  return table;
}

}  // namespace thalweg::cpu::THALWEG_ISA
