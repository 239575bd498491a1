// QuantizeAndDequantize, V2, V3 and V4, and the gradient of V4. 16-bit floats are computed in float
// and rounded once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/ranges.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The steps of a range: scale of them make 1. If no scale fits the range (it is all 0, or below 0 for
// an unsigned type), everything becomes 0.
template <class W>
struct EvenSteps {
  W min, max, scale = 0, step = 0;

  EvenSteps(W low, W high, int64_t bits, bool is_signed, bool narrow) : min(low), max(high) {
    const int64_t half = int64_t{1} << (bits - 1);
    const W lowest = is_signed ? W(narrow ? 1 - half : -half) : W(0), highest = is_signed ? W(half - 1) : W((half - 1) + half);
    constexpr W kMost = std::numeric_limits<W>::max();
    const W from_min = lowest * low > 0 ? std::min(kMost, lowest / low) : kMost;
    const W from_max = highest * high > 0 ? std::min(kMost, highest / high) : kMost;
    if (from_min == kMost && from_max == kMost) {
      min = max = 0;
    } else if (from_min < from_max) {
      scale = from_min;
      step = low / lowest;
      max = highest * step;
    } else {
      scale = from_max;
      step = high / highest;
      min = lowest * step;
    }
  }
  W Clamped(W x) const { return x > max ? max : x < min ? min : x; }
  W Even(W x) const { return std::nearbyint(x * scale) * step; }
  W Up(W x) const { return std::floor(x * scale + W(0.5)) * step; }
};

struct StepsHow {
  bool is_signed, given, narrow, up;
  explicit StepsHow(const tw::Node& n)
      : is_signed(n.b("signed_input")),
        given(n.b("range_given")),
        narrow(n.find("narrow_range") && n.b("narrow_range")),
        up(n.find("round_mode") && n.s("round_mode") == "HALF_UP") {}
};

template <class T>
void RoundRun(const EvenSteps<Wide<T>>& steps, const StepsHow& how, const T* x, T* y, int64_t begin, int64_t end) {
  using W = Wide<T>;
  for (int64_t i = begin; i < end; ++i) {
    const W value = how.given ? steps.Clamped(W(x[i])) : W(x[i]);
    y[i] = T(how.up ? steps.Up(value) : steps.Even(value));
  }
}

// The smallest and largest numbers of each slice; NaN is ignored.
template <class T>
void FindRanges(const Slices& slices, const tw::In<T>& input, Wide<T>* min, Wide<T>* max) {
  using W = Wide<T>;
  std::fill_n(min, slices.slices, std::numeric_limits<W>::infinity());
  std::fill_n(max, slices.slices, -std::numeric_limits<W>::infinity());
  const int64_t n = int64_t(input.size());
  for (int64_t begin = 0, run = 0; begin < n; begin += slices.inner, ++run) {
    W low = min[run % slices.slices], high = max[run % slices.slices];
    for (int64_t i = begin; i < begin + slices.inner; ++i) {
      const W x = W(input.data()[i]);
      low = x < low ? x : low;
      high = x > high ? x : high;
    }
    min[run % slices.slices] = low;
    max[run % slices.slices] = high;
  }
}

// min, max: of each slice, if the range is given.
template <class T, class Min, class Max>
void RoundAll(const tw_frame* f, const Slices& slices, const StepsHow& how, int64_t bits, const tw::In<T>& input, const Min& min,
              const Max& max, const tw::Out<T>& output) {
  using W = Wide<T>;
  if (input.size() == 0) return;
  const TempArray<W> low(f, size_t(slices.slices)), high(f, size_t(slices.slices));
  if (!how.given) FindRanges<T>(slices, input, low.get(), high.get());
  for (int64_t k = 0; how.given && k < slices.slices; ++k) {
    low[size_t(k)] = W(min(k));
    high[size_t(k)] = W(max(k));
    if (!(low[size_t(k)] <= high[size_t(k)]))
      Invalid("input_min is " + std::to_string(low[size_t(k)]) + " and input_max " + std::to_string(high[size_t(k)]) +
              "; the minimum must not be above the maximum");
  }
  slices.ForEachRun(f, int64_t(input.size()), 5, [&](int64_t begin, int64_t end, int64_t k) {
    const EvenSteps<W> steps(low[size_t(k)], high[size_t(k)], bits, how.is_signed, how.narrow);
    RoundRun<T>(steps, how, input.data(), output.data(), begin, end);
  });
}

