// ScaleAndTranslate and its gradient: each pixel is a sum of the pixels around its place, weighted
// by a kernel of their distance. Weights are computed in float with TensorFlow's steps.
#include <cmath>
#include <limits>

#include "kernels/register.h"
#include "kernels/resample.h"

namespace thalweg::cpu {
namespace {

// A function of the distance, 0 from `radius` on.
struct Sampling {
  std::string_view name;
  float radius;
  float (*at)(float x, float radius);
};

float Lanczos(float x, float radius) {
  constexpr float kPi = 3.14159265359F;
  x = std::abs(x);
  if (x > radius) return 0;
  if (x <= 1e-3F) return 1;
  return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) / (kPi * kPi * x * x);
}
float Gaussian(float x, float radius) {
  x = std::abs(x);
  const float sigma = radius / 3;
  return x >= radius ? 0 : std::exp(-x * x / (2 * sigma * sigma));
}
float Block(float x, float) {
  x = std::abs(x);
  return x < 0.5F ? 1 : x == 0.5F ? 0.5F : 0;
}
float Triangle(float x, float) {
  x = std::abs(x);
  return x < 1 ? 1 - x : 0;
}
float KeysCubic(float x, float) {
  x = std::abs(x);
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5F * x + 2.5F) * x - 4) * x + 2 : ((1.5F * x - 2.5F) * x) * x + 1;
}
float MitchellCubic(float x, float) {
  x = std::abs(x);
  if (x >= 2) return 0;
  return x >= 1 ? (((-7.0F / 18) * x + 2) * x - 10.0F / 3) * x + 16.0F / 9 : (((7.0F / 6) * x - 2) * x) * x + 8.0F / 9;
}

constexpr Sampling kSamplings[] = {
    {"lanczos1", 1, Lanczos}, {"lanczos3", 3, Lanczos},  {"lanczos5", 5, Lanczos},    {"gaussian", 1.5F, Gaussian},
    {"box", 1, Block},        {"triangle", 1, Triangle}, {"keyscubic", 2, KeysCubic}, {"mitchellcubic", 2, MitchellCubic}};

const Sampling& Named(std::string_view name) {
  for (const Sampling& s : kSamplings)
    if (s.name == name) return s;
  std::string known;
  for (const Sampling& s : kSamplings) (known += known.empty() ? "" : ", ").append(s.name);
  Invalid("kernel_type is '" + std::string(name) + "'; known: " + known);
}

class Scaled {
 public:
  explicit Scaled(const tw::Node& n) : sampling_(Named(n.s("kernel_type"))), antialias_(n.b("antialias")) {}

 protected:
  AxisWeights Along(const tw_frame* f, int64_t in, int64_t out, float scale, float translate) const {
    if (!(scale > 0)) Invalid("scale is " + std::to_string(scale) + "; it must be above 0");
    AxisWeights weights(f, in);
    const float inverse = float(1.0 / double(scale)), moved = -inverse * translate;
    const float widened = antialias_ ? std::max(inverse, 1.0F) : 1.0F, narrowed = 1 / widened, reach = sampling_.radius * widened;
    tw::TempVector<float> parts(f);
    for (int64_t o = 0; o < out; ++o, weights.Close()) {
      const float at = (float(o) + 0.5F) * inverse + moved;
      if (!(at >= 0 && at <= float(in))) continue;
      const int64_t begin = Place(std::ceil(at - reach - 0.5F), in), end = Place(std::floor(at + reach - 0.5F), in) + 1;
      parts.clear();
      float sum = 0;
      for (int64_t i = begin; i < end; ++i) {
        parts.push_back(sampling_.at((float(i) + 0.5F - at) * narrowed, sampling_.radius));
        sum += parts.back();
      }
      if (!(std::abs(sum) >= 1000 * std::numeric_limits<float>::min())) continue;
      for (int64_t i = begin; i < end; ++i) weights.Add(i, parts[size_t(i - begin)] * (1 / sum));
    }
    return weights;
  }

 private:
  static int64_t Place(float at, int64_t in) { return int64_t(std::min(std::max(at, 0.0F), float(in - 1))); }

  const Sampling& sampling_;
  bool antialias_;
};

void WantPairs(const tw_view* scale, const tw_view* translation) {
  if (scale->count != 2 || translation->count != 2)
    Invalid("scale " + DimsText(scale) + " and translation " + DimsText(translation) + " must have two entries, for height and width");
}

struct Forward : Scaled {
  using Scaled::Scaled;
  void operator()(tw::Frame f, tw::In<tw::Any> images, tw::In<int32_t>, tw::In<float> scale, tw::In<float> translation,
                  tw::Out<float> resized) const {
    WantPairs(scale.v, translation.v);
    if (resized.size() == 0) return;
    if (images.rank() != 4 || images.size() == 0) Invalid("images of " + DimsText(images.v) + " have no pixels");
    Resample(f.f, images.v, Along(f.f, images.dim(1), resized.dim(1), scale[0], translation[0]),
             Along(f.f, images.dim(2), resized.dim(2), scale[1], translation[1]), resized.v());
  }
};

struct Backward : Scaled {
  using Scaled::Scaled;
  void operator()(tw::Frame f, tw::In<float> grads, tw::In<float>, tw::In<float> scale, tw::In<float> translation,
                  tw::Out<float> output) const {
    WantPairs(scale.v, translation.v);
    if (output.size() == 0) return;
    Resample(f.f, grads.v, Along(f.f, output.dim(1), grads.dim(1), scale[0], translation[0]).Transposed(),
             Along(f.f, output.dim(2), grads.dim(2), scale[1], translation[1]).Transposed(), output.v());
  }
};

}  // namespace

void register_scale_and_translate(tw::Plugin& p) {
  p.kernel<Forward>("ScaleAndTranslate @CPU");
  p.kernel<Backward>("ScaleAndTranslateGrad @CPU");
}

}  // namespace thalweg::cpu
