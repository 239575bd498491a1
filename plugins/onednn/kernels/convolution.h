// A convolution of known sizes, or one of its gradients, by oneDNN: two or three axes in space, channels last, groups. It is cut into
// pieces that sizes alone decide, each one call of the library: images, and where there are few of them, bands of rows. The gradient of a
// filter sums pieces in order. Threads: Run from any, several at once, each with scratch memory of its own.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_CONVOLUTION_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_CONVOLUTION_H_

#include <memory>
#include <vector>

#include "kernels/epilogue.h"
#include "kernels/filter_pack.h"
#include "kernels/slots.h"
#include "kernels/window.h"
#include "primitive.h"

namespace thalweg::onednn {

struct Sizes {
  int64_t batch, in, out;  // images, channels
  int64_t groups;          // each reads its own channels
  bool depthwise;          // the filter is [window.., in, out / in] instead of [window.., in / groups, out]
  std::vector<cpu::WindowAxis> axes;
  bool operator==(const Sizes& o) const;
};

enum class Pass { kForward, kInput, kFilter };

class Convolution {
 public:
  // type: of all tensors, dnnl_f32 or dnnl_bf16. Throws UNIMPLEMENTED where the library has no fast code.
  Convolution(const Api& api, const Sizes& sizes, Pass pass, dnnl_data_type_t type);

  const Sizes& sizes() const { return sizes_; }
  uint64_t scratch() const;  // bytes
  // first, second: input and filter, filter and result's gradient, or input and result's gradient. epilogue: of a forward pass of float.
  void Run(const tw_frame* f, const void* first, const void* second, const Epilogue& epilogue, void* to, char* scratch) const;

  // The filter as the library wants it: packed once where it never changes, and then given to Run as `packed`.
  uint64_t packed_bytes() const { return filter_bytes_; }
  void Pack(const tw_frame* f, const void* filter, void* packed, char* scratch) const;  // f: or NULL, for the calling thread alone
  void RunPacked(const tw_frame* f, const void* images, const void* packed, const Epilogue& epilogue, void* to, char* scratch) const;

 private:
  struct Kind {  // pieces of one size
    std::unique_ptr<Primitive> primitive;
    Layout images, filter, results;
    int64_t points;  // of the results
  };
  struct Piece {
    size_t kind;
    int64_t images_at, results_at;  // elements from the start of the tensors
  };

  void Cut();
  void Add(int64_t batch, int64_t first_image, int64_t first_row, int64_t rows);
  Kind Make(int64_t batch, const std::vector<cpu::WindowAxis>& axes) const;
  Layout PlainFilter(dnnl_data_type_t type) const;
  void RunFilter(const tw_frame* f, const void* images, const void* results, void* to, char* scratch) const;
  uint64_t piece_scratch() const;

  const Api& api_;
  Sizes sizes_;
  Pass pass_;
  dnnl_data_type_t type_;
  std::vector<Kind> kinds_;
  std::vector<int64_t> kind_batch_;
  std::vector<std::vector<cpu::WindowAxis>> kind_axes_;
  std::vector<Piece> pieces_;
  std::unique_ptr<Primitive> turn_;  // the filter into the library's layout, or its gradient out of it
  Layout plain_filter_, filter_;
  FilterPack pack_;  // in place of turn_ where it knows the layout
  const int slots_ = cpu::WorkerSlots();
  uint64_t filter_bytes_ = 0;
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_CONVOLUTION_H_
