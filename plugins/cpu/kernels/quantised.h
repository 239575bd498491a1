// Quantised numbers and their ranges, for kernels that compute with them. A range [min, max] is read
// in one of two ways: its ends stand for the lowest and the highest number (the quantised number
// that stands for 0 is then the range's zero point), or, SCALED, 0 stands for 0 and the larger end
// for the highest number. The arithmetic is TensorFlow's. Threads: pure functions.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_QUANTISED_H_
#define THALWEG_PLUGINS_CPU_KERNELS_QUANTISED_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/common/element.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// The element types of quantised tensors, for kernels' signatures.
template <class T>
struct QuantisedNumber {
  using Whole = T;
  T value;
};
struct quint8 : QuantisedNumber<uint8_t> {};
struct qint8 : QuantisedNumber<int8_t> {};
struct qint32 : QuantisedNumber<int32_t> {};

template <class Q>
inline constexpr int64_t kLeastWhole = std::numeric_limits<typename Q::Whole>::min();
template <class Q>
inline constexpr int64_t kMostWhole = std::numeric_limits<typename Q::Whole>::max();
template <class Q>
inline constexpr bool kSignedWhole = std::is_signed_v<typename Q::Whole>;

struct FloatRange {
  float min, max;
};

inline std::string RangeNames(const char* min_name, const char* max_name, FloatRange r) {
  return std::string("'") + min_name + "' is " + std::to_string(r.min) + " and '" + max_name + "' is " + std::to_string(r.max);
}

// Reads entry i of a range, whose vectors have one entry for all i or one for each. Its ends must be
// finite and in order.
inline FloatRange RangeAt(const tw_view* min, const tw_view* max, uint64_t i, const char* min_name, const char* max_name) {
  const auto at = [i](const tw_view* v) {
    return reinterpret_cast<const float*>(static_cast<const char*>(v->data) + v->offset)[v->count == 1 ? 0 : i];
  };
  const FloatRange r{at(min), at(max)};
  if (!std::isfinite(r.min) || !std::isfinite(r.max) || r.min > r.max)
    Invalid(RangeNames(min_name, max_name, r) + "; the ends of a range must be finite, and the first must not be above the second");
  return r;
}

// The same of a range that is longer than 0.
inline FloatRange WideRangeOf(const tw_view* min, const tw_view* max, const char* min_name, const char* max_name) {
  const FloatRange r = RangeAt(min, max, 0, min_name, max_name);
  if (!(r.min < r.max) || !std::isfinite(r.max - r.min))
    Invalid(RangeNames(min_name, max_name, r) + "; the range must be longer than 0, and its length finite");
  return r;
}

// The float from one number to the next.
template <class Q>
float StepOf(FloatRange r) {
  return (r.max - r.min) / float(kMostWhole<Q> - kLeastWhole<Q>);
}

// The number that stands for `x`, which may be beyond the type; NaN cannot occur.
template <class Q>
int64_t PlaceOf(float x, FloatRange r, const char* min_name, const char* max_name) {
  constexpr double kValues = double(kMostWhole<Q> - kLeastWhole<Q>) + 1;
  const double scale = kValues / (double(r.max - r.min) * (kValues / (kValues - 1)));
  const double place = std::round(double(x) * scale) - std::round(double(r.min) * scale) + double(kLeastWhole<Q>);
  if (!(std::fabs(place) < 1e15)) Invalid(RangeNames(min_name, max_name, r) + "; the range lies too far from 0 for its length");
  return int64_t(place);
}

template <class Q>
int64_t ZeroPointOf(FloatRange r, const char* min_name, const char* max_name) {
  return PlaceOf<Q>(0.0F, r, min_name, max_name);
}

// The step of a SCALED range of 8 bits; 0 if both ends are 0.
inline double ScaledStep(FloatRange r, bool is_signed) {
  return double(std::fmax(std::fabs(r.min), std::fabs(r.max))) / (is_signed ? 127 : 255);
}

// The range of qint32 whose step is the product of two steps.
inline FloatRange ProductRange(float step_a, float step_b) {
  const float step = step_a * step_b;
  return {step * float(kLeastWhole<qint32>), step * float(kMostWhole<qint32>)};
}

}  // namespace thalweg::cpu

namespace tw {
template <>
inline constexpr const char* dtype<thalweg::cpu::quint8> = "quint8";
template <>
inline constexpr const char* dtype<thalweg::cpu::qint8> = "qint8";
template <>
inline constexpr const char* dtype<thalweg::cpu::qint32> = "qint32";
}  // namespace tw

#endif  // THALWEG_PLUGINS_CPU_KERNELS_QUANTISED_H_
