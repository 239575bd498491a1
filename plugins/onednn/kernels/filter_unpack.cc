#include "kernels/filter_unpack.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/parallel.h"
#include "kernels/filter_pack.h"

namespace thalweg::onednn {
namespace {

constexpr int64_t kSide = 16;  // the side of a block

constexpr int64_t kLine = 256;  // the outputs at a time

}  // namespace

FilterUnpack::FilterUnpack(const Api& api, const Sizes& part, const Sizes& whole, dnnl_data_type_t type, const Layout& from)
    : in_(part.in),
      out_(part.out),
      taps_(part.taps()),
      row_(whole.out),
      tap_(whole.in * whole.out),
      windows_(WindowsOf(part)),
      round_(type == dnnl_f32 ? nullptr : api.round_bfloat16),
      from_(from) {
  const dnnl_blocking_desc_t& b = from.format_desc.blocking;
  known_ = from.format_kind == dnnl_blocked && from.extra.flags == 0 && from.data_type == dnnl_f32 && b.inner_nblks == 2 &&
           b.inner_idxs[0] == 1 && b.inner_blks[0] == kSide && b.inner_idxs[1] == 0 && b.inner_blks[1] == kSide && in_ % kSide == 0 &&
           out_ % kSide == 0;
}

// Unpacks all outputs of an input.
void FilterUnpack::Row(const float* packed, int64_t parts, int64_t step, char* filter) const {
  const int64_t block = from_.format_desc.blocking.strides[0];
  alignas(64) float line[kLine];
  for (int64_t first = 0; first < out_; first += kLine) {
    const int64_t n = std::min(kLine, out_ - first);
    for (int64_t o = 0; o < n; o += kSide, packed += block) {
      std::memcpy(line + o, packed, kSide * sizeof *line);
      for (int64_t p = 1; p < parts; ++p)
        for (int64_t k = 0; k < kSide; ++k) line[o + k] += packed[p * step + k];
    }
    if (round_)
      round_(line, reinterpret_cast<uint16_t*>(filter) + first, n);
    else
      std::memcpy(filter + uint64_t(first) * sizeof *line, line, uint64_t(n) * sizeof *line);
  }
}

void FilterUnpack::Run(const tw_frame* f, const float* packed, int64_t parts, int64_t step, char* filter) const {
  const dnnl_blocking_desc_t& b = from_.format_desc.blocking;
  const int64_t groups = in_ / kSide, size = round_ ? 2 : 4;
  const auto tasks = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t tap = task / groups, group = task % groups;
      const float* from = packed + TapAt(from_, windows_, tap) + group * b.strides[1];
      char* to = filter + (tap * tap_ + group * kSide * row_) * size;
      for (int64_t i = 0; i < kSide; ++i) Row(from + i * kSide, parts, step, to + i * row_ * size);
    }
  };
  if (f)
    cpu::ParallelFor(f, taps_ * groups, kSide * out_ * parts, tasks);
  else
    tasks(0, taps_ * groups);
}

}  // namespace thalweg::onednn
