// One call of the library: a convolution, or one of its gradients, of dense images with channels last, on the calling thread. Threads: any,
// each with scratch memory of its own.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_CONVOLUTION_CALL_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_CONVOLUTION_CALL_H_

#include <memory>

#include "kernels/convolution.h"

namespace thalweg::onednn {

inline uint64_t ElementSize(dnnl_data_type_t type) { return type == dnnl_f32 ? 4 : 2; }

// The filter of `part` as a program has it: the first channels of that of `whole`.
Layout PlainFilter(const Api& api, dnnl_data_type_t type, const Sizes& part, const Sizes& whole);

class ConvolutionCall {
 public:
  // Throws UNIMPLEMENTED where the library has no fast code.
  ConvolutionCall(const Api& api, const Sizes& sizes, Pass pass, dnnl_data_type_t type);

  const Sizes& sizes() const { return sizes_; }
  const Layout& filter() const { return filter_; }  // of its gradient: of float
  uint64_t scratch() const { return primitive_->scratch(); }
  // Of the three what the pass makes is written.
  dnnl_status_t Run(const void* images, const void* filter, const void* results, char* scratch) const;

 private:
  Sizes sizes_;
  Pass pass_;
  Layout images_, filter_, results_;
  std::unique_ptr<Primitive> primitive_;
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_CONVOLUTION_CALL_H_
