// Windows over images: reads the attributes of convolutions and poolings, and converts
// channels-first tensors for kernels, which work on channels last.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_IMAGES_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_IMAGES_H_

#include <algorithm>
#include <deque>

#include "kernels/copy.h"

namespace thalweg::opencl {

// The output of a convolution kernel: the results, or one of the two gradients.
enum class ConvolutionPart { kForward, kImages, kFilter };
// The output of a pooling kernel: the largest elements or the means of the windows, or the images'
// gradient of the means.
enum class PoolPart { kLargest, kMean, kMeanImages };

// The same layout as in window.h of plugins/common/device.
struct Window {
  Size n, height, width, channels, pitch, out_height, out_width, filter_height, filter_width, stride_height, stride_width, dilation_height,
      dilation_width, before_height, before_width;
  Size windows() const { return n * out_height * out_width; }
  Size places() const { return n * height * width; }
  Size taps() const { return filter_height * filter_width; }
};

// Tensors with channels first or last, [n, channels, ...] or [n, ..., channels], presented to
// kernels with channels last.
class Channels {
 public:
  explicit Channels(bool first) : first_(first) {}
  bool first() const { return first_; }
  // Returns the dims as [n, ..., channels], in either order.
  Dims Last(Dims dims) const {
    if (first_) std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
    return dims;
  }

  class Call;

 private:
  bool first_;
};

// The memory of one call, with channels last.
class Channels::Call {
 public:
  Call(const Channels& channels, const Copy& copy, const tw_frame* f) : channels_(channels), copy_(copy), f_(f) {}
  Place In(const tw_view* v);   // the contents of v
  Place Out(const tw_view* v);  // receives the results for v; Finish copies them to v
  void Finish();

 private:
  const Channels channels_;
  const Copy& copy_;
  const tw_frame* f_;
  std::deque<Temporary> memory_;
  std::vector<std::pair<const tw_view*, Place>> results_;
};

class Images : public Channels {
 public:
  explicit Images(const tw::Attrs& n);  // reads data_format, padding and, if present, strides, dilations and ksize
  // Returns the same with ksize and strides from host tensors.
  Images With(const tw_view* ksize, const tw_view* strides) const;

  // Returns the window for images and results of these dims (in the node's own order) and a filter
  // or ksize of this size. Throws if they do not fit together.
  Window Of(const Dims& images, Size filter_height, Size filter_width, const Dims& out) const;
  Size ksize(int axis) const { return ksize_[axis]; }

 private:
  void Read(const tw::Attrs& n, const char* name, Size* to) const;
  void Set(const std::vector<int64_t>& sizes, const char* name, Size* to) const;

  enum { kSame, kValid, kExplicit } padding_;
  Size stride_[2] = {1, 1}, dilation_[2] = {1, 1}, ksize_[2] = {1, 1}, before_[2] = {0, 0}, after_[2] = {0, 0};
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_IMAGES_H_
