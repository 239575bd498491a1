// ResizeArea and ResizeBicubic with its gradient. Positions and weights are computed in float with
// TensorFlow's steps.
#include <cmath>

#include "kernels/register.h"
#include "kernels/resample.h"

namespace thalweg::cpu {
namespace {

// Returns how many pixels of `in` a pixel of `out` covers.
float Scale(bool corners, int64_t in, int64_t out) { return corners && out > 1 ? float(in - 1) / float(out - 1) : float(in) / float(out); }

// A result is the mean of the pixels that its area covers, each with the covered part of it.
AxisWeights AreaWeights(const tw_frame* f, bool corners, int64_t in, int64_t out) {
  AxisWeights weights(f, in);
  const float scale = Scale(corners, in, out);
  for (int64_t o = 0; o < out; ++o) {
    const float from = float(o) * scale, to = float(o + 1) * scale;
    for (int64_t i = int64_t(std::floor(from)), end = int64_t(std::ceil(to)); i < end; ++i) {
      const float first = float(i), next = float(i + 1);
      const float part = first < from ? (next > to ? scale : next - from) : (next > to ? to - first : 1.0F);
      weights.Add(std::clamp<int64_t>(i, 0, in - 1), part / scale);
    }
    weights.Close();
  }
  return weights;
}

// The cubic kernel at distance x. TensorFlow reads it from a table of 1024 places per pixel.
float Cubic(double a, float x) { return float(x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a); }

AxisWeights CubicWeights(const tw_frame* f, bool corners, bool half_pixels, int64_t in, int64_t out) {
  constexpr float kPlaces = 1024;
  AxisWeights weights(f, in);
  const float scale = Scale(corners, in, out);
  const double a = half_pixels ? -0.5 : -0.75;
  for (int64_t o = 0; o < out; ++o) {
    const float at = half_pixels ? (float(o) + 0.5F) * scale - 0.5F : float(o) * scale, floor = std::floor(at);
    const float delta = float(std::lrint((at - floor) * kPlaces)) / kPlaces;
    const int64_t base = int64_t(floor);
    float parts[4] = {Cubic(a, 1 + delta), Cubic(a, delta), Cubic(a, 1 - delta), Cubic(a, 2 - delta)};
    if (half_pixels) {  // places outside the image do not count
      float sum = 0;
      for (int64_t k = 0; k < 4; ++k) {
        const int64_t i = base - 1 + k;
        if (i < 0 || i >= in) parts[k] = 0;
        sum += parts[k];
      }
      if (std::abs(sum) >= 1000 * std::numeric_limits<float>::min())
        for (float& part : parts) part *= 1 / sum;
    }
    for (int64_t k = 0; k < 4; ++k) weights.Add(std::clamp<int64_t>(base - 1 + k, 0, in - 1), parts[k]);
    weights.Close();
  }
  return weights;
}

void WantPixels(const tw_view* original) {
  if (original->rank != 4) Invalid("images must have rank 4, but they are " + DimsText(original));
  if (original->dims[1] == 0 || original->dims[2] == 0) Invalid("images of " + DimsText(original) + " have no pixels");
}

class Area {
 public:
  explicit Area(const tw::Node& n) : corners_(n.b("align_corners")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> images, tw::In<int32_t>, tw::Out<float> resized) const {
    if (resized.size() == 0) return;
    WantPixels(images.v);
    Resample(f.f, images.v, AreaWeights(f.f, corners_, images.dim(1), resized.dim(1)),
             AreaWeights(f.f, corners_, images.dim(2), resized.dim(2)), resized.v());
  }

 private:
  bool corners_;
};

class Bicubic {
 public:
  explicit Bicubic(const tw::Node& n) : corners_(n.b("align_corners")), half_pixels_(n.b("half_pixel_centers")) {}

 protected:
  AxisWeights Along(const tw_frame* f, int64_t in, int64_t out) const { return CubicWeights(f, corners_, half_pixels_, in, out); }

 private:
  bool corners_, half_pixels_;
};

struct BicubicForward : Bicubic {
  using Bicubic::Bicubic;
  void operator()(tw::Frame f, tw::In<tw::Any> images, tw::In<int32_t>, tw::Out<float> resized) const {
    if (resized.size() == 0) return;
    WantPixels(images.v);
    Resample(f.f, images.v, Along(f.f, images.dim(1), resized.dim(1)), Along(f.f, images.dim(2), resized.dim(2)), resized.v());
  }
};

struct BicubicBackward : Bicubic {
  using Bicubic::Bicubic;
  void operator()(tw::Frame f, tw::In<float> grads, tw::In<tw::Any>, tw::Out<tw::Any> output) const {
    if (output.size() == 0) return;
    Resample(f.f, grads.v, Along(f.f, output.dim(1), grads.dim(1)).Transposed(), Along(f.f, output.dim(2), grads.dim(2)).Transposed(),
             output.v());
  }
};

}  // namespace

void register_resize_area(tw::Plugin& p) {
  p.kernel<Area>("ResizeArea @CPU");
  p.kernel<BicubicForward>("ResizeBicubic @CPU");
  p.kernel<BicubicBackward>("ResizeBicubicGrad @CPU");
}

}  // namespace thalweg::cpu
