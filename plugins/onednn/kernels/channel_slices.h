// A convolution of few points with a large filter, or one of its gradients, cut by the channels
// that are written. Each piece copies its part of the filter into the library's layout, or its
// gradient out of it, while that part is in the cache. A copy of the whole filter would go through
// memory twice more.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_CHANNEL_SLICES_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_CHANNEL_SLICES_H_

#include <memory>
#include <vector>

#include "kernels/convolution_call.h"
#include "kernels/filter_pack.h"
#include "kernels/filter_unpack.h"
#include "kernels/slots.h"

namespace thalweg::onednn {

// Returns the channels of a slice, or 0 if slicing does not pay.
int64_t SliceWidth(const Api& api, const Sizes& sizes, Pass pass, dnnl_data_type_t type);

class ChannelSlices final : public Convolution {
 public:
  ChannelSlices(const Api& api, const Sizes& sizes, Pass pass, dnnl_data_type_t type, int64_t width);

  const Sizes& sizes() const override { return sizes_; }
  uint64_t scratch() const override { return room_ * uint64_t(std::min<int64_t>(slots_, slices_)); }
  void Run(const tw_frame* f, const void* first, const void* second, const Epilogue& epilogue, void* to, char* scratch) const override;
  uint64_t packed_bytes() const override { return filter_bytes_ * uint64_t(slices_); }
  void Pack(const void* filter, void* packed, char* scratch) const override;
  void RunPacked(const tw_frame* f, const void* images, const void* packed, const Epilogue& epilogue, void* to,
                 char* scratch) const override;

 private:
  // The parts that slices of one width share.
  struct Kind {
    Kind(const Api& api, const Sizes& part, const Sizes& whole, Pass pass, dnnl_data_type_t type);
    ConvolutionCall call;
    Layout plain;
    Primitive turn;
    FilterPack pack;  // replaces `turn` if it knows the layout
    FilterUnpack unpack;
  };
  struct Slice {
    const Kind* kind;
    int64_t first, width;  // channels
    uint64_t filter_at;    // offset in bytes
  };

  Slice At(int64_t i) const;
  // Calls part(slice, number, its memory) for each slice and returns the library's status.
  // REQUIRES: part does not throw. If f is NULL, runs on the calling thread only.
  template <class F>
  void ForEach(const tw_frame* f, const char* what, char* scratch, F&& part) const;
  dnnl_status_t PackSlice(const Slice& s, const char* filter, char* packed, char* scratch) const;
  dnnl_status_t RunSlice(const Slice& s, const char* from, const char* packed, const Epilogue& epilogue, char* to, char* mine) const;
  dnnl_status_t RunFilterSlice(const Slice& s, const char* images, const char* results, char* to, char* mine) const;
  void CopyChannels(const Slice& s, const char* from, int64_t from_row, char* to, int64_t to_row) const;
  char* Channels(char* mine) const { return mine + filter_bytes_; }
  char* Scratch(char* mine) const { return mine + filter_bytes_ + channel_bytes_; }

  const Sizes sizes_;
  const Pass pass_;
  const int64_t width_, channels_, slices_;
  const uint64_t size_;  // the size of an element
  Kind full_;
  std::unique_ptr<Kind> last_;  // the last slice, if it is narrower; else NULL
  const int slots_ = cpu::WorkerSlots();
  // Sizes of a worker's memory: its part of the filter, adjacent channels, and in all, with the
  // library's scratch.
  uint64_t filter_bytes_ = 0, channel_bytes_ = 0, room_ = 0;
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_CHANNEL_SLICES_H_
