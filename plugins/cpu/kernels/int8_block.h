// The innermost products of numbers of 8 bits, built once per instruction set (int8_isa.cc, and
// int8_vnni_isa.cc for processors with dot products of bytes) and reached through a table.
// int8_product.h cuts products of any size into these.
// This header holds plain data only: the per-set sources must not share inline functions with the
// rest of the plugin.
// A factor is brought into one form first: bytes of a without a sign, bytes of b with one. `flip`
// is 0x80 for a factor of the other kind, which shifts its numbers by 128, else 0. Sums are exact
// modulo 2^32, so all sets give the same results.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_INT8_BLOCK_H_
#define THALWEG_PLUGINS_CPU_KERNELS_INT8_BLOCK_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// c[m, n] = row_term[i] + column_term[j] + a[m, k] b[k, n].
struct Int8Block {
  int64_t m, n, groups;  // groups: of 4 bytes, into which packed rows of a and columns of b are cut
  const uint8_t* a;      // packed rows, a_row bytes apart
  int64_t a_row;
  const uint8_t* b;            // packed panels, groups * columns * 4 bytes each
  const int32_t* column_term;  // an entry for each column of each panel
  const int32_t* row_term;
  int32_t* c;  // rows c_row elements apart; whole panels are written, so there is room for them
  int64_t c_row;
};

struct Int8Table {
  // Packs b[k, n], whose element (p, j) is at b[p * row + j * column], into panels. Writes the sum of
  // each column of each panel, of the numbers as packed, to sums. Columns beyond n are zeros.
  void (*pack_b)(int64_t k, int64_t n, const uint8_t* b, int64_t row, int64_t column, uint8_t flip, uint8_t* to, int32_t* sums);
  // Packs a row of k bytes, and zeros up to whole groups.
  void (*pack_a)(int64_t k, const uint8_t* a, uint8_t flip, uint8_t* to);
  // Returns the sum of the numbers of such a row, as packed.
  int32_t (*sum_a)(int64_t k, const uint8_t* a, uint8_t flip);
  void (*block)(const Int8Block& g);
  // to[j] = sums[j] * scale[j] + offset[j], limited to [low, high] and rounded to a whole number,
  // halves to even. REQUIRES: [low, high] is within the type.
  void (*to_bytes)(int64_t n, const int32_t* sums, const float* scale, const float* offset, float low, float high, uint8_t* to);
  void (*to_floats)(int64_t n, const int32_t* sums, const float* scale, const float* offset, float* to);
  int64_t rows;     // the height of the tallest tile
  int64_t columns;  // the width of a panel
  int64_t depth;    // numbers in a group
};

TW_CPU_DECLARE_ISA(Int8Table, Int8)

#if defined(__x86_64__) && !defined(THALWEG_ISA_ONLY_BASELINE)
namespace Avx512 {
const Int8Table& Int8Vnni();
}
#endif

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_INT8_BLOCK_H_
