// RGBToHSV, HSVToRGB and adjustments of images. half and bfloat16 are computed in float.
#include <algorithm>
#include <cmath>

#include "kernels/register.h"
#include "kernels/resample.h"

namespace thalweg::cpu {
namespace {

template <class F>
struct Color {
  F a, b, c;  // red, green, blue, or hue, saturation, value
};

template <class F>
Color<F> ToHsv(Color<F> x) {
  const F top = std::max(x.a, std::max(x.b, x.c)), range = top - std::min(x.a, std::min(x.b, x.c));
  const F saturation = top > 0 ? range / top : F(0), norm = F(1) / (F(6) * range);
  F hue = x.a == top ? norm * (x.b - x.c) : x.b == top ? norm * (x.c - x.a) + F(2) / F(6) : norm * (x.a - x.b) + F(4) / F(6);
  hue = range > 0 ? hue : F(0);
  return {hue < 0 ? hue + F(1) : hue, saturation, top};
}

template <class F>
Color<F> ToRgb(Color<F> x) {
  const F six = x.a * F(6);
  const auto channel = [&](F t) { return (F(1) - x.b + x.b * std::clamp(t, F(0), F(1))) * x.c; };
  return {channel(std::abs(six - F(3)) - F(1)), channel(F(2) - std::abs(six - F(2))), channel(F(2) - std::abs(six - F(4)))};
}

// Changes each colour by `change`, computed in F.
template <class F, class Change>
void ForColors(const tw_frame* f, const tw_view* from, const tw_view* to, Change&& change) {
  if (from->count == 0) return;
  if (from->rank < 1 || from->dims[from->rank - 1] != 3) Invalid("images " + DimsText(from) + " must have 3 channels");
  constexpr int64_t kTogether = 64;
  const int64_t pixels = int64_t(from->count / 3), blocks = (pixels + kTogether - 1) / kTogether;
  ParallelFor(f, blocks, kTogether * 32, [&](int64_t begin, int64_t end) {
    F room[3 * kTogether];
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kTogether, n = std::min(kTogether, pixels - first);
      ReadNumbers(from, 3 * first, 3 * n, room);
      for (int64_t i = 0; i < n; ++i) {
        const Color<F> y = change(Color<F>{room[3 * i], room[3 * i + 1], room[3 * i + 2]});
        room[3 * i] = y.a, room[3 * i + 1] = y.b, room[3 * i + 2] = y.c;
      }
      WriteNumbers(to, 3 * first, 3 * n, room);
    }
  });
}

template <bool kToHsv>
void Convert(tw::Frame f, tw::In<tw::Any> images, tw::Out<tw::Any> output) {
  const auto run = [&](auto zero) {
    using F = decltype(zero);
    ForColors<F>(f.f, images.v, output.v(), [](Color<F> x) { return kToHsv ? ToHsv(x) : ToRgb(x); });
  };
  if (images.v->dtype == TW_DOUBLE)
    run(double{});
  else
    run(float{});
}

void Hue(tw::Frame f, tw::In<tw::Any> images, tw::In<float> delta, tw::Out<tw::Any> output) {
  const float turn = delta[0];
  ForColors<float>(f.f, images.v, output.v(), [turn](Color<float> x) {
    const float hue = ToHsv(x).a + turn, low = std::min(x.a, std::min(x.b, x.c)), top = std::max(x.a, std::max(x.b, x.c));
    const Color<float> full = ToRgb(Color<float>{hue - std::floor(hue), 1, 1});
    // Also for numbers below 0, which have no saturation.
    return Color<float>{low + (top - low) * full.a, low + (top - low) * full.b, low + (top - low) * full.c};
  });
}

void Saturation(tw::Frame f, tw::In<tw::Any> images, tw::In<float> scale, tw::Out<tw::Any> output) {
  const float factor = scale[0];
  ForColors<float>(f.f, images.v, output.v(), [factor](Color<float> x) {
    Color<float> hsv = ToHsv(x);
    hsv.b = std::min(1.0F, std::max(0.0F, hsv.b * factor));
    return ToRgb(hsv);
  });
}

// Sums of channels are kept in double, in the order of pixels.
void Contrast(tw::Frame f, tw::In<tw::Any> images, tw::In<float> contrast_factor, tw::Out<tw::Any> output) {
  if (images.size() == 0) return;
  if (images.rank() < 3) Invalid("images " + DimsText(images.v) + " must have height, width and channels");
  const int64_t channels = images.dim(-1), pixels = images.dim(-2) * images.dim(-3), of_image = pixels * channels;
  const float factor = contrast_factor[0];
  ParallelFor(f.f, int64_t(images.size()) / of_image, Cost(of_image, 4), [&](int64_t begin, int64_t end) {
    const TempArray<double> sums(f.f, size_t(channels));
    const TempArray<float> line(f.f, size_t(channels));
    for (int64_t image = begin; image < end; ++image) {
      std::fill_n(sums.get(), channels, 0.0);
      for (int64_t i = 0; i < pixels; ++i) {
        ReadNumbers(images.v, image * of_image + i * channels, channels, line.get());
        for (int64_t c = 0; c < channels; ++c) sums[size_t(c)] += double(line[size_t(c)]);
      }
      for (int64_t i = 0; i < pixels; ++i) {
        ReadNumbers(images.v, image * of_image + i * channels, channels, line.get());
        for (int64_t c = 0; c < channels; ++c) {
          const float mean = float(sums[size_t(c)] / double(pixels));
          line[size_t(c)] = (line[size_t(c)] - mean) * factor + mean;
        }
        WriteNumbers(output.v(), image * of_image + i * channels, channels, line.get());
      }
    }
  });
}

}  // namespace

void register_color(tw::Plugin& p) {
  p.kernel<Convert<true>>("RGBToHSV @CPU");
  p.kernel<Convert<false>>("HSVToRGB @CPU");
  p.kernel<Hue>("AdjustHue @CPU");
  p.kernel<Saturation>("AdjustSaturation @CPU");
  p.kernel<Contrast>("AdjustContrastv2 @CPU");
}

}  // namespace thalweg::cpu
