// Windows that slide over images: the attributes of convolutions and poolings, and the index
// arithmetic that follows from them. Sizes along an axis fit in 31 bits, so no product of two of
// them overflows.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_WINDOW_H_
#define THALWEG_PLUGINS_CPU_KERNELS_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/element.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// One axis of an image under a window. Element t of window o is at in-position o * stride - before
// + t * dilation.
struct WindowAxis {
  int64_t in = 0, out = 0;
  int64_t window = 1, stride = 1, dilation = 1;
  int64_t before = 0;  // padding
};

// The positions of the axes in an image tensor. The axis order of filters is always height, width,
// in, out.
struct ImageFormat {
  bool channels_first = false;  // NCHW
  int height() const { return channels_first ? 2 : 1; }
  int width() const { return height() + 1; }
  int channel() const { return channels_first ? 1 : 3; }
};

// Strides, dilations and padding of a node, checked once when the kernel is made.
struct WindowAttrs {
  ImageFormat format;
  int64_t stride[2] = {1, 1}, dilation[2] = {1, 1}, window[2] = {1, 1};  // height, width; window only for poolings (ksize)
  enum Padding { kSame, kValid, kExplicit } padding = kValid;
  int64_t before[2] = {0, 0}, after[2] = {0, 0};  // explicit padding

  explicit WindowAttrs(const tw::Attrs& n) {
    const std::string_view name = n.find("data_format") ? n.s("data_format") : "NHWC";
    if (name != "NHWC" && name != "NCHW") Invalid("data_format is '" + std::string(name) + "'; kernels exist for NHWC and NCHW");
    format.channels_first = name == "NCHW";
    if (n.find("strides")) Read(n, "strides", stride);
    if (n.find("dilations")) Read(n, "dilations", dilation);
    if (n.find("ksize")) Read(n, "ksize", window);
    ReadPadding(n);
  }

  // Returns the same attributes with ksize and strides from inputs.
  WindowAttrs With(const tw_view* ksize, const tw_view* strides) const {
    WindowAttrs w = *this;
    const Ints sizes = ReadInts(ksize, "ksize"), steps = ReadInts(strides, "strides");
    w.Take(sizes.at, uint64_t(sizes.n), "ksize", w.window);
    w.Take(steps.at, uint64_t(steps.n), "strides", w.stride);
    return w;
  }

  // Returns the window's positions along height (axis 0) or width (axis 1) of an image with `in`
  // pixels; `size` is the window's size.
  WindowAxis Along(int axis, int64_t in, int64_t size) const {
    WindowAxis a{in, 0, size, stride[axis], dilation[axis], before[axis]};
    Bound(in, "image size");
    Bound(size, "window size");
    const int64_t reach = std::max<int64_t>(0, (size - 1) * a.dilation + 1);
    if (padding == kSame) {
      a.out = (in + a.stride - 1) / a.stride;
      a.before = std::max<int64_t>(0, (a.out - 1) * a.stride + reach - in) / 2;
    } else {
      const int64_t room = in + before[axis] + after[axis] - reach;
      a.out = room < 0 ? 0 : room / a.stride + 1;
    }
    return a;
  }

 private:
  static void Bound(int64_t v, const char* what) {
    if (v < 0 || v > INT32_MAX) Invalid(std::string(what) + " is " + tw::text(v) + "; it must lie in [0, 2147483647]");
  }
  void Read(const tw::Attrs& n, const char* name, int64_t* to) const {
    const tw_attr& list = n.at(name);
    Take(static_cast<const int64_t*>(list.data), list.count, name, to);
  }
  void Take(const int64_t* v, uint64_t count, const char* name, int64_t* to) const {
    if (count != 4) Invalid(std::string(name) + " has " + tw::text(int64_t(count)) + " entries; it needs one per axis, 4");
    for (int axis = 0; axis < 4; ++axis)
      if (v[axis] < 1 || v[axis] > INT32_MAX)
        Invalid(std::string(name) + " is " + tw::text(v, 4) + "; every entry must be at least 1 and fit in 31 bits");
    if (v[0] != 1 || v[format.channel()] != 1)
      Invalid(std::string(name) + " is " + tw::text(v, 4) + "; along batch and channels it must be 1");
    to[0] = v[format.height()];
    to[1] = v[format.width()];
  }
  void ReadPadding(const tw::Attrs& n) {
    const std::string_view name = n.s("padding");
    if (name == "SAME")
      padding = kSame;
    else if (name == "VALID")
      padding = kValid;
    else if (name == "EXPLICIT")
      padding = kExplicit;
    else
      Invalid("padding is '" + std::string(name) + "'; known: SAME, VALID, EXPLICIT");
    // Quantised convolutions have `padding_list`, which replaces any `padding`.
    const tw_attr* replacing = n.find("padding_list");
    if (replacing && replacing->count > 0) padding = kExplicit;
    if (padding != kExplicit) return;
    const tw_attr& list = replacing ? *replacing : n.at("explicit_paddings");
    auto* v = static_cast<const int64_t*>(list.data);
    if (list.count != 8)
      Invalid("explicit_paddings has " + tw::text(int64_t(list.count)) + " entries; EXPLICIT padding needs 8, before and after each axis");
    for (int axis = 0; axis < 4; ++axis) {
      Bound(v[2 * axis], "an explicit padding");
      Bound(v[2 * axis + 1], "an explicit padding");
      if ((axis == 0 || axis == format.channel()) && (v[2 * axis] || v[2 * axis + 1]))
        Invalid("explicit_paddings is " + tw::text(v, 8) + "; along batch and channels it must be 0");
    }
    for (int axis = 0; axis < 2; ++axis) {
      before[axis] = v[2 * (format.height() + axis)];
      after[axis] = v[2 * (format.height() + axis) + 1];
    }
  }
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_WINDOW_H_
