// The attributes of ops with windows: convolutions and pools. Threads: values.
#pragma once
#include <string>
#include <vector>

#include "table.h"

namespace thalweg::onnx {

// Per spatial axis.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, before, after;  // before, after: padding
  size_t axes() const { return kernel.size(); }
  int64_t reach(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }  // of the dilated kernel
  bool padded() const;
  bool dilated() const;
};

// Reads strides, dilations, pads and auto_pad for a kernel over the spatial axes of x (its axes from 2 on), and checks them. With auto_pad
// SAME and a stride above 1, the sizes of x must be known.
Window ReadWindow(Node& n, const Value& x, std::vector<int64_t> kernel);
// Entries for batch and channels in front of those of the spatial axes: "NCHW" attributes of our ops.
std::vector<int64_t> Full(const std::vector<int64_t>& spatial, int64_t others);
// x with padding of the spatial axes by `value`.
Value PadSpatial(Builder& b, const Value& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after, const Value& value);

}  // namespace thalweg::onnx
