// QuantizeV2, Dequantize, Requantize, RequantizationRange and QuantizeDownAndShrinkRange. The
// arithmetic is TensorFlow's, operation by operation, in the types that it uses, so that the steps
// are the same. Where TensorFlow's conversions to whole numbers are undefined (NaN, beyond the
// type), numbers are limited to the type and NaN becomes the lowest step.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/types.h"
#include "kernels/ranges.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

enum class QuantiseMode { kMinCombined, kMinFirst, kScaled };

QuantiseMode ModeOf(const tw::Node& n) {
  const std::string_view mode = n.s("mode");
  return mode == "MIN_COMBINED" ? QuantiseMode::kMinCombined : mode == "MIN_FIRST" ? QuantiseMode::kMinFirst : QuantiseMode::kScaled;
}

template <class Q>
constexpr int64_t kLowest = std::numeric_limits<Q>::min();
template <class Q>
constexpr int64_t kHighest = std::numeric_limits<Q>::max();
template <class Q>
constexpr double kSteps = double(kHighest<Q> - kLowest<Q>);  // one less than the number of values

// Returns a whole number as Q, limited to the type; NaN becomes the lowest.
template <class Q, class T>
Q Limited(T x) {
  if (!(x > T(kLowest<Q>))) return Q(kLowest<Q>);
  return x >= T(kHighest<Q>) ? Q(kHighest<Q>) : Q(x);
}

std::string RangeText(float min, float max) { return "the range is from " + std::to_string(min) + " to " + std::to_string(max); }

struct QuantiseRange {
  float min, max;
};

// The range that is used for a given one: it contains 0, and is not too short.
QuantiseRange Widened(float min, float max, float least) {
  if (!(min <= max) || !std::isfinite(min) || !std::isfinite(max))
    Invalid(RangeText(min, max) + "; its ends must be finite, and the first must not be above the second");
  const float low = std::min(0.0F, min), length = std::max(1.0F, std::max(std::fabs(min), std::fabs(max))) * least;
  return {low, std::max(0.0F, std::max(max, low + length))};
}

float Clamp(float x, QuantiseRange r) { return x > r.max ? r.max : x >= r.min ? x : r.min; }

template <class Q>
struct CombinedSteps {
  QuantiseRange range;
  float scale;
  explicit CombinedSteps(QuantiseRange r) : range(r), scale(float(kSteps<Q> / double(r.max - r.min))) {}
  Q operator()(float x) const {
    const float steps = (Clamp(x, range) - range.min) * scale;
    if constexpr (std::is_signed_v<Q>) return Limited<Q>(std::round(steps - float((kSteps<Q> + 1) / 2)));
    return Limited<Q>(std::trunc(steps + 0.5F));
  }
};

template <class Q>
struct FirstSteps {
  float scale, start;
  explicit FirstSteps(QuantiseRange r) : scale(r.max == r.min ? 0.0F : float(kSteps<Q> / double(r.max - r.min))) {
    start = std::round(r.min * scale) - float(kLowest<Q>);
  }
  // TensorFlow's limit of qint32 here is the largest float below the type's.
  Q operator()(float x) const {
    const float steps = std::round(x * scale) - start;
    return Limited<Q>(std::is_same_v<Q, int32_t> && steps > 2147483520.0F ? 2147483520.0F : steps);
  }
};

template <class Q>
struct ScaledSteps {
  QuantiseRange range{};
  float scale;
  bool to_even;
  ScaledSteps(QuantiseRange r, bool narrow, bool even) : to_even(even) {
    const auto lowest = float(kLowest<Q> + (narrow ? 1 : 0)), highest = float(kHighest<Q>);
    constexpr float kMost = std::numeric_limits<float>::max();
    scale = std::min(lowest * r.min > 0 ? lowest / r.min : kMost, highest * r.max > 0 ? highest / r.max : kMost);
    range = {lowest / scale, highest / scale};
  }
  Q operator()(float x) const {
    const float steps = Clamp(x, range) * scale;
    return Limited<Q>(to_even ? std::nearbyint(steps) : std::round(steps));
  }
};

class Quantize {
 public:
  explicit Quantize(const tw::Node& n)
      : mode_(ModeOf(n)),
        even_(n.s("round_mode") == "HALF_TO_EVEN"),
        narrow_(n.b("narrow_range")),
        axis_(n.i("axis")),
        least_(float(n.f("ensure_minimum_range"))) {}

