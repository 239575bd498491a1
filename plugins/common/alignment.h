// Where the pixels of a resized image lie in the original, for the kernels of ResizeBilinear and
// ResizeNearestNeighbor. Positions are computed in float with TensorFlow's steps, so ties select the
// same pixels on every device.
#ifndef THALWEG_PLUGINS_COMMON_ALIGNMENT_H_
#define THALWEG_PLUGINS_COMMON_ALIGNMENT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::common {

// The sources of a result along one axis: (1 - weight) of `low` plus weight of `high`.
struct Mix {
  int64_t low, high;
  float weight;
};

struct Alignment {
  bool corners, half_pixels;
  explicit Alignment(const tw::Attrs& n) : corners(n.b("align_corners")), half_pixels(n.b("half_pixel_centers")) {
    if (corners && half_pixels) {
      throw tw::Error{TW_INVALID_ARGUMENT, "align_corners and half_pixel_centers are both true; they exclude each other"};
    }
  }
  // Returns how many pixels of `in` a pixel of `out` covers.
  float Scale(int64_t in, int64_t out) const { return corners && out > 1 ? float(in - 1) / float(out - 1) : float(in) / float(out); }
  // Return the sources of result o along an axis of `in` pixels. scale: Scale(in, out).
  Mix Bilinear(int64_t o, int64_t in, float scale) const {
    const float at = half_pixels ? (float(o) + 0.5f) * scale - 0.5f : float(o) * scale, floor = std::floor(at);
    return {std::clamp<int64_t>(int64_t(floor), 0, in - 1), std::clamp<int64_t>(int64_t(std::ceil(at)), 0, in - 1), at - floor};
  }
  int64_t Nearest(int64_t o, int64_t in, float scale) const {
    const float at = half_pixels ? (float(o) + 0.5f) * scale : float(o) * scale;
    return std::clamp<int64_t>(int64_t(corners ? std::round(at) : std::floor(at)), 0, in - 1);
  }
};

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_ALIGNMENT_H_
