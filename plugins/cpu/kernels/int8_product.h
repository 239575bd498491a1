// Products of matrices of 8-bit numbers with zero points, of any size, on the host's thread pool:
// MatMul, and convolutions whose rows of a are gathered. Sums are exact modulo 2^32, so results are
// the same for any number of threads and any instruction set.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_INT8_PRODUCT_H_
#define THALWEG_PLUGINS_CPU_KERNELS_INT8_PRODUCT_H_

#include <algorithm>
#include <cstdint>

#include "kernels/common/parallel.h"
#include "kernels/int8_block.h"
#include "kernels/slots.h"

namespace thalweg::cpu {

// c[i, j] = sum over p of (a[i, p] - zero_a) * (b[p, j] - zero_b). The rows of a come from a
// function. b's element (p, j) is at b[p * b_row + j * b_column].
struct Int8Product {
  int64_t m, n, k;
  const uint8_t* b;
  int64_t b_row, b_column;
  bool signed_a, signed_b;
  uint32_t zero_a, zero_b;  // modulo 2^32
};

// Returns the table of this machine's best instruction set, or of the one that the plugin's setting
// `isa` names; `avx512` there means AVX-512 without VNNI.
const Int8Table& Int8TableFor(const tw_host* host);

// The layout of the scratch memory of one product.
class Int8Scratch {
 public:
  Int8Scratch(const Int8Table& t, int64_t m, int64_t n, int64_t k)
      : panels((n + t.columns - 1) / t.columns),
        groups((k + t.depth - 1) / t.depth),
        rows(std::min<int64_t>(m, 4 * t.rows)),
        // The stripe of sums stays in the first-level cache.
        stripe(std::min<int64_t>(panels, 128 / t.columns) * t.columns),
        b(RoundUp64(uint64_t(panels * groups * t.columns) * 4)),
        columns(RoundUp64(uint64_t(panels * t.columns) * 4)),
        a(RoundUp64(uint64_t(rows * groups) * 4)),
        raw(RoundUp64(uint64_t(k))),
        terms(RoundUp64(uint64_t(rows) * 4)),
        sums(RoundUp64(uint64_t(rows * stripe) * 4)) {}

  uint64_t worker() const { return a + raw + terms + sums; }
  uint64_t bytes(int slots) const { return b + columns + worker() * uint64_t(slots); }

  int64_t panels, groups, rows, stripe;
  uint64_t b, columns;           // shared: packed b, a term for each column
  uint64_t a, raw, terms, sums;  // of one worker: packed rows of a, one row as it is, a term for each row, sums
};

// Packs b, and computes the terms of its columns: -zero_a * the column's sum + k * zero_a * zero_b.
void PackInt8(const Int8Table& t, const tw_frame* f, const Int8Product& p, const Int8Scratch& s, char* scratch);

// Returns true if a tensor of this shape has no elements. Other sizes of an empty result may be so
// large that the layout of its scratch memory would overflow.
inline bool HasNoElements(const tw_shape& s) {
  return std::any_of(s.dims, s.dims + s.rank, [](int64_t size) { return size == 0; });
}

// Computes c. row(i, room): returns the k bytes of row i of a, which may be in room. result(i, j,
// n, sums): takes c[i, j .. j + n). Both run on several threads at once, result for parts of rows.
// scratch: Int8Scratch::bytes(slots), 64-byte aligned.
template <class Row, class Result>
void MultiplyInt8(const Int8Table& t, const tw_frame* f, const Int8Product& p, int slots, char* scratch, Row&& row, Result&& result) {
  if (p.m == 0 || p.n == 0) return;
  const Int8Scratch s(t, p.m, p.n, p.k);
  PackInt8(t, f, p, s, scratch);
  const auto* packed = reinterpret_cast<const uint8_t*>(scratch);
  const auto* column_terms = reinterpret_cast<const int32_t*>(scratch + s.b);
  const uint8_t flip = p.signed_a ? 0x80 : 0;
  const uint32_t zero_b = p.zero_b - (p.signed_b ? 0 : 128);
  const int64_t blocks = (p.m + s.rows - 1) / s.rows;
  // If there are few blocks of rows, each is shared between tasks, which pack its rows again.
  const int64_t threads = std::min<int64_t>(slots, int64_t(f->host->run->threads(f)));
  const int64_t wanted = threads > 1 ? (4 * threads + blocks - 1) / blocks : 1;
  const int64_t parts = std::clamp<int64_t>(wanted, 1, (s.panels * t.columns + s.stripe - 1) / s.stripe);
  ForEachTask(f, blocks * parts, slots, [&](int64_t task, int slot) {
    char* own = scratch + s.b + s.columns + s.worker() * uint64_t(slot);
    auto* a = reinterpret_cast<uint8_t*>(own);
    auto* raw = reinterpret_cast<uint8_t*>(own + s.a);
    auto* terms = reinterpret_cast<int32_t*>(own + s.a + s.raw);
    auto* sums = reinterpret_cast<int32_t*>(own + s.a + s.raw + s.terms);
    const int64_t block = task / parts, part = task % parts;
    const int64_t i0 = block * p.m / blocks, i1 = (block + 1) * p.m / blocks, a_row = s.groups * 4;
    for (int64_t i = i0; i < i1; ++i) {
      const uint8_t* from = row(i, raw);
      t.pack_a(p.k, from, flip, a + (i - i0) * a_row);
      terms[i - i0] = zero_b == 0 ? 0 : int32_t(0U - zero_b * uint32_t(t.sum_a(p.k, from, flip)));
    }
    const int64_t begin = part * s.panels / parts * t.columns, end = std::min(p.n, (part + 1) * s.panels / parts * t.columns);
    for (int64_t j = begin; j < end; j += s.stripe) {
      const int64_t n = std::min(s.stripe, end - j);
      t.block({i1 - i0, n, s.groups, a, a_row, packed + j * a_row, column_terms + j, terms, sums, s.stripe});
      for (int64_t i = i0; i < i1; ++i) result(i, j, n, sums + (i - i0) * s.stripe);
    }
  });
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_INT8_PRODUCT_H_