  void operator()(tw::Frame f, tw::In<float> input, tw::In<float> min_range, tw::In<float> max_range, tw::Out<tw::Any> output,
                  tw::Out<float> output_min, tw::Out<float> output_max) const {
    const Slices slices(input.v, axis_, min_range.v, max_range.v);
    for (int64_t k = 0; k < slices.slices; ++k) {
      const QuantiseRange used = Widened(min_range[uint64_t(k)], max_range[uint64_t(k)], least_);
      output_min.data()[k] = used.min;
      output_max.data()[k] = used.max;
    }
    ByQuantised(output.v()->dtype, [&](auto q) {
      using Q = decltype(q);
      auto* to = reinterpret_cast<Q*>(Bytes(output.v()));
      const auto run = [&](const auto& steps, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = steps(input.data()[i]);
      };
      slices.ForEachRun(f.f, int64_t(input.size()), 6, [&](int64_t begin, int64_t end, int64_t k) {
        const QuantiseRange r = Widened(min_range[uint64_t(k)], max_range[uint64_t(k)], least_);
        switch (mode_) {
          case QuantiseMode::kMinCombined: return run(CombinedSteps<Q>(r), begin, end);
          case QuantiseMode::kMinFirst: return run(FirstSteps<Q>(r), begin, end);
          case QuantiseMode::kScaled: return run(ScaledSteps<Q>(r, narrow_, even_), begin, end);
        }
      });
      for (int64_t k = 0; mode_ == QuantiseMode::kScaled && k < slices.slices; ++k) {
        const ScaledSteps<Q> steps({output_min.data()[k], output_max.data()[k]}, narrow_, even_);
        output_min.data()[k] = steps.range.min;
        output_max.data()[k] = steps.range.max;
      }
    });
  }

 private:
  const QuantiseMode mode_;
  const bool even_, narrow_;
  const int64_t axis_;
  const float least_;
};

// The float that step x stands for: (x + before) * scale + after.
template <class Q>
struct StepsBack {
  float before = 0, scale = 0, after = 0;
  StepsBack(QuantiseMode mode, float min, float max, bool narrow) {
    const auto lowest = float(kLowest<Q>), highest = float(kHighest<Q>);
    if (mode == QuantiseMode::kMinCombined) {
      before = std::is_signed_v<Q> ? (highest - lowest + 1) / 2 : 0;
      scale = (max - min) / (highest - lowest);
      after = min;
    } else if (mode == QuantiseMode::kMinFirst) {
      scale = float(double(max - min) / kSteps<Q>);
      after = (max == min ? min : std::round(min / scale) * scale) - lowest * scale;
    } else {
      scale = kLowest<Q> == 0 ? max / highest : std::max(min / float(kLowest<Q> + (narrow ? 1 : 0)), max / highest);
    }
  }
  float operator()(Q x) const { return (float(x) + before) * scale + after; }
};

class Dequantize {
 public:
  explicit Dequantize(const tw::Node& n) : mode_(ModeOf(n)), narrow_(n.b("narrow_range")), axis_(n.i("axis")) {}

  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::In<float> min_range, tw::In<float> max_range, tw::Out<tw::Any> output) const {
    const Slices slices(input.v, axis_, min_range.v, max_range.v);
    ByQuantised(input.v->dtype, [&](auto q) {
      using Q = decltype(q);
      const auto* from = reinterpret_cast<const Q*>(Bytes(input.v));
      const auto run = [&](auto* to, const StepsBack<Q>& steps, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = std::remove_reference_t<decltype(*to)>(steps(from[i]));
      };
      slices.ForEachRun(f.f, int64_t(input.v->count), 4, [&](int64_t begin, int64_t end, int64_t k) {
        const StepsBack<Q> steps(mode_, min_range[uint64_t(k)], max_range[uint64_t(k)], narrow_);
        if (output.v()->dtype == TW_BFLOAT16)
          run(reinterpret_cast<bfloat16*>(Bytes(output.v())), steps, begin, end);
        else
          run(reinterpret_cast<float*>(Bytes(output.v())), steps, begin, end);
      });
    });
  }

 private:
  const QuantiseMode mode_;
  const bool narrow_;
  const int64_t axis_;
};

// ---- Other ranges ----

// The float that step x of the range stands for, as the ops below read it.
template <class Q>
float FloatOf(Q x, QuantiseRange r) {
  if (r.min == r.max) return r.min;
  constexpr double kValues = kSteps<Q> + 1;
  const double length = double(r.max - r.min) * (kValues / kSteps<Q>), scale = length / kValues;
  const double start = std::round(double(r.min / float(scale))) * double(float(scale));
  return float(start + (double(x) - double(kLowest<Q>)) * scale);
}

// The range of the floats of all elements, with 0 as the largest lower end.
template <class Q>
QuantiseRange RangeOf(const tw_view* input, QuantiseRange r) {
  const auto* x = reinterpret_cast<const Q*>(Bytes(input));
  auto least = Q(kHighest<Q>), most = Q(kLowest<Q>);
  for (uint64_t i = 0; i < input->count; ++i) {
    least = std::min(least, x[i]);
    most = std::max(most, x[i]);
  }
  return {std::min(0.0F, FloatOf<Q>(least, r)), FloatOf<Q>(most, r)};
}

