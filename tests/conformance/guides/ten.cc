// Ten small ops of different kinds, as one plugin: the kit checks it in the time that plugins/first_op.md
// promises. Written from that guide and the public headers alone.
#include <cmath>
#include <string>
#include <vector>

#include "thalweg/cpp/plugin.hpp"

namespace {

// ---- Element by element ----

template <class T>
struct Softshrink {
  T by;
  explicit Softshrink(const tw::Node& n) : by(T(n.f("by"))) {}
  void operator()(tw::In<T> x, tw::Out<T> y) const {
    for (uint64_t i = 0; i < x.size(); ++i) y[i] = x[i] > by ? x[i] - by : x[i] < -by ? x[i] + by : 0;
  }
};

void SoftshrinkGradient(const tw::Grad& g) {
  const tw_edge same = g.op("Equal", {g.y(), g.scalar(0)});
  g.dx(0, g.op("SelectV2", {same, g.op("ZerosLike", {g.dy()}), g.dy()}));
}

// |x| - log 2 + log(1 + exp(-2 |x|)), which does not overflow.
template <class T>
void LogCosh(tw::In<T> x, tw::Out<T> y) {
  for (uint64_t i = 0; i < x.size(); ++i) {
    const T size = std::fabs(x[i]);
    y[i] = size - T(0.69314718055994530942) + std::log1p(std::exp(-2 * size));
  }
}

void LogCoshGradient(const tw::Grad& g) { g.dx(0, g.op("Mul", {g.dy(), g.op("Tanh", {g.x(0)})})); }

template <class T>
void Lerp(tw::In<T> a, tw::In<T> b, tw::In<T> t, tw::Out<T> y) {
  for (uint64_t i = 0; i < y.size(); ++i) y[i] = a[i] + t[0] * (b[i] - a[i]);
}

void LerpGradient(const tw::Grad& g) {
  const tw_edge part = g.op("Mul", {g.dy(), g.x(2)});
  g.dx(0, g.op("Sub", {g.dy(), part}));
  g.dx(1, part);
  const tw_edge all = g.op("Reshape", {g.op("Mul", {g.dy(), g.op("Sub", {g.x(1), g.x(0)})}), g.ints({-1})});
  g.dx(2, g.op("Sum", {all, g.ints({0})}));
}

// ---- Vectors and matrices ----

template <class T>
void RowSums(tw::In<T> x, tw::Out<T> sums) {
  const auto depth = uint64_t(x.dim(1));
  for (uint64_t i = 0; i < sums.size(); ++i) {
    T sum = 0;
    for (uint64_t k = 0; k < depth; ++k) sum += x[i * depth + k];
    sums[i] = sum;
  }
}

void RowSumsGradient(const tw::Grad& g) { g.dx(0, g.op("BroadcastTo", {g.op("ExpandDims", {g.dy(), g.ints({1})}), g.shape(0)})); }

template <class T>
struct Rotate {
  int64_t by;
  explicit Rotate(const tw::Node& n) : by(n.i("by")) {}
  void operator()(tw::In<T> x, tw::Out<T> y) const {
    const auto n = int64_t(x.size());
    if (n == 0) return;
    for (int64_t i = 0, to = (by % n + n) % n; i < n; ++i, to = to + 1 == n ? 0 : to + 1) y[uint64_t(to)] = x[uint64_t(i)];
  }
};

void RotateGradient(const tw::Grad& g) {
  const tw_edge back = g.op("Roll", {g.dy(), g.ints({-g.i("by")}, TW_INT64), g.ints({0})});
  g.dx(0, back);
}

template <class T>
void Cumulate(tw::In<T> x, tw::Out<T> y) {
  T sum = 0;
  for (uint64_t i = 0; i < x.size(); ++i) y[i] = sum += x[i];
}

void CumulateGradient(const tw::Grad& g) { g.dx(0, g.op("Cumsum", {g.dy(), g.scalar(0, TW_INT32)}, {{"reverse", true}})); }

// ---- Lists, whole numbers, texts ----

void Interleave(tw::Many<float> x, tw::Out<float> y) {
  for (uint32_t k = 0; k < x.size(); ++k) {
    for (uint64_t i = 0; i < x[k].size(); ++i) y[i * x.size() + k] = x[k][i];
  }
}

void InterleaveRule(const tw::Shape& s) { s.out(0, {s.known(0) ? s.calc('*', s.dim(0, 0), s.many(0)) : -1}); }

void CountEqual(tw::In<int64_t> x, tw::In<int64_t> value, tw::Out<int64_t> count) {
  int64_t n = 0;
  for (uint64_t i = 0; i < x.size(); ++i) n += x[i] == value[0];
  count[0] = n;
}

void Parity(tw::In<int32_t> x, tw::Out<bool> odd) {
  for (uint64_t i = 0; i < x.size(); ++i) odd[i] = (x[i] & 1) != 0;
}

void Capitals(tw::In<tw_string> x, tw::Out<tw_string> y) {
  for (uint64_t i = 0; i < x.size(); ++i) {
    std::string text(x[i].data, x[i].size);
    for (char& c : text) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
    y.set(i, text);
  }
}

}  // namespace

