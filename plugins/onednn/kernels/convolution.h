// A convolution of known sizes, or one of its gradients, by oneDNN: two or three spatial axes,
// channels last, groups. It is cut into pieces that depend only on the sizes and the machine; each
// piece is one call of the library. Threads: any number of Runs at once, each with scratch memory
// of its own.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_CONVOLUTION_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_CONVOLUTION_H_

#include <memory>
#include <vector>

#include "kernels/epilogue.h"
#include "kernels/window.h"
#include "primitive.h"

namespace thalweg::onednn {

struct Sizes {
  int64_t batch, in, out;  // images, channels
  int64_t groups;          // each group reads its own channels
  bool depthwise;          // the filter is [window.., in, out / in] instead of [window.., in / groups, out]
  std::vector<cpu::WindowAxis> axes;
  bool operator==(const Sizes& o) const;

  int64_t images() const { return batch * Points(&cpu::WindowAxis::in); }    // the points of all images
  int64_t results() const { return batch * Points(&cpu::WindowAxis::out); }  // the points of all results
  int64_t taps() const { return Points(&cpu::WindowAxis::window); }
  int64_t Points(int64_t cpu::WindowAxis::* of) const;
};

enum class Pass { kForward, kInput, kFilter };

class Convolution {
 public:
  virtual ~Convolution() = default;

  virtual const Sizes& sizes() const = 0;
  virtual uint64_t scratch() const = 0;  // bytes
  // first, second: input and filter, filter and result's gradient, or input and result's gradient,
  // by pass. epilogue: only for a forward pass of float.
  virtual void Run(const tw_frame* f, const void* first, const void* second, const Epilogue& epilogue, void* to, char* scratch) const = 0;

  // The filter in the library's layout: a constant filter is packed once and then given to
  // RunPacked.
  virtual uint64_t packed_bytes() const = 0;
  virtual void Pack(const void* filter, void* packed, char* scratch) const = 0;
  // Only for a forward pass.
  virtual void RunPacked(const tw_frame* f, const void* images, const void* packed, const Epilogue& epilogue, void* to,
                         char* scratch) const = 0;
};

// type: of all tensors, dnnl_f32 or dnnl_bf16. Throws UNIMPLEMENTED if the library has no fast
// code.
std::shared_ptr<const Convolution> MakeConvolution(const Api& api, const Sizes& sizes, Pass pass, dnnl_data_type_t type);

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_CONVOLUTION_H_
