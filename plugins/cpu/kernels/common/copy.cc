#include "kernels/common/copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/common/parallel.h"
#include "thalweg/cpp/variant.hpp"

namespace thalweg::cpu {
namespace {

// Drops axes of size 1 and joins neighbouring axes that form one axis on both sides.
void Collapse(Box& box) {
  int rank = 0;
  for (int i = 0; i < box.rank; ++i) {
    if (box.dims[i] == 1) continue;
    if (rank > 0 && box.from[rank - 1] == box.from[i] * box.dims[i] && box.to[rank - 1] == box.to[i] * box.dims[i]) {
      box.dims[rank - 1] *= box.dims[i];
      box.from[rank - 1] = box.from[i];
      box.to[rank - 1] = box.to[i];
      continue;
    }
    box.dims[rank] = box.dims[i];
    box.from[rank] = box.from[i];
    box.to[rank++] = box.to[i];
  }
  box.rank = rank;
}

void Swap(Box& box, int i, int j) {
  std::swap(box.dims[i], box.dims[j]);
  std::swap(box.from[i], box.from[j]);
  std::swap(box.to[i], box.to[j]);
}

// Calls row(from, to) for rows [begin, end) of the first `outer` axes.
template <class F>
void ForRows(const Box& box, int outer, int64_t begin, int64_t end, F&& row) {
  int64_t at[kMaxRank], from = 0, to = 0, rest = begin;
  for (int i = outer; i-- > 0;) {
    at[i] = rest % box.dims[i];
    rest /= box.dims[i];
    from += at[i] * box.from[i];
    to += at[i] * box.to[i];
  }
  for (int64_t r = begin; r < end; ++r) {
    row(from, to);
    for (int i = outer; i-- > 0;) {
      from += box.from[i];
      to += box.to[i];
      if (++at[i] < box.dims[i]) break;
      at[i] = 0;
      from -= box.dims[i] * box.from[i];
      to -= box.dims[i] * box.to[i];
    }
  }
}

void CopyStrings(const tw_frame* f, const Box& box, const tw_view* from, int64_t from_at, const tw_view* to, int64_t to_at) {
  ForRows(box, box.rank, 0, Product(box.dims, 0, box.rank), [&](int64_t a, int64_t b) {
    const tw_string& s = StringAt(from, uint64_t(from_at + a));
    tw::check(f->host->tensor->set_string(to->tensor, uint64_t(to_at + b), s.data, s.size));
  });
}

void CopyVariants(const tw_frame* f, const Box& box, const tw_view* from, int64_t from_at, const tw_view* to, int64_t to_at) {
  const tw_variant_api& variants = tw::variants(f->host);
  ForRows(box, box.rank, 0, Product(box.dims, 0, box.rank),
          [&](int64_t a, int64_t b) { tw::check(variants.copy(f->host, from, uint64_t(from_at + a), to, uint64_t(to_at + b), 1)); });
}

// Fills with memcpy, because the C library copies in wider vectors than this file is compiled for.
template <class T>
void FillRow(T* to, int64_t n, T one) {
  constexpr int64_t kFirst = 256 / int64_t(sizeof(T)), kMost = 16 * kFirst;
  int64_t done = std::min(n, kFirst);
  std::fill(to, to + done, one);
  for (int64_t run; done < n; done += run) {
    run = std::min({done, kMost, n - done});
    std::memcpy(to + done, to, size_t(run) * sizeof(T));
  }
}

// Copies one row of n elements. Source and target never overlap.
template <class T>
void CopyRow(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t n) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, size_t(n) * sizeof(T));
  } else if (from_stride == 0 && to_stride == 1) {
    FillRow(to, n, *from);
  } else if (from_stride == -1 && to_stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

// A tile is one cache line of the target wide and four of the source high. Four lines let the
// prefetcher recognise the pattern.
template <class T>
constexpr int64_t kTileCols = 64 / int64_t(sizeof(T));
template <class T>
constexpr int64_t kTileRows = 4 * kTileCols<T>;

// Transposes a tile of the last two axes: `rows` elements along the axis that is dense in the
// source, `cols` along the axis that is dense in the target. The tile goes through a buffer, so
// each line of source and target is touched once. The strides are often powers of two, and then the
// lines of a tile do not fit into the first-level cache together.
template <class T>
void TransposeTile(const T* from, int64_t from_col, T* to, int64_t to_row, int64_t rows, int64_t cols) {
  T tile[kTileCols<T>][kTileRows<T>];
  for (int64_t c = 0; c < cols; ++c) std::memcpy(tile[c], from + c * from_col, size_t(rows) * sizeof(T));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) to[r * to_row + c] = tile[c][r];
}

