// Images under windows: what the attributes of convolutions and poolings say, and tensors with channels first, which kernels see with
// channels last.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_IMAGES_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_IMAGES_H_

#include <algorithm>
#include <deque>

#include "kernels/copy.h"

namespace thalweg::opencl {

// Of a convolution: the results, or one of its gradients.
enum class ConvolutionPart { kForward, kImages, kFilter };
// Of a pooling: the largest elements or the means under windows, or what the gradient of the means is for the images.
enum class PoolPart { kLargest, kMean, kMeanImages };

// As in window.h of plugins/common/device.
struct Window {
  Size n, height, width, channels, pitch, out_height, out_width, filter_height, filter_width, stride_height, stride_width, dilation_height,
      dilation_width, before_height, before_width;
  Size windows() const { return n * out_height * out_width; }
  Size places() const { return n * height * width; }
  Size taps() const { return filter_height * filter_width; }
};

// Tensors whose channels come first or last, [n, channels, ...] or [n, ..., channels], as kernels see them: last.
class Channels {
 public:
  explicit Channels(bool first) : first_(first) {}
  bool first() const { return first_; }
  // [n, ..., channels], whatever the order.
  Dims Last(Dims dims) const {
    if (first_) std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
    return dims;
  }

  class Call;

 private:
  bool first_;
};

// The memory of a call, with channels last.
class Channels::Call {
 public:
  Call(const Channels& channels, const Copy& copy, const tw_frame* f) : channels_(channels), copy_(copy), f_(f) {}
  Place In(const tw_view* v);   // what v holds
  Place Out(const tw_view* v);  // where results for v go; Finish moves them there
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
  explicit Images(const tw::Attrs& n);  // of attributes data_format, padding and, as far as there are any, strides, dilations and ksize
  // The same with sizes that come as tensors of the host.
  Images With(const tw_view* ksize, const tw_view* strides) const;

  // For images and results of these dims (in the node's own order) and a filter or ksize of this size; refuses what does not fit.
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
