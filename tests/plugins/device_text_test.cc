// The source text that devices share (plugins/common/device), compiled for the host. Compares its
// functions with the C library, and its index arithmetic and loops with plain ones.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace thalweg {
namespace {

using Size = int64_t;
#define JOIN_AGAIN(a, b) a##b
#define JOIN(a, b) JOIN_AGAIN(a, b)
#define FUNCTION [[maybe_unused]] static inline
#define KERNEL(name) [[maybe_unused]] static void name
#define GLOBAL
#define INDEPENDENT
#define STORED(kind) JOIN(type_, kind)
#define COMPUTED(kind) JOIN(type_, kind)
#define WRAPPING(kind) JOIN(type_, kind)
#define GET(kind, p, i) (p)[i]
#define PUT(kind, p, i, v) ((p)[i] = (v))
#define IN(kind, x) const STORED(kind) * x, Size x##_at
#define OUT(kind, x) STORED(kind) * x, Size x##_at
#define BEGIN(x) x += x##_at
#define COLUMNS 4
#define FOR_EACH(i, n) for (Size i = 0; i < (n); ++i)
#define FOR_RUNS(begin, end, n) for (Size begin = 0, end = (n) < 7 ? (n) : 7; begin < (n); begin = end, end = (n) < end + 7 ? (n) : end + 7)
using type_float = float;
using type_int64 = int64_t;
using std::exp, std::log, std::sqrt, std::tan, std::rint, std::copysign, std::isinf;

#include "walk.h"
#define T float
#define R float
#define LEAST -INFINITY
#define FIRST 0
#define JOIN_TWO(a, b) ((a) + (b))
#define TAKE(v) (v)
#define LAST(v) ((void)count, (v))
#define REDUCE_ROWS
#define REDUCE_COLUMNS
#define ALONE -1
#include "copy.h"
#include "mirror_grad.h"
#include "reduce.h"
#include "scan.h"
#include "segment.h"
#include "special.h"
#define I int64
#define W float
#define RUN 4
#define AHEAD(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#include "sort.h"
#include "sparse_product.h"
#include "weighted.h"
#undef LANES
#include "functions.h"
#include "updates.h"
#include "window.h"
// After it.
#include "volume.h"

std::vector<float> Numbers(size_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> v(n);
  for (float& x : v) x = normal(random);
  return v;
}

TEST(DeviceText, PlacesAreThoseOfNestedLoops) {
  const Axes axes{3, {4, 1, 5}};  // innermost first
  const Steps steps{{7, 100, -3}};
  for (Size c = 0, row = 0; c < 5; ++c)
    for (Size a = 0; a < 4; ++a, ++row) EXPECT_EQ(place(&axes, &steps, row), a * 7 - c * 3);
}

TEST(DeviceText, CopyTransposes) {
  const std::vector<float> x = Numbers(30);
  std::vector<float> y(30);
  copy(x.data(), 0, y.data(), 0, 30, 5, 6, 1, {1, {6}}, {{1}}, {{5}});
  for (size_t i = 0; i < 6; ++i)
    for (size_t j = 0; j < 5; ++j) EXPECT_EQ(y[i * 5 + j], x[j * 6 + i]);
}

TEST(DeviceText, SumsOfRowsAndColumnsAreWholeHoweverTheyAreCut) {
  const std::vector<float> x = Numbers(12 * 37);
  for (Size parts : {1, 3, 12}) {
    std::vector<float> rows(size_t(12 * parts)), columns(size_t(37 * parts));
    reduce_rows(x.data(), 0, rows.data(), 0, 12, parts, 1, 37, {1, {12}}, {{37}}, {0, {}}, {{}}, 37);
    reduce_columns(x.data(), 0, columns.data(), 0, 37, parts, 37, 12, {0, {}}, {{}}, {1, {12}}, {{37}}, 12);
    for (size_t i = 0; i < 12; ++i) {
      double wanted = 0, found = 0;
      for (size_t j = 0; j < 37; ++j) wanted += double(x[i * 37 + j]);
      for (size_t p = 0; p < size_t(parts); ++p) found += double(rows[p * 12 + i]);
      EXPECT_NEAR(found, wanted, 1e-4);
    }
    for (size_t j = 0; j < 37; ++j) {
      double wanted = 0, found = 0;
      for (size_t i = 0; i < 12; ++i) wanted += double(x[i * 37 + j]);
      for (size_t p = 0; p < size_t(parts); ++p) found += double(columns[p * 37 + j]);
      EXPECT_NEAR(found, wanted, 1e-4);
    }
  }
}

TEST(DeviceText, RunningSumsGoBothWays) {
  const float x[] = {1, 2, 3, 4};
  float y[4];
  scan(x, 0, y, 0, 1, 4, 1, 0, 0);
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{1, 3, 6, 10}));
  scan(x, 0, y, 0, 1, 4, 1, 1, 1);
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{9, 7, 4, 0}));
}

