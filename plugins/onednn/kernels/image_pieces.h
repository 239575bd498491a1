// A convolution cut by images and, if there are few of them, by bands of rows. The gradient of a
// filter adds its pieces in order.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_IMAGE_PIECES_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_IMAGE_PIECES_H_

#include <memory>
#include <vector>

#include "kernels/convolution_call.h"
#include "kernels/filter_pack.h"
#include "kernels/filter_unpack.h"
#include "kernels/slots.h"

namespace thalweg::onednn {

class ImagePieces final : public Convolution {
 public:
  ImagePieces(const Api& api, const Sizes& sizes, Pass pass, dnnl_data_type_t type);

  const Sizes& sizes() const override { return sizes_; }
  uint64_t scratch() const override;
  void Run(const tw_frame* f, const void* first, const void* second, const Epilogue& epilogue, void* to, char* scratch) const override;
  uint64_t packed_bytes() const override { return filter_bytes_; }
  void Pack(const void* filter, void* packed, char* scratch) const override { PackFor(nullptr, filter, packed, scratch); }
  void RunPacked(const tw_frame* f, const void* images, const void* packed, const Epilogue& epilogue, void* to,
                 char* scratch) const override;

 private:
  struct Piece {
    size_t call;
    int64_t images_at, results_at;  // elements from the start of the tensors
  };

  void Cut();
  void Add(int64_t batch, int64_t first_image, int64_t first_row, int64_t rows);
  void PackFor(const tw_frame* f, const void* filter, void* packed, char* scratch) const;
  void RunFilter(const tw_frame* f, const void* images, const void* results, void* to, char* scratch) const;
  uint64_t piece_scratch() const;

  const Api& api_;
  Sizes sizes_;
  Pass pass_;
  dnnl_data_type_t type_;
  std::vector<std::unique_ptr<ConvolutionCall>> calls_;  // one for all pieces of one size
  std::vector<Piece> pieces_;
  std::unique_ptr<Primitive> turn_;  // copies the filter into the library's layout, or its gradient out of it
  Layout plain_filter_, filter_;
  FilterPack pack_;  // replaces turn_ if it knows the layout
  FilterUnpack unpack_;
  const int slots_ = cpu::WorkerSlots();
  uint64_t filter_bytes_ = 0;
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_IMAGE_PIECES_H_
