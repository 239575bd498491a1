// Copies a filter into the layouts that the library's convolutions of one group prefer. This is
// faster than the library's general copy, which also runs on one thread only. Threads: any.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_FILTER_PACK_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_FILTER_PACK_H_

#include <vector>

#include "kernels/convolution.h"

namespace thalweg::onednn {

// Returns where a tap of a filter of one group begins in the library's layout, in elements. Taps
// are counted with the last axis fastest.
int64_t TapAt(const Layout& filter, const std::vector<int64_t>& windows, int64_t tap);
std::vector<int64_t> WindowsOf(const Sizes& sizes);

class FilterPack {
 public:
  FilterPack() = default;
  // Packs the filter of `part`, which is the first channels of a filter [window.., in, out] of
  // `whole`, of dnnl_f32 or dnnl_bf16.
  FilterPack(const Sizes& part, const Sizes& whole, dnnl_data_type_t type, const Layout& to);

  bool known() const { return kind_ != Kind::kUnknown; }
  // REQUIRES: known. If f is NULL, runs on the calling thread only.
  void Run(const tw_frame* f, const char* filter, char* packed) const;

 private:
  enum class Kind {
    kUnknown,
    kRows,    // for each block of outputs and each tap, the adjacent numbers of one input
    kPairs,   // the same for two inputs, interleaved
    kTurned,  // 16 adjacent inputs for each output of a block; for bfloat16, for each two interleaved outputs
  };
  Kind KindOf(dnnl_data_type_t type) const;
  void CopyRow(int64_t row, int64_t at, int64_t o, int64_t end, const char* filter, char* packed) const;
  void TurnRows(int64_t row, int64_t at, int64_t o, int64_t end, const char* filter, char* packed) const;

  int64_t in_ = 0, out_ = 0, taps_ = 0;
  int64_t row_ = 0, tap_ = 0;  // the distance of inputs, and of taps, in elements
  std::vector<int64_t> windows_;
  uint64_t size_ = 0;  // the size of an element
  Layout to_{};
  Kind kind_ = Kind::kUnknown;
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_FILTER_PACK_H_
