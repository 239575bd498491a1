// A filter as the library wants it, for the layouts that its convolutions of one group like best. Copying them here beats the library's
// general copy, which does not share its work either. Threads: any.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_FILTER_PACK_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_FILTER_PACK_H_

#include <vector>

#include "kernels/window.h"
#include "primitive.h"

namespace thalweg::onednn {

class FilterPack {
 public:
  FilterPack() = default;
  // Of a filter [window.., in, out] of dnnl_f32 or dnnl_bf16.
  FilterPack(int64_t in, int64_t out, const std::vector<cpu::WindowAxis>& axes, dnnl_data_type_t type, const Layout& to);

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
  int64_t TapAt(int64_t tap) const;
  void CopyRow(int64_t row, int64_t at, int64_t o, int64_t end, const char* filter, char* packed) const;
  void TurnRows(int64_t row, int64_t at, int64_t o, int64_t end, const char* filter, char* packed) const;

  int64_t in_ = 0, out_ = 0, taps_ = 0;
  std::vector<int64_t> windows_;
  uint64_t size_ = 0;  // bytes of an element
  Layout to_{};
  Kind kind_ = Kind::kUnknown;
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_FILTER_PACK_H_
