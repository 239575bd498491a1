// Fake quantisation and its gradients. A range is moved a little, so that 0 is one of the steps. Sums
// for the ends of a range are kept in double, in the order of elements.
#include <algorithm>
#include <cmath>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The steps from `low` to `high`, `step` apart.
struct Steps {
  float low, high, step;
  float Round(float x) const {
    const float inside = std::min(std::max(x, low), high) - low, inverse = 1 / step;
    const float zero = std::floor(-low * inverse + 0.5F);
    return std::floor(inside * inverse - zero + 0.5F) * step;
  }
};

class Quantiser {
 public:
  explicit Quantiser(const tw::Node& n) {
    const int64_t bits = n.i("num_bits");
    if (bits < 2 || bits > 16) Invalid("num_bits is " + tw::text(bits) + "; it must be in [2, 16]");
    least_ = n.b("narrow_range") ? 1 : 0;
    most_ = float((int64_t{1} << bits) - 1);
  }
  Steps Of(float min, float max) const {
    if (!(min <= max)) Invalid("min is " + std::to_string(min) + " and max is " + std::to_string(max) + "; min must not be above max");
    const float step = (max - min) / (most_ - least_), from_min = least_ - min / step;
    const float zero = from_min < least_ ? least_ : from_min > most_ ? most_ : std::round(from_min);
    return {(least_ - zero) * step, (most_ - zero) * step, step};
  }

 private:
  float least_, most_;
};

class WithArgs : Quantiser {
 public:
  explicit WithArgs(const tw::Node& n) : Quantiser(n), steps_(Of(float(n.f("min")), float(n.f("max")))) {}
  void operator()(tw::Frame f, tw::In<float> inputs, tw::Out<float> outputs) const {
    ParallelFor(f.f, int64_t(inputs.size()), 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) outputs.data()[i] = steps_.Round(inputs.data()[i]);
    });
  }

 private:
  Steps steps_;
};

class ArgsGradient : Quantiser {
 public:
  explicit ArgsGradient(const tw::Node& n) : Quantiser(n), steps_(Of(float(n.f("min")), float(n.f("max")))) {}
  void operator()(tw::Frame f, tw::In<float> gradients, tw::In<float> inputs, tw::Out<float> backprops) const {
    ParallelFor(f.f, int64_t(inputs.size()), 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float x = inputs.data()[i];
        backprops.data()[i] = x >= steps_.low && x <= steps_.high ? gradients.data()[i] : 0;
      }
    });
  }

 private:
  Steps steps_;
};

// The range of channel c: entry c of min and max, or the only one.
struct Ranges {
  const float *min, *max;
  int64_t channels;  // 1: one range for all elements
  Ranges(const tw::In<float>& low, const tw::In<float>& high, const tw_view* inputs, bool per_channel)
      : min(low.data()), max(high.data()), channels(per_channel ? inputs->dims[inputs->rank - 1] : 1) {
    if (low.size() != uint64_t(channels) || high.size() != uint64_t(channels))
      Invalid("min " + DimsText(low.v) + " and max " + DimsText(high.v) + " must have an entry for each channel of inputs " +
              DimsText(inputs));
  }
  bool empty(int64_t c) const { return min[c] == 0 && max[c] == 0; }
};

template <bool kPerChannel>
class WithVars : Quantiser {
 public:
  using Quantiser::Quantiser;
  void operator()(tw::Frame f, tw::In<float> inputs, tw::In<float> min, tw::In<float> max, tw::Out<float> outputs) const {
    const Ranges ranges(min, max, inputs.v, kPerChannel);
    const TempArray<Steps> steps(f.f, size_t(ranges.channels));
    for (int64_t c = 0; c < ranges.channels; ++c) steps[size_t(c)] = ranges.empty(c) ? Steps{0, 0, 1} : Of(ranges.min[c], ranges.max[c]);
    ParallelFor(f.f, int64_t(inputs.size()), 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) outputs.data()[i] = steps[size_t(i % ranges.channels)].Round(inputs.data()[i]);
    });
  }
};

template <bool kPerChannel>
class VarsGradient : Quantiser {
 public:
  using Quantiser::Quantiser;
  void operator()(tw::Frame f, tw::In<float> gradients, tw::In<float> inputs, tw::In<float> min, tw::In<float> max,
                  tw::Out<float> backprops, tw::Out<float> to_min, tw::Out<float> to_max) const {
    const Ranges ranges(min, max, inputs.v, kPerChannel);
    if (gradients.size() != inputs.size())
      Invalid("gradients " + DimsText(gradients.v) + " and inputs " + DimsText(inputs.v) + " do not fit together");
    const int64_t n = int64_t(inputs.size()), channels = ranges.channels;
    const TempArray<Steps> steps(f.f, size_t(channels));
    const TempArray<double> sums(f.f, size_t(2 * channels));
    std::fill_n(sums.get(), 2 * channels, 0.0);
    for (int64_t c = 0; c < channels; ++c)
      steps[size_t(c)] = ranges.empty(c) ? Steps{-INFINITY, INFINITY, 1} : Of(ranges.min[c], ranges.max[c]);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t c = i % channels;
      const float x = inputs.data()[i], dy = gradients.data()[i];
      const Steps& s = steps[size_t(c)];
      backprops.data()[i] = x >= s.low && x <= s.high ? dy : 0;
      if (x < s.low) sums[size_t(c)] += double(dy);
      if (x > s.high) sums[size_t(channels + c)] += double(dy);
    }
    for (int64_t c = 0; c < channels; ++c) {
      to_min.data()[c] = float(sums[size_t(c)]);
      to_max.data()[c] = float(sums[size_t(channels + c)]);
    }
  }
};

}  // namespace

void register_fake_quant(tw::Plugin& p) {
  p.kernel<WithArgs>("FakeQuantWithMinMaxArgs @CPU");
  p.kernel<ArgsGradient>("FakeQuantWithMinMaxArgsGradient @CPU");
  p.kernel<WithVars<false>>("FakeQuantWithMinMaxVars @CPU");
  p.kernel<WithVars<true>>("FakeQuantWithMinMaxVarsPerChannel @CPU");
  p.kernel<VarsGradient<false>>("FakeQuantWithMinMaxVarsGradient @CPU");
  p.kernel<VarsGradient<true>>("FakeQuantWithMinMaxVarsPerChannelGradient @CPU");
}

}  // namespace thalweg::cpu
