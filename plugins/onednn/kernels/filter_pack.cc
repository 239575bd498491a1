#include "kernels/filter_pack.h"

#include <algorithm>
#include <cstring>

#include "kernels/common/parallel.h"

namespace thalweg::onednn {
namespace {

template <class T>
using Vector [[gnu::vector_size(16)]] = T;

template <class T>
Vector<T> Load(const char* p) {
  Vector<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
void Store(char* p, V v) {
  std::memcpy(p, &v, sizeof v);
}

// Interleaves 2-byte elements of a and b.
void InTurns(const char* a, const char* b, char* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8, a += 16, b += 16, to += 32) {
    const Vector<uint16_t> x = Load<uint16_t>(a), y = Load<uint16_t>(b);
    Store(to, __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11));
    Store(to + 16, __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15));
  }
  for (; i < n; ++i, a += 2, b += 2, to += 4) {
    std::memcpy(to, a, 2);
    std::memcpy(to + 2, b, 2);
  }
}

// Transposes four rows of four 4-byte units.
void TurnFour(const char* from, int64_t from_row, char* to, int64_t to_row) {
  Vector<uint32_t> row[4];
  for (int i = 0; i < 4; ++i) row[i] = Load<uint32_t>(from + i * from_row);
  for (int i = 0; i < 2; ++i) {
    const auto low = i ? __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7) : __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
    const auto high = i ? __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7) : __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
    Store(to + 2 * i * to_row, __builtin_shufflevector(low, high, 0, 1, 4, 5));
    Store(to + (2 * i + 1) * to_row, __builtin_shufflevector(low, high, 2, 3, 6, 7));
  }
}

// The rows of a part of a filter are too far apart for the processor's prefetcher.
constexpr int64_t kAhead = 16;
void PrefetchRun(const char* p, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + at);
}

constexpr int64_t kUnit = 4, kSide = 16;  // bytes of one float or of two bfloat16; inputs side by side
constexpr int64_t kGroup = 128;           // outputs at a time

}  // namespace

int64_t TapAt(const Layout& filter, const std::vector<int64_t>& windows, int64_t tap) {
  int64_t at = 0;
  for (size_t axis = windows.size(); axis-- > 0; tap /= windows[axis])
    at += tap % windows[axis] * filter.format_desc.blocking.strides[2 + axis];
  return at;
}

std::vector<int64_t> WindowsOf(const Sizes& sizes) {
  std::vector<int64_t> windows;
  for (const cpu::WindowAxis& a : sizes.axes) windows.push_back(a.window);
  return windows;
}

FilterPack::FilterPack(const Sizes& part, const Sizes& whole, dnnl_data_type_t type, const Layout& to)
    : in_(part.in),
      out_(part.out),
      taps_(part.taps()),
      row_(whole.out),
      tap_(whole.in * whole.out),
      windows_(WindowsOf(part)),
      size_(type == dnnl_f32 ? 4 : 2),
      to_(to) {
  kind_ = KindOf(type);
}

FilterPack::Kind FilterPack::KindOf(dnnl_data_type_t type) const {
  const dnnl_blocking_desc_t& b = to_.format_desc.blocking;
  if (to_.format_kind != dnnl_blocked || to_.extra.flags != 0 || to_.padded_dims[1] != in_) return Kind::kUnknown;
  auto inner = [&b](int i, int64_t axis, int64_t size) { return i < b.inner_nblks && b.inner_idxs[i] == axis && b.inner_blks[i] == size; };
  const bool small = type == dnnl_bf16;
  if (b.inner_nblks == 1 && b.inner_idxs[0] == 0) return Kind::kRows;
  if (small && b.inner_nblks == 2 && b.inner_idxs[0] == 0 && inner(1, 1, 2) && in_ % 2 == 0) return Kind::kPairs;
  const bool turned = small ? b.inner_nblks == 3 && inner(0, 0, kSide / 2) && inner(1, 1, kSide) && inner(2, 0, 2)
                            : b.inner_nblks == 2 && inner(0, 0, kSide) && inner(1, 1, kSide);
  return turned && in_ % kSide == 0 && out_ % kSide == 0 ? Kind::kTurned : Kind::kUnknown;
}

// Copies outputs [o, end) of one input of a tap, or of two. filter: the tap.
void FilterPack::CopyRow(int64_t row, int64_t at, int64_t o, int64_t end, const char* filter, char* packed) const {
  const dnnl_blocking_desc_t& to = to_.format_desc.blocking;
  const int64_t together = kind_ == Kind::kPairs ? 2 : 1, block = to.inner_blks[0];
  for (at += o / block * to.strides[0]; o < end; o += block, at += to.strides[0]) {
    const int64_t n = std::min(block, out_ - o);
    const char* from = filter + uint64_t(row * together * row_ + o) * size_;
    char* run = packed + uint64_t(at) * size_;
    if (together == 2)
      InTurns(from, from + uint64_t(row_) * size_, run, n);
    else
      std::memcpy(run, from, uint64_t(n) * size_);
    std::memset(run + uint64_t(n * together) * size_, 0, uint64_t((block - n) * together) * size_);
  }
}

// Transposes the outputs of sixteen inputs.
void FilterPack::TurnRows(int64_t row, int64_t at, int64_t o, int64_t end, const char* filter, char* packed) const {
  const int64_t from_row = row_ * int64_t(size_), units = kSide * int64_t(size_) / kUnit;
  for (; o < end; o += kSide) {
    const char* from = filter + row * kSide * from_row + o * int64_t(size_);
    char* block = packed + (at + o / kSide * to_.format_desc.blocking.strides[0]) * int64_t(size_);
    for (int64_t u = 0; u < units; u += 4)
      for (int64_t i = 0; i < kSide; i += 4)
        TurnFour(from + i * from_row + u * kUnit, from_row, block + (u * kSide + i) * kUnit, kSide * kUnit);
  }
}

// Takes some outputs of a tap at a time, for all inputs, so the writes go to few places, each a
// run.
void FilterPack::Run(const tw_frame* f, const char* filter, char* packed) const {
  const bool turned = kind_ == Kind::kTurned;
  const dnnl_blocking_desc_t& to = to_.format_desc.blocking;
  const int64_t at_once = turned ? kSide : kind_ == Kind::kPairs ? 2 : 1, rows = in_ / at_once;
  const int64_t group = (kGroup + to.inner_blks[0] - 1) / to.inner_blks[0] * to.inner_blks[0], groups = (out_ + group - 1) / group;
  const auto tasks = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t tap = task / groups, o = task % groups * group, last = std::min(out_, o + group);
      const char* from = filter + uint64_t(tap * tap_) * size_;
      int64_t at = TapAt(to_, windows_, tap);
      for (int64_t row = 0; row < rows; ++row, at += to.strides[1]) {
        for (int64_t k = 0; k < at_once; ++k)
          PrefetchRun(from + uint64_t((row * at_once + kAhead + k) * row_ + o) * size_, (last - o) * int64_t(size_));
        turned ? TurnRows(row, at, o, last, from, packed) : CopyRow(row, at, o, last, from, packed);
      }
    }
  };
  if (f)
    cpu::ParallelFor(f, taps_ * groups, in_ * group, tasks);
  else
    tasks(0, taps_ * groups);
}

}  // namespace thalweg::onednn