TEST(DeviceText, FoldingIsTheTransposeOfUnfolding) {
  const Window w{2, 5, 6, 3, 3, 3, 3, 3, 2, 2, 2, 1, 2, 1, 0};  // <unfold(x), y> = <x, fold(y)>
  const std::vector<float> x = Numbers(2 * 5 * 6 * 3), y = Numbers(2 * 3 * 3 * 3 * 2 * 3);
  std::vector<float> columns(y.size()), back(x.size());
  unfold(x.data(), 0, columns.data(), 0, w, 0, 2 * 3 * 3);
  fold(y.data(), 0, back.data(), 0, w, 0, 2);
  double a = 0, b = 0;
  for (size_t i = 0; i < y.size(); ++i) a += double(columns[i]) * double(y[i]);
  for (size_t i = 0; i < x.size(); ++i) b += double(x[i]) * double(back[i]);
  EXPECT_NEAR(a, b, 1e-3);
}

TEST(DeviceText, FoldingVolumesIsTheTransposeOfUnfoldingThem) {
  const Volume v{2, {4, 5, 3}, 3, {2, 4, 3}, {3, 2, 3}, {2, 1, 1}, {1, 2, 1}, {1, 0, 1}};
  const size_t windows = 2 * 2 * 4 * 3, taps = 3 * 2 * 3;
  const std::vector<float> x = Numbers(2 * 4 * 5 * 3 * 3), y = Numbers(windows * taps * 3);
  std::vector<float> columns(y.size()), back(x.size());
  unfold_volume(x.data(), 0, columns.data(), 0, v, 0, Size(windows));
  fold_volume(y.data(), 0, back.data(), 0, v, 0, 2);
  double a = 0, b = 0;
  for (size_t i = 0; i < y.size(); ++i) a += double(columns[i]) * double(y[i]);
  for (size_t i = 0; i < x.size(); ++i) b += double(x[i]) * double(back[i]);
  EXPECT_NEAR(a, b, 1e-3);
  const auto at = [&](size_t n, size_t d, size_t h, size_t w) { return x[(((n * 4 + d) * 5 + h) * 3 + w) * 3 + 1]; };
  const size_t row = ((1 * 2 + 1) * 4 + 2) * 3 + 1;                                // window (1, 2, 1) of the second volume
  EXPECT_EQ(columns[(row * taps + (2 * 2 + 1) * 3 + 0) * 3 + 1], at(1, 3, 4, 0));  // under tap (2, 1, 0)
  EXPECT_EQ(columns[(0 * taps + 0) * 3 + 1], 0);                                   // padding
}

TEST(DeviceText, SegmentsSumTheirRowsAndSayWhereThereAreNone) {
  const std::vector<float> x = Numbers(5 * 6);
  const int64_t order[] = {4, 0, 1, 3}, starts[] = {0, 1, 1, 4};
  std::vector<float> y(3 * 6);
  segment(x.data(), 0, order, 0, starts, 0, y.data(), 0, 3, 6);
  for (size_t c = 0; c < 6; ++c) {
    EXPECT_EQ(y[c], x[4 * 6 + c]);
    EXPECT_EQ(y[6 + c], -1);
    EXPECT_FLOAT_EQ(y[12 + c], x[c] + x[6 + c] + x[18 + c]);
  }
}

// Rows with equal elements and NaN, with lengths around multiples of a run.
TEST(DeviceText, MergedRunsAreInOrderAndEqualsStandAsTheyStood) {
  std::mt19937 random(3);
  for (Size n : {1, 3, 4, 5, 8, 17, 64, 100}) {
    const Size rows = 3;
    std::vector<float> x(size_t(rows * n));
    for (float& v : x) v = random() % 9 == 0 ? NAN : float(random() % 7);
    std::vector<int64_t> from(x.size()), to(x.size());
    sort_runs(x.data(), 0, from.data(), 0, rows, n);
    for (Size width = RUN; width < n; width *= 2) {
      merge_runs(x.data(), 0, from.data(), 0, to.data(), 0, rows, n, width);
      std::swap(from, to);
    }
    for (Size row = 0; row < rows; ++row) {
      std::vector<int64_t> expected(static_cast<size_t>(n));
      std::iota(expected.begin(), expected.end(), 0);
      const float* of = x.data() + row * n;
      std::stable_sort(expected.begin(), expected.end(), [&](int64_t a, int64_t b) { return AHEAD(of[a], of[b]); });
      EXPECT_EQ(std::vector<int64_t>(from.begin() + row * n, from.begin() + (row + 1) * n), expected) << n;
      const Size k = (n + 1) / 2;
      std::vector<float> values(x.size());
      std::vector<int64_t> places(x.size());
      take_standing(x.data(), 0, from.data(), 0, values.data(), 0, places.data(), 0, rows, n, k);
      std::vector<int64_t> first(expected.begin(), expected.begin() + k);
      std::sort(first.begin(), first.end());
      EXPECT_EQ(std::vector<int64_t>(places.begin() + row * k, places.begin() + (row + 1) * k), first) << n;
    }
  }
}