TW_CPP_PLUGIN("org.example.ten", "1.0", p) {
  p.op<SoftshrinkGradient>(
      "Softshrink(x: T[*s]) -> (y: T[*s]); T: {float, double}; by: float = 0.5; ?elementwise; doc \"x, nearer to 0 by `by`\"");
  p.kernel<Softshrink<float>, Softshrink<double>>("Softshrink @CPU; inplace y=x");
  p.op<LogCoshGradient>("LogCosh(x: T[*s]) -> (y: T[*s]); T: {float, double}; ?elementwise; doc \"log(cosh(x))\"");
  p.kernel<LogCosh<float>, LogCosh<double>>("LogCosh @CPU; inplace y=x");
  p.op<LerpGradient>("Lerp(a: T[*s], b: T[*s], t: T[]) -> (y: T[*s]); T: {float, double}; doc \"from a to b by the part t\"");
  p.kernel<Lerp<float>, Lerp<double>>("Lerp @CPU; inplace y=a");
  p.op<RowSumsGradient>("RowSums(x: T[n, d]) -> (sums: T[n]); T: {float, double}; doc \"the sum of each row\"");
  p.kernel<RowSums<float>, RowSums<double>>("RowSums @CPU");
  p.op<RotateGradient>("Rotate(x: T[n]) -> (y: T[n]); T: {float, double}; by: int = 1; doc \"x, moved round by `by` places\"");
  p.kernel<Rotate<float>, Rotate<double>>("Rotate @CPU");
  p.op<CumulateGradient>("Cumulate(x: T[n]) -> (y: T[n]); T: {float, double}; doc \"running sums\"");
  p.kernel<Cumulate<float>, Cumulate<double>>("Cumulate @CPU; inplace y=x");
  p.op<nullptr, InterleaveRule>(
      "Interleave(x: float[n] * N) -> (y: float); N: int >= 1; no_gradient \"an exercise\"; doc \"one element of each in turn\"");
  p.kernel<Interleave>("Interleave @CPU");
  p.op("CountEqual(x: int64[*s], value: int64[]) -> (count: int64[]); no_gradient \"it counts\"; doc \"how many elements are the value\"");
  p.kernel<CountEqual>("CountEqual @CPU");
  p.op("Parity(x: int32[*s]) -> (odd: bool[*s]); no_gradient \"whole numbers\"; doc \"which elements are odd\"");
  p.kernel<Parity>("Parity @CPU");
  p.op("Capitals(x: string[*s]) -> (y: string[*s]); no_gradient \"text\"; doc \"ASCII letters as capitals\"");
  p.kernel<Capitals>("Capitals @CPU");
}
