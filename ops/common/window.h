// Windows that slide over images, for convolutions and pooling. Images have four axes, volumes
// five, in the order of `data_format`.
#pragma once
#include "ops/common/grad.h"

namespace thalweg::ops {

// Positions of the axes of a batch of images; the axes of space (depth, height, width) are
// adjacent.
struct ImageAxes {
  size_t batch = 0, first = 1, channels = 3, spaces = 2;
  size_t rank() const { return spaces + 2; }
  size_t space(size_t k) const { return first + k; }
};

// Reads and checks strides, padding and, if the op has them, data_format, explicit_paddings and
// dilations.
class Windows {
 public:
  // strides: for ops that have them as an input instead of the attribute.
  explicit Windows(const tw::Attrs& attrs, const Dims* strides = nullptr);
  const ImageAxes& axes() const { return axes_; }
  // Returns the number of positions of a window along axis of space k. in, window: sizes along that
  // axis.
  int64_t OutSize(const tw::Shape& s, size_t k, int64_t in, int64_t window) const;

 private:
  struct Line {
    int64_t stride = 1, dilation = 1, before = 0, after = 0;
  };
  ImageAxes axes_;
  bool same_ = false;
  std::vector<Line> lines_;
};

// Attributes of a convolution or pooling node, to pass to its backward ops.
struct WindowAttrs {
  Dims ksize, strides, explicit_paddings, dilations;
  std::string_view padding, data_format;
  explicit WindowAttrs(const tw::Attrs& attrs);
};

}  // namespace thalweg::ops