TEST(DeviceText, WeightedRowsAddUp) {
  const std::vector<float> x = Numbers(4 * 2);
  const int64_t order[] = {3, 0, 3}, starts[] = {0, 2, 2, 3};
  const float weights[] = {0.5f, 2, -1};
  std::vector<float> y(3 * 2);
  add_weighted(x.data(), 0, order, 0, weights, 0, starts, 0, y.data(), 0, 3, 2);
  for (size_t c = 0; c < 2; ++c) {
    EXPECT_FLOAT_EQ(y[c], 0.5f * x[6 + c] + 2 * x[c]);
    EXPECT_EQ(y[2 + c], 0);
    EXPECT_EQ(y[4 + c], -x[6 + c]);
  }
}

TEST(DeviceText, SparseRowsAreMultiplied) {
  const std::vector<float> b = Numbers(3 * 5), values = Numbers(4);
  const int64_t order[] = {2, 0, 3}, at[] = {1, 2, 1}, starts[] = {0, 2, 2, 3};  // no row has element 1
  std::vector<float> y(3 * 5), turned(3 * 3);
  sparse_product(values.data(), 0, order, 0, at, 0, starts, 0, b.data(), 0, y.data(), 0, 3, 5, 5, 1);
  for (size_t c = 0; c < 5; ++c) {
    EXPECT_FLOAT_EQ(y[c], values[2] * b[5 + c] + values[0] * b[10 + c]);
    EXPECT_EQ(y[5 + c], 0);
    EXPECT_FLOAT_EQ(y[10 + c], values[3] * b[5 + c]);
  }
  sparse_product(values.data(), 0, order, 0, at, 0, starts, 0, b.data(), 0, turned.data(), 0, 3, 3, 1, 5);  // b's rows are columns
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_FLOAT_EQ(turned[c], values[2] * b[5 * c + 1] + values[0] * b[5 * c + 2]);
    EXPECT_FLOAT_EQ(turned[6 + c], values[3] * b[5 * c + 1]);
  }
}

TEST(DeviceText, MirrorsHandBackWhatTheyShow) {
  for (Size skip : {0, 1}) {
    const Axes inside{2, {4, 3}}, outside{2, {7, 5}};  // innermost first
    const Steps inside_sizes{{4, 3}}, outside_sizes{{7, 5}}, before{{2, 1}};
    const std::vector<float> x = Numbers(12), y = Numbers(35);
    std::vector<float> padded(35), back(12);
    mirror(x.data(), 0, padded.data(), 0, 35, outside, inside_sizes, before, 1 - skip);
    mirror_grad(y.data(), 0, back.data(), 0, 12, inside, outside_sizes, before, skip);
    double a = 0, b = 0;
    for (size_t i = 0; i < 35; ++i) a += double(padded[i]) * double(y[i]);
    for (size_t i = 0; i < 12; ++i) b += double(x[i]) * double(back[i]);
    EXPECT_NEAR(a, b, 1e-4);
  }
}

