// Copies the gradient of a filter, as the sum of some parts, out of the library's float layout:
// blocks of 16 inputs of 16 outputs each. It adds, rounds and moves in one pass, which the
// library's copy does not. Threads: any.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_FILTER_UNPACK_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_FILTER_UNPACK_H_

#include <vector>

#include "kernels/convolution.h"

namespace thalweg::onednn {

class FilterUnpack {
 public:
  FilterUnpack() = default;
  // Unpacks to the filter of `part`, which is the first channels of a filter [window.., in, out] of
  // `whole`, of dnnl_f32 or dnnl_bf16.
  FilterUnpack(const Api& api, const Sizes& part, const Sizes& whole, dnnl_data_type_t type, const Layout& from);

  bool known() const { return known_; }
  // The parts are `step` floats apart and are added in order. REQUIRES: known. If f is NULL, runs
  // on the calling thread only.
  void Run(const tw_frame* f, const float* packed, int64_t parts, int64_t step, char* filter) const;

 private:
  void Row(const float* packed, int64_t parts, int64_t step, char* filter) const;

  int64_t in_ = 0, out_ = 0, taps_ = 0;
  int64_t row_ = 0, tap_ = 0;  // the distance of inputs, and of taps, in elements
  std::vector<int64_t> windows_;
  void (*round_)(const float* x, uint16_t* y, int64_t n) = nullptr;  // to bfloat16; NULL: the filter is of float
  Layout from_{};
  bool known_ = false;
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_FILTER_UNPACK_H_
