// ImageProjectiveTransformV2 and V3. Positions and bilinear weights are computed in float with
// TensorFlow's steps, so that the same pixels are chosen.
#include <algorithm>
#include <cmath>

#include "kernels/register.h"
#include "kernels/resample.h"

namespace thalweg::cpu {
namespace {

enum class Outside { kConstant, kReflect, kWrap, kNearest };

// Positions of this size and more are no longer told apart from their neighbours; larger ones would
// not fit an integer.
constexpr float kFar = 1e9F;

// Maps a position on an axis of n pixels to one inside it.
float Inside(float at, int64_t n, Outside mode) {
  if (mode == Outside::kConstant) return at;
  const auto last = float(n - 1);
  if (std::isnan(at)) return 0;
  if (mode == Outside::kReflect && n > 1) {
    const auto period = float(2 * n);
    if (at < 0) {
      // TensorFlow adds whole periods; a position just below 0 is mirrored at the border.
      at += period * std::trunc(-at / period);
      at = at < -float(n) ? at + period : -at - 1;
    } else if (at > last) {
      at -= period * std::trunc(at / period);
      if (at >= float(n)) at = period - at - 1;
    }
  } else if (mode == Outside::kWrap && n > 1) {
    if (at < 0)
      at += float(n) * (std::trunc(-at / last) + 1);
    else if (at > last)
      at -= float(n) * std::trunc(at / last);
  }
  return std::clamp(at, 0.0F, last);
}

struct Image {
  const tw_view* pixels;
  int64_t first, rows, columns, channels;  // first: the number of the image's first element
  float fill;
  bool Has(int64_t y, int64_t x) const { return y >= 0 && y < rows && x >= 0 && x < columns; }
};

template <class T>
void Read(const Image& image, int64_t y, int64_t x, float* to) {
  if (!image.Has(y, x)) {
    std::fill_n(to, image.channels, image.fill);
    return;
  }
  const T* from = reinterpret_cast<const T*>(Bytes(image.pixels)) + image.first + (y * image.columns + x) * image.channels;
  for (int64_t c = 0; c < image.channels; ++c) to[c] = float(from[c]);
}

class Project {
 public:
  explicit Project(const tw::Node& n) : nearest_(n.s("interpolation") == "NEAREST") {
    const std::string_view mode = n.s("fill_mode");
    outside_ = mode == "REFLECT"   ? Outside::kReflect
               : mode == "WRAP"    ? Outside::kWrap
               : mode == "NEAREST" ? Outside::kNearest
                                   : Outside::kConstant;
  }

 protected:
  void Run(tw::Frame f, const tw::In<tw::Any>& images, const tw::In<float>& transforms, const tw::In<int32_t>& size, float fill,
           const tw::Out<tw::Any>& output) const {
    if (images.rank() != 4 || transforms.rank() != 2 || transforms.dim(1) != 8 || size.size() != 2 ||
        (transforms.dim(0) != 1 && transforms.dim(0) != images.dim(0)))
      Invalid("images " + DimsText(images.v) + ", transforms " + DimsText(transforms.v) + " and output_shape " + DimsText(size.v) +
              " do not fit together");
    if (size[0] < 1 || size[1] < 1)
      Invalid("output_shape is [" + std::to_string(size[0]) + ", " + std::to_string(size[1]) + "]; both must be at least 1");
    const int64_t dims[] = {images.dim(0), size[0], size[1], images.dim(3)};
    Allocate(output, dims, 4);
    switch (images.v->dtype) {
      case TW_UINT8: return Of<uint8_t>(f, images, transforms, fill, output);
      case TW_INT32: return Of<int32_t>(f, images, transforms, fill, output);
      case TW_INT64: return Of<int64_t>(f, images, transforms, fill, output);
      case TW_HALF: return Of<half>(f, images, transforms, fill, output);
      case TW_BFLOAT16: return Of<bfloat16>(f, images, transforms, fill, output);
      case TW_DOUBLE: return Of<double>(f, images, transforms, fill, output);
      default: return Of<float>(f, images, transforms, fill, output);
    }
  }

