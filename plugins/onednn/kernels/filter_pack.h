// A filter as the library wants it, for the layouts that its convolutions of one group like best. Copying them here beats the library's
// general copy, which does not share its work either. Threads: any.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_FILTER_PACK_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_FILTER_PACK_H_

#include <vector>

#include "kernels/convolution.h"

namespace thalweg::onednn {

// Where a tap of a filter of one group begins in the library's layout, in elements. Taps count along the last axis first.
int64_t TapAt(const Layout& filter, const std::vector<int64_t>& windows, int64_t tap);
std::vector<int64_t> WindowsOf(const Sizes& sizes);

class FilterPack {
 public:
  FilterPack() = default;
  // Of the filter of `part`, the first channels of one [window.., in, out] of `whole`, of dnnl_f32 or dnnl_bf16.
  FilterPack(const Sizes& part, const Sizes& whole, dnnl_data_type_t type, const Layout& to);

  bool known() const { return kind_ != Kind::kUnknown; }
  // REQUIRES: known. f: or NULL, for the calling thread alone.
  void Run(const tw_frame* f, const char* filter, char* packed) const;

 private:
  enum class Kind {
    kUnknown,
    kRows,    // for each block of outputs and each tap, the numbers of one input side by side
    kPairs,   // or those of two inputs in turns
    kTurned,  // 16 inputs side by side, for each output of a block or, of bfloat16, for each two of them in turns
  };
  Kind KindOf(dnnl_data_type_t type) const;
  void CopyRow(int64_t row, int64_t at, int64_t o, int64_t end, const char* filter, char* packed) const;
  void TurnRows(int64_t row, int64_t at, int64_t o, int64_t end, const char* filter, char* packed) const;

  int64_t in_ = 0, out_ = 0, taps_ = 0;
  int64_t row_ = 0, tap_ = 0;  // elements from an input, or a tap, to the next
  std::vector<int64_t> windows_;
  uint64_t size_ = 0;  // bytes of an element
  Layout to_{};
  Kind kind_ = Kind::kUnknown;
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_FILTER_PACK_H_