// Instantiates the lines for reals.
using C = double;
using U = double;
[[maybe_unused]] constexpr double P = 0.25;
using std::isfinite, std::isinf;
[[maybe_unused]] double floor_mod(double a, double b) { return a - b * std::floor(a / b); }
enum Class { REAL, WHOLE, BOOL };
double Unary(const std::string& op, double a) {
#define ENTRY(name, types, result, expression) JOIN(ENTRY_, types)(name, expression)
#define ENTRY_REAL(name, expression) \
  if (op == #name) return double(expression);
#define ENTRY_WHOLE(name, expression)
#define ENTRY_BOOL(name, expression)
  DEVICE_UNARY(ENTRY)
  ADD_FAILURE() << op;
  return 0;
}
double Binary(const std::string& op, double a, double b) {
  DEVICE_BINARY(ENTRY)
  ADD_FAILURE() << op;
  return 0;
}

TEST(DeviceText, LinesOfTheTableSayWhatTheirOpsCompute) {
  for (double a : {-2.5, -0.0, 0.0, 0.5, 3.0}) {
    EXPECT_EQ(Unary("Abs", a), std::fabs(a));
    EXPECT_EQ(Unary("Relu", a), a > 0 ? a : 0);
    EXPECT_DOUBLE_EQ(Unary("Sigmoid", a), 1 / (1 + std::exp(-a)));
    EXPECT_NEAR(Unary("Softplus", a), std::log(1 + std::exp(a)), 1e-12);
    EXPECT_EQ(Unary("LeakyRelu", a), a > 0 ? a : a / 4);
    EXPECT_EQ(Binary("Maximum", a, 1), std::fmax(a, 1));
    EXPECT_EQ(Binary("DivNoNan", a, 0), 0);
    EXPECT_EQ(Binary("ReluGrad", 5, a), a > 0 ? 5 : 0);
    EXPECT_EQ(Binary("FloorMod", a, 2), a - 2 * std::floor(a / 2));
  }
  EXPECT_TRUE(std::isnan(Unary("Relu", NAN)) && std::isnan(Binary("Minimum", NAN, 1)) && std::isnan(Binary("Minimum", 1, NAN)));
}

TEST(DeviceText, SpecialFunctionsAreSomeUnitsOff) {
  const auto close = [](float got, double wanted) { return std::fabs(got - wanted) <= 4 * 6e-8 * std::max(std::fabs(wanted), 1e-3); };
  const std::pair<float, double> digammas[] = {{1.f, -0.57721566490153286},
                                               {0.5f, -1.9635100260214235},
                                               {1.4616321325302124f, -1.2036e-8},
                                               {7.25f, 1.9104535268837360},
                                               {100.f, 4.6001618527380874}};
  for (auto [x, wanted] : digammas) EXPECT_TRUE(close(Digamma_of(x), wanted)) << x << ": " << Digamma_of(x);
  EXPECT_NEAR(Digamma_of(-0.5f), 0.036489973978576521, 4e-7);  // below 0, relative to the larger terms
  for (float pole : {0.f, -1.f, -3.f, -INFINITY, NAN}) EXPECT_TRUE(std::isnan(Digamma_of(pole))) << pole;
  EXPECT_EQ(Digamma_of(INFINITY), INFINITY);
  for (double y = -5.2; y < 5.2; y += 0.01) {
    const auto x = float(std::erf(y)), p = float(std::erfc(-y) / 2);
    // The tolerance is one unit of the argument, times the slope.
    const double slope = 2 / std::sqrt(M_PI) * std::exp(-y * y);
    if (std::fabs(y) < 3.8) {
      EXPECT_NEAR(Erfinv_of(x), y, 4e-7 * std::fabs(y) + 6e-8 / slope) << y;
    }
    if (y < 3.5) {
      EXPECT_NEAR(Ndtri_of(p), y * M_SQRT2, 1e-6 * std::fabs(y) + 6e-8 * p / slope * 4) << y;
    }
  }
  EXPECT_EQ(Erfinv_of(1), INFINITY);
  EXPECT_EQ(Ndtri_of(0), -INFINITY);
  EXPECT_EQ(Ndtri_of(0.5f), 0);
  EXPECT_TRUE(std::isnan(Erfinv_of(1.5f)) && std::isnan(Ndtri_of(-1)) && std::isnan(Ndtri_of(NAN)));
  EXPECT_NEAR(Ndtri_of(1e-40f), -13.310921, 2e-5);
}

TEST(DeviceText, RulesOfOptimizersMoveAgainstTheGradient) {
  int rules = 0;
#define RULE(name, slots, factors, ...)                                                                                                \
  {                                                                                                                                    \
    [[maybe_unused]] double v = 1, s1 = 0.5, s2 = 0.5, s3 = 0.5;                                                                       \
    [[maybe_unused]] const double g = 2, k0 = 0.1, k1 = 0, k2 = 0.1, k3 = 0.1, k4 = std::string(#name).starts_with("ftrl") ? -0.5 : 0; \
    __VA_ARGS__;                                                                                                                       \
    EXPECT_LT(v, 1) << #name;                                                                                                          \
    ++rules;                                                                                                                           \
  }
  DEVICE_UPDATES(RULE)
  EXPECT_EQ(rules, 16);
}

}  // namespace
}  // namespace thalweg