 private:
  template <class T>
  void Of(tw::Frame f, const tw::In<tw::Any>& images, const tw::In<float>& transforms, float fill, const tw::Out<tw::Any>& output) const {
    const int64_t height = output.dim(1), width = output.dim(2), channels = output.dim(3);
    if (output.dim(0) == 0 || channels == 0) return;
    T* out = reinterpret_cast<T*>(output.data());
    ParallelFor(f.f, output.dim(0) * height, Cost(width, channels + 4, nearest_ ? 4 : 16), [&](int64_t begin, int64_t end) {
      const TempArray<float> room(f.f, size_t(4 * channels));
      for (int64_t r = begin; r < end; ++r) {
        const int64_t i = r / height;
        const float* t = transforms.data() + (transforms.dim(0) == 1 ? 0 : 8 * i);
        const Image image{images.v, i * images.dim(1) * images.dim(2) * channels, images.dim(1), images.dim(2), channels, fill};
        for (int64_t x = 0; x < width; ++x) Pixel(image, t, float(x), float(r % height), room.get(), out + (r * width + x) * channels);
      }
    });
  }

  template <class T>
  void Pixel(const Image& image, const float* t, float x, float y, float* room, T* out) const {
    const float scale = t[6] * x + t[7] * y + 1.0F;
    const auto write = [&](auto&& value) {
      for (int64_t c = 0; c < image.channels; ++c) out[c] = T(value(c));
    };
    if (scale == 0) return write([&](int64_t) { return image.fill; });
    const float from_x = Inside((t[0] * x + t[1] * y + t[2]) / scale, image.columns, outside_);
    const float from_y = Inside((t[3] * x + t[4] * y + t[5]) / scale, image.rows, outside_);
    if (!(std::abs(from_x) < kFar && std::abs(from_y) < kFar)) return write([&](int64_t) { return image.fill; });
    if (nearest_) {
      const auto row = int64_t(std::round(from_y)), column = int64_t(std::round(from_x));
      if (!image.Has(row, column)) return write([&](int64_t) { return image.fill; });
      const T* at = reinterpret_cast<const T*>(Bytes(image.pixels)) + image.first + (row * image.columns + column) * image.channels;
      std::copy_n(at, image.channels, out);
      return;
    }
    const float top = std::floor(from_y), left = std::floor(from_x), bottom = top + 1, right = left + 1;
    float *a = room, *b = a + image.channels, *c = b + image.channels, *d = c + image.channels;
    Read<T>(image, int64_t(top), int64_t(left), a);
    Read<T>(image, int64_t(top), int64_t(right), b);
    Read<T>(image, int64_t(bottom), int64_t(left), c);
    Read<T>(image, int64_t(bottom), int64_t(right), d);
    write([&](int64_t k) {
      const float above = (right - from_x) * a[k] + (from_x - left) * b[k], below = (right - from_x) * c[k] + (from_x - left) * d[k];
      return (bottom - from_y) * above + (from_y - top) * below;
    });
  }

  bool nearest_;
  Outside outside_;
};

class ProjectV2 : Project {
 public:
  explicit ProjectV2(const tw::Node& n) : Project(n) {}
  void operator()(tw::Frame f, tw::In<tw::Any> images, tw::In<float> transforms, tw::In<int32_t> size, tw::Out<tw::Any> output) const {
    Run(f, images, transforms, size, 0, output);
  }
};

class ProjectV3 : Project {
 public:
  explicit ProjectV3(const tw::Node& n) : Project(n) {}
  void operator()(tw::Frame f, tw::In<tw::Any> images, tw::In<float> transforms, tw::In<int32_t> size, tw::In<float> fill,
                  tw::Out<tw::Any> output) const {
    Run(f, images, transforms, size, fill[0], output);
  }
};

}  // namespace

void register_projective_transform(tw::Plugin& p) {
  p.kernel<ProjectV2>("ImageProjectiveTransformV2 @CPU");
  p.kernel<ProjectV3>("ImageProjectiveTransformV3 @CPU");
}

}  // namespace thalweg::cpu
