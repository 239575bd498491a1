// Images under windows: what the attributes of convolutions and poolings say, and images with channels first, which kernels see with
// channels last.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_IMAGES_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_IMAGES_H_

#include <deque>

#include "kernels/copy.h"

namespace thalweg::opencl {

// As in window.h of plugins/common/device.
struct Window {
  Size n, height, width, channels, pitch, out_height, out_width, filter_height, filter_width, stride_height, stride_width, dilation_height,
      dilation_width, before_height, before_width;
  Size windows() const { return n * out_height * out_width; }
  Size taps() const { return filter_height * filter_width; }
};

class Images {
 public:
  explicit Images(const tw::Node& n);  // of attributes data_format, strides, padding, and dilations or ksize

  // For images and results of these dims (in the node's own order) and a filter or ksize of this size; refuses what does not fit.
  Window Of(const Dims& images, Size filter_height, Size filter_width, const Dims& out) const;
  Size ksize(int axis) const { return ksize_[axis]; }
  // [n, height, width, channels], whatever the order.
  Dims Last(const Dims& dims) const { return first_ ? Dims{dims[0], dims[2], dims[3], dims[1]} : dims; }

  // The memory of a call, with channels last.
  class Call {
   public:
    Call(const Images& images, const Copy& copy, const tw_frame* f) : images_(images), copy_(copy), f_(f) {}
    Place In(const tw_view* v);   // what v holds
    Place Out(const tw_view* v);  // where results for v go; Finish moves them there
    void Finish();

   private:
    const Images& images_;
    const Copy& copy_;
    const tw_frame* f_;
    std::deque<Temporary> memory_;
    std::vector<std::pair<const tw_view*, Place>> results_;
  };

 private:
  void Read(const tw::Node& n, const char* name, Size* to) const;

  bool first_;
  enum { kSame, kValid, kExplicit } padding_;
  Size stride_[2] = {1, 1}, dilation_[2] = {1, 1}, ksize_[2] = {1, 1}, before_[2] = {0, 0}, after_[2] = {0, 0};
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_IMAGES_H_
