// A function made by MAP or MAP_PAIRS of common.cl, ready to be called.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_MAP_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_MAP_H_

#include <algorithm>
#include <bit>

#include "kernels/kernel.h"

namespace thalweg::opencl {

// How many items of cheap work go into a group: a power of two, 256 where the device allows it.
inline size_t GroupSize(const Kernel& kernel) { return std::bit_floor(std::min<size_t>(kernel.largest_group(), 256)); }

class Map {
 public:
  Map(const tw::Node& node, const char* name) : kernel_(node, name), width_(kernel_.device().tile().width) {}

  // views: the inputs, then the output; all of `n` elements.
  template <class... Views>
  void Run(const tw_frame* f, cl_ulong n, const Views*... views) const {
    if (n) kernel_.Run(f, {(n + width_ - 1) / width_, 1}, {GroupSize(kernel_), 1}, views..., n);
  }

 private:
  Kernel kernel_;
  size_t width_;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_MAP_H_