// REQUIRES: the last axis is dense in the target, and the one before it in the source.
template <class T>
void CopyTransposed(const tw_frame* f, const Box& box, const T* from, T* to) {
  const int r = box.rank - 2, c = box.rank - 1;
  const int64_t tiles = (box.dims[r] + kTileRows<T> - 1) / kTileRows<T>;
  ParallelFor(f, Product(box.dims, 0, r) * tiles, 2 * kTileRows<T> * box.dims[c], [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t % tiles * kTileRows<T>, rows = std::min(kTileRows<T>, box.dims[r] - row);
      ForRows(box, r, t / tiles, t / tiles + 1, [&](int64_t a, int64_t b) {
        for (int64_t col = 0; col < box.dims[c]; col += kTileCols<T>)
          TransposeTile(from + a + row + col * box.from[c], box.from[c], to + b + row * box.to[r] + col, box.to[r], rows,
                        std::min(kTileCols<T>, box.dims[c] - col));
      });
    }
  });
}

template <class T>
void CopyFixed(const tw_frame* f, Box& box, const T* from, T* to) {
  if (box.rank == 0) {
    *to = *from;
    return;
  }
  int last = box.rank - 1;
  if (box.from[last] != 1 && box.to[last] == 1 && box.dims[last] >= 4) {
    for (int i = last; i-- > 0;) {
      if (box.from[i] != 1 || box.dims[i] < 4) continue;
      for (; i + 1 < last; ++i) Swap(box, i, i + 1);
      return CopyTransposed(f, box, from, to);
    }
  }
  int64_t n = box.dims[last];
  if (last == 0) {
    return ParallelFor(f, n, 1, [&](int64_t begin, int64_t end) {
      CopyRow(from + begin * box.from[0], box.from[0], to + begin * box.to[0], box.to[0], end - begin);
    });
  }
  ParallelFor(f, Product(box.dims, 0, last), n + 8, [&](int64_t begin, int64_t end) {
    ForRows(box, last, begin, end, [&](int64_t a, int64_t b) { CopyRow(from + a, box.from[last], to + b, box.to[last], n); });
  });
}

}  // namespace

void CheckMovable(uint32_t dtype) {
  if (dtype == TW_RESOURCE)
    throw tw::Error{TW_UNIMPLEMENTED, "elements of type resource cannot be rearranged; only whole tensors of them can be passed on"};
}

void CopyBox(const tw_frame* f, Box& box, const tw_view* from, int64_t from_at, const tw_view* to, int64_t to_at) {
  CheckMovable(from->dtype);
  if (std::find(box.dims, box.dims + box.rank, 0) != box.dims + box.rank) return;
  Collapse(box);
  if (from->dtype == TW_VARIANT) return CopyVariants(f, box, from, from_at, to, to_at);
  uint32_t bytes = ElementBytes(from->dtype);
  if (bytes == 0) return CopyStrings(f, box, from, from_at, to, to_at);
  BySize(bytes, [&](auto t) {
    using T = decltype(t);
    CopyFixed(f, box, reinterpret_cast<const T*>(Bytes(from)) + from_at, reinterpret_cast<T*>(Bytes(to)) + to_at);
  });
}

void CutBox(const tw_frame* f, Box& box, uint32_t i, int64_t from_at, const tw::Out<tw::Any>& output) {
  constexpr uint64_t kLeastShared = 1 << 14;  // bytes: a smaller copy costs no more than sharing, and does not keep the whole input alive
  if (output.size() == 0) return;
  Collapse(box);
  const bool run = box.rank == 0 || (box.rank == 1 && box.from[0] == 1);
  if (run && (ElementBytes(output.v()->dtype) == 0 || output.v()->bytes >= kLeastShared)) return output.forward_part(i, uint64_t(from_at));
  CopyBox(f, box, f->in[i], from_at, output.v(), 0);
}

void CopyRun(const tw_frame* f, const tw_view* from, int64_t from_at, const tw_view* to, int64_t to_at, int64_t n) {
  Box box;
  box.Add(n, 1, 1);
  CopyBox(f, box, from, from_at, to, to_at);
}

void FillRun(const tw_frame* f, const tw_view* value, const tw_view* to, int64_t to_at, int64_t n) {
  const uint32_t bytes = ElementBytes(to->dtype);
  if (bytes == 0) {
    Box box;
    box.Add(n, 0, 1);
    return CopyBox(f, box, value, 0, to, to_at);
  }
  BySize(bytes, [&](auto type) {
    using T = decltype(type);
    const T one = *reinterpret_cast<const T*>(Bytes(value));
    T* at = reinterpret_cast<T*>(Bytes(to)) + to_at;
    ParallelFor(f, n, 1, [&](int64_t begin, int64_t end) { FillRow(at + begin, end - begin, one); });
  });
}

void FillZero(const tw_frame* f, const tw_view* to) {
  CheckMovable(to->dtype);
  if (to->dtype == TW_VARIANT) return;  // a variant tensor starts empty and never overwrites an input
  if (to->dtype == TW_STRING) {
    for (uint64_t i = 0; i < to->count; ++i) tw::check(f->host->tensor->set_string(to->tensor, i, "", 0));
    return;
  }
  ParallelFor(f, int64_t(to->bytes), 1, [&](int64_t begin, int64_t end) { std::memset(Bytes(to) + begin, 0, size_t(end - begin)); });
}

}  // namespace thalweg::cpu
