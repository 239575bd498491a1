// One call of the library: a convolution, or one of its gradients, of dense images with channels
// last, on the calling thread. Threads: any, each with scratch memory of its own.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_CONVOLUTION_CALL_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_CONVOLUTION_CALL_H_

#include <memory>

#include "kernels/convolution.h"

namespace thalweg::onednn {

inline uint64_t ElementSize(dnnl_data_type_t type) { return type == dnnl_f32 ? 4 : 2; }

// Returns the layout of the filter of `part` in a program: the first channels of the filter of
// `whole`.
Layout PlainFilter(const Api& api, dnnl_data_type_t type, const Sizes& part, const Sizes& whole);

class ConvolutionCall {
 public:
  // Throws UNIMPLEMENTED if the library has no fast code.
  ConvolutionCall(const Api& api, const Sizes& sizes, Pass pass, dnnl_data_type_t type);

  const Sizes& sizes() const { return sizes_; }
  const Layout& filter() const { return filter_; }  // for a filter's gradient: of float
  uint64_t scratch() const { return primitive_->scratch(); }
  // Writes the one of the three tensors that the pass computes.
  dnnl_status_t Run(const void* images, const void* filter, const void* results, char* scratch) const;

 private:
  Sizes sizes_;
  Pass pass_;
  Layout images_, filter_, results_;
  std::unique_ptr<Primitive> primitive_;
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_CONVOLUTION_CALL_H_