template <class T>
class RoundByAttrs {
 public:
  explicit RoundByAttrs(const tw::Node& n) : how_(n), bits_(n.i("num_bits")), min_(n.f("input_min")), max_(n.f("input_max")) {}
  void operator()(tw::Frame f, tw::In<T> input, tw::Out<T> output) const {
    const Slices one(int64_t(input.size()));
    RoundAll<T>(f.f, one, how_, bits_, input, [&](int64_t) { return float(min_); }, [&](int64_t) { return float(max_); }, output);
  }

 private:
  const StepsHow how_;
  const int64_t bits_;
  const double min_, max_;
};

template <class T>
void RoundByInputs(const tw_frame* f, const StepsHow& how, int64_t bits, int64_t axis, const tw::In<T>& input, const tw::In<T>& min,
                   const tw::In<T>& max, const tw::Out<T>& output) {
  const Slices slices(input.v, axis, min.v, max.v);
  RoundAll<T>(
      f, slices, how, bits, input, [&](int64_t k) { return min[uint64_t(k)]; }, [&](int64_t k) { return max[uint64_t(k)]; }, output);
}

template <class T>
class RoundV2 {
 public:
  explicit RoundV2(const tw::Node& n) : how_(n), bits_(n.i("num_bits")), axis_(n.i("axis")) {}
  void operator()(tw::Frame f, tw::In<T> input, tw::In<T> input_min, tw::In<T> input_max, tw::Out<T> output) const {
    RoundByInputs<T>(f.f, how_, bits_, axis_, input, input_min, input_max, output);
  }

 private:
  const StepsHow how_;
  const int64_t bits_, axis_;
};

template <class T>
class RoundV3 {
 public:
  explicit RoundV3(const tw::Node& n) : how_(n), axis_(n.i("axis")) {}
  void operator()(tw::Frame f, tw::In<T> input, tw::In<T> input_min, tw::In<T> input_max, tw::In<int32_t> num_bits,
                  tw::Out<T> output) const {
    const int64_t bits = num_bits[0], most = how_.is_signed ? 61 : 62;
    if (bits < 1 || bits > most)
      Invalid("num_bits is " + std::to_string(bits) + "; it must be from 1 to " + std::to_string(most) +
              (how_.is_signed ? " with signed_input" : " without signed_input"));
    RoundByInputs<T>(f.f, how_, bits, axis_, input, input_min, input_max, output);
  }

 private:
  const StepsHow how_;
  const int64_t axis_;
};

template <class T>
class RoundGrad {
 public:
  explicit RoundGrad(const tw::Node& n) : axis_(n.i("axis")) {}
  void operator()(tw::Frame f, tw::In<T> gradients, tw::In<T> input, tw::In<T> input_min, tw::In<T> input_max, tw::Out<T> input_backprop,
                  tw::Out<T> input_min_backprop, tw::Out<T> input_max_backprop) const {
    if (gradients.size() != input.size())
      Invalid("gradients " + DimsText(gradients.v) + " and input " + DimsText(input.v) + " must have the same shape");
    const Slices slices(input.v, axis_, input_min.v, input_max.v);
    slices.ForEachRun(f.f, int64_t(input.size()), 3, [&](int64_t begin, int64_t end, int64_t k) {
      const auto min = Wide<T>(input_min[uint64_t(k)]), max = Wide<T>(input_max[uint64_t(k)]);
      for (int64_t i = begin; i < end; ++i) {
        const auto x = Wide<T>(input.data()[i]);
        input_backprop.data()[i] = x >= min && x <= max ? gradients.data()[i] : T(0);
      }
    });
    std::fill_n(input_min_backprop.data(), input_min_backprop.size(), T(0));
    std::fill_n(input_max_backprop.data(), input_max_backprop.size(), T(0));
  }

 private:
  const int64_t axis_;
};

}  // namespace

void register_quantize_and_dequantize(tw::Plugin& p) {
  p.kernel<RoundByAttrs<half>, RoundByAttrs<bfloat16>, RoundByAttrs<float>, RoundByAttrs<double>>("QuantizeAndDequantize @CPU");
  p.kernel<RoundV2<half>, RoundV2<bfloat16>, RoundV2<float>, RoundV2<double>>("QuantizeAndDequantizeV2 @CPU");
  p.kernel<RoundV3<half>, RoundV3<bfloat16>, RoundV3<float>, RoundV3<double>>("QuantizeAndDequantizeV3 @CPU");
  p.kernel<RoundV2<half>, RoundV2<bfloat16>, RoundV2<float>, RoundV2<double>>("QuantizeAndDequantizeV4 @CPU");
  p.kernel<RoundGrad<half>, RoundGrad<bfloat16>, RoundGrad<float>, RoundGrad<double>>("QuantizeAndDequantizeV4Grad @CPU");
}

}  // namespace thalweg::cpu
