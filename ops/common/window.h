// Windows that slide over images: what convolutions and pooling share. Images have four axes, volumes five, ordered as `data_format` says.
#pragma once
#include "ops/common/grad.h"

namespace thalweg::ops {

// Where the axes of a batch of images are; those of space (depth, height, width) follow one another.
struct ImageAxes {
  size_t batch = 0, first = 1, channels = 3, spaces = 2;
  size_t rank() const { return spaces + 2; }
  size_t space(size_t k) const { return first + k; }
};

// Reads and checks data_format, strides, padding and, where the op has them, explicit_paddings and dilations.
class Windows {
 public:
  // strides: for ops that have them as an input in place of the attribute.
  explicit Windows(const tw::Attrs& attrs, const Dims* strides = nullptr);
  const ImageAxes& axes() const { return axes_; }
  // How many positions a window of that size takes along axis of space k, of that size.
  int64_t OutSize(const tw::Shape& s, size_t k, int64_t in, int64_t window) const;

 private:
  struct Line {
    int64_t stride = 1, dilation = 1, before = 0, after = 0;
  };
  ImageAxes axes_;
  bool same_ = false;
  std::vector<Line> lines_;
};

// The attributes of a convolution or pooling node, to be handed to its backward ops.
struct WindowAttrs {
  Dims ksize, strides, explicit_paddings, dilations;
  std::string_view padding, data_format;
  explicit WindowAttrs(const tw::Attrs& attrs);
};

}  // namespace thalweg::ops