// qint32 to quint8 in whole numbers with 16 bits behind the point, as TensorFlow's only kernel does it.
class ShiftedSteps {
 public:
  ShiftedSteps(QuantiseRange from, QuantiseRange to) {
    const float in = from.max - from.min, out = to.max - to.min, middle = float((double(from.min) + double(from.max)) / 2.0);
    if (out == 0) return;
    const auto inverse = float(255.0 / double(out));
    scale_ = Fixed(255.0 * kOne * double(in) / double(out));
    offset_ = Fixed(double(middle * inverse * float(kOne))) - Fixed(kOne * (double(to.min) * 255.0) / double(out));
  }
  uint8_t operator()(int32_t x) const {
    const Wide128 steps = ((Wide128(x) * scale_) >> 32) + offset_ + Wide128(kOne / 2);
    return uint8_t(std::clamp<Wide128>(steps >> 16, 0, 255));
  }

 private:
  __extension__ typedef __int128 Wide128;
  static constexpr double kOne = 65536;
  static int64_t Fixed(double x) { return std::isnan(x) ? 0 : int64_t(std::clamp(x, -4e18, 4e18)); }
  Wide128 scale_ = 0, offset_ = 0;
};

// Any other pair of types. The steps of the new range have 0 in its place.
template <class Q, class To>
class FloatSteps {
 public:
  FloatSteps(QuantiseRange from, QuantiseRange to) : from_(from), to_(to) {}
  To operator()(Q x) const {
    const float value = FloatOf<Q>(x, from_);
    if (to_.min == to_.max) return To(kLowest<To>);
    constexpr double kValues = kSteps<To> + 1;
    const double scale = kValues / (double(to_.max - to_.min) * (kValues / kSteps<To>));
    return Limited<To>(std::round(double(value) * scale) - std::round(double(to_.min) * scale) + double(kLowest<To>));
  }

 private:
  QuantiseRange from_, to_;
};

template <class Q>
void ToRange(const tw_frame* f, const tw_view* input, const tw_view* output, QuantiseRange from, QuantiseRange to) {
  const auto* x = reinterpret_cast<const Q*>(Bytes(input));
  ByQuantised(output->dtype, [&](auto q) {
    using To = decltype(q);
    auto* y = reinterpret_cast<To*>(Bytes(output));
    const auto all = [&](const auto& steps) {
      ParallelFor(f, int64_t(input->count), 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = steps(x[i]);
      });
    };
    if constexpr (std::is_same_v<Q, int32_t> && std::is_same_v<To, uint8_t>)
      all(ShiftedSteps(from, to));
    else
      all(FloatSteps<Q, To>(from, to));
  });
}

QuantiseRange InputRange(const tw::In<float>& min, const tw::In<float>& max) {
  const QuantiseRange r{min[0], max[0]};
  if (!(r.min <= r.max) || !std::isfinite(r.min) || !std::isfinite(r.max))
    Invalid(RangeText(r.min, r.max) + " at input_min and input_max; its ends must be finite, and the first must not be above the second");
  return r;
}

void Requantize(tw::Frame f, tw::In<tw::Any> input, tw::In<float> input_min, tw::In<float> input_max, tw::In<float> requested_min,
                tw::In<float> requested_max, tw::Out<tw::Any> output, tw::Out<float> output_min, tw::Out<float> output_max) {
  const QuantiseRange from = InputRange(input_min, input_max), to{requested_min[0], requested_max[0]};
  if (!(to.min <= 0 && to.max >= 0) || !std::isfinite(to.min) || !std::isfinite(to.max))
    Invalid(RangeText(to.min, to.max) + " at requested_output_min and requested_output_max; it must be finite and contain 0");
  ByQuantised(input.v->dtype, [&](auto q) { ToRange<decltype(q)>(f.f, input.v, output.v(), from, to); });
  output_min[0] = to.min;
  output_max[0] = to.max;
}

void RequantizationRange(tw::Frame, tw::In<tw::Any> input, tw::In<float> input_min, tw::In<float> input_max, tw::Out<float> output_min,
                         tw::Out<float> output_max) {
  const QuantiseRange from = InputRange(input_min, input_max);
  ByQuantised(input.v->dtype, [&](auto q) {
    const QuantiseRange used = RangeOf<decltype(q)>(input.v, from);
    output_min[0] = used.min;
    output_max[0] = used.max;
  });
}

void ShrinkRange(tw::Frame f, tw::In<tw::Any> input, tw::In<float> input_min, tw::In<float> input_max, tw::Out<tw::Any> output,
                 tw::Out<float> output_min, tw::Out<float> output_max) {
  const QuantiseRange from = InputRange(input_min, input_max);
  ByQuantised(input.v->dtype, [&](auto q) {
    const QuantiseRange used = RangeOf<decltype(q)>(input.v, from);
    ToRange<decltype(q)>(f.f, input.v, output.v(), from, used);
    output_min[0] = used.min;
    output_max[0] = used.max;
  });
}

}  // namespace

void register_quantize(tw::Plugin& p) {
  p.kernel<Quantize>("QuantizeV2 @CPU");
  p.kernel<Dequantize>("Dequantize @CPU");
  p.kernel<Requantize>("Requantize @CPU");
  p.kernel<RequantizationRange>("RequantizationRange @CPU");
  p.kernel<ShrinkRange>("QuantizeDownAndShrinkRange @CPU");
}

}  // namespace thalweg::cpu
