// The code of int8_isa.cc and int8_vnni_isa.cc, for sources that are built per instruction set: all
// of it has internal linkage. A tile of c stays in registers while k runs. A group of four bytes of
// a row of a is broadcast, and multiplied with a vector of such groups, one for each column of b.
// With VNNI a group holds four numbers of 8 bits. Without, it holds two of 16 bits: the instruction
// that multiplies bytes saturates its sums of two products, so it would not be exact.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_INT8_TILES_H_
#define THALWEG_PLUGINS_CPU_KERNELS_INT8_TILES_H_

#include <stdint.h>
#include <string.h>

#include "kernels/int8_block.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace thalweg::cpu::THALWEG_ISA {
namespace {

#if defined(__AVX512VNNI__)
constexpr int kDepth = 4;
#else
constexpr int kDepth = 2;
#endif

#if defined(__AVX512BW__)
constexpr int kLanes32 = 16;
constexpr int kTileRows = 12;  // 12 * 2 sums + 2 of b + 1 of a out of 32 registers
typedef __m512i Words;
inline Words LoadWords(const void* p) { return _mm512_loadu_si512(p); }
inline void StoreWords(void* p, Words v) { _mm512_storeu_si512(p, v); }
inline Words SplatWord(int32_t x) { return _mm512_set1_epi32(x); }
inline Words AddWords(Words x, Words y) { return _mm512_add_epi32(x, y); }
inline Words Dot(Words sum, Words a, Words b) {
#if defined(__AVX512VNNI__)
  return _mm512_dpbusd_epi32(sum, a, b);
#else
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
#endif
}
#elif defined(__AVX2__)
constexpr int kLanes32 = 8;
constexpr int kTileRows = 6;  // 6 * 2 + 2 + 1 out of 16
typedef __m256i Words;
inline Words LoadWords(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void StoreWords(void* p, Words v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
inline Words SplatWord(int32_t x) { return _mm256_set1_epi32(x); }
inline Words AddWords(Words x, Words y) { return _mm256_add_epi32(x, y); }
inline Words Dot(Words sum, Words a, Words b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
#elif defined(__SSE2__)
constexpr int kLanes32 = 4;
constexpr int kTileRows = 6;
typedef __m128i Words;
inline Words LoadWords(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline void StoreWords(void* p, Words v) { _mm_storeu_si128(static_cast<__m128i*>(p), v); }
inline Words SplatWord(int32_t x) { return _mm_set1_epi32(x); }
inline Words AddWords(Words x, Words y) { return _mm_add_epi32(x, y); }
inline Words Dot(Words sum, Words a, Words b) { return _mm_add_epi32(sum, _mm_madd_epi16(a, b)); }
#else
constexpr int kLanes32 = 4;
constexpr int kTileRows = 4;
struct Words {
  int32_t lane[kLanes32];
};
inline Words LoadWords(const void* p) {
  Words v;
  memcpy(&v, p, sizeof v);
  return v;
}
inline void StoreWords(void* p, Words v) { memcpy(p, &v, sizeof v); }
inline Words SplatWord(int32_t x) { return {{x, x, x, x}}; }
inline Words AddWords(Words x, Words y) {
  for (int i = 0; i < kLanes32; ++i) x.lane[i] = int32_t(uint32_t(x.lane[i]) + uint32_t(y.lane[i]));
  return x;
}
inline Words Dot(Words sum, Words a, Words b) {
  int16_t x[2 * kLanes32], y[2 * kLanes32];
  memcpy(x, &a, sizeof x);
  memcpy(y, &b, sizeof y);
  for (int i = 0; i < kLanes32; ++i)
    sum.lane[i] = int32_t(uint32_t(sum.lane[i]) + uint32_t(int32_t(x[2 * i]) * y[2 * i]) + uint32_t(int32_t(x[2 * i + 1]) * y[2 * i + 1]));
  return sum;
}
#endif

constexpr int kPanelWords = 2;
constexpr int64_t kPanel = kPanelWords * kLanes32;  // columns
constexpr int64_t kGroup = 4;                       // bytes

// c[kR rows, one panel]
template <int kR>
void Tile(int64_t groups, const uint8_t* a, int64_t a_row, const uint8_t* b, const int32_t* column_term, const int32_t* row_term,
          int32_t* c, int64_t c_row) {
  Words sum[kR][kPanelWords];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kPanelWords; ++v) sum[r][v] = AddWords(LoadWords(column_term + v * kLanes32), SplatWord(row_term[r]));
  for (int64_t q = 0; q < groups; ++q, a += kGroup, b += kPanel * kGroup) {
    Words y[kPanelWords];
#pragma GCC unroll 16
    for (int v = 0; v < kPanelWords; ++v) y[v] = LoadWords(b + v * kLanes32 * kGroup);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      int32_t x;
      memcpy(&x, a + r * a_row, sizeof x);
      const Words all = SplatWord(x);
#pragma GCC unroll 16
      for (int v = 0; v < kPanelWords; ++v) sum[r][v] = Dot(sum[r][v], all, y[v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kPanelWords; ++v) StoreWords(c + r * c_row + v * kLanes32, sum[r][v]);
}

using TileFunction = void (*)(int64_t, const uint8_t*, int64_t, const uint8_t*, const int32_t*, const int32_t*, int32_t*, int64_t);

TileFunction TileOf(int64_t rows) {
  switch (rows) {
    case 1: return Tile<1>;
    case 2: return Tile<2>;
    case 3: return Tile<3>;
    case 4: return Tile<4>;
#if defined(__SSE2__)
    case 5: return Tile<5>;
    case 6: return Tile<6>;
#endif
#if defined(__AVX512BW__)
    case 7: return Tile<7>;
    case 8: return Tile<8>;
    case 9: return Tile<9>;
    case 10: return Tile<10>;
    case 11: return Tile<11>;
    case 12: return Tile<12>;
#endif
    default: return nullptr;
  }
}

// Cuts the rows into tiles of nearly equal height: a short last tile would have too few sums in
// flight.
void Block(const Int8Block& g) {
  const int64_t strips = (g.m + kTileRows - 1) / kTileRows;
  const uint8_t* b = g.b;
  for (int64_t j = 0; j < g.n; j += kPanel, b += g.groups * kPanel * kGroup) {
    int64_t i = 0;
    for (int64_t s = 0; s < strips; ++s) {
      const int64_t rows = g.m / strips + (s < g.m % strips);
      TileOf(rows)(g.groups, g.a + i * g.a_row, g.a_row, b, g.column_term + j, g.row_term + i, g.c + i * g.c_row + j, g.c_row);
      i += rows;
    }
  }
}

// A number in a group. Groups are words whose lowest bits are the first number.
#if defined(__AVX512VNNI__)
constexpr uint32_t kOnes = 0x01010101;
inline uint32_t WordOf(uint8_t x) { return x; }
#else
constexpr uint32_t kOnes = 0x00010001;
inline uint32_t WordOf(uint8_t x) { return uint16_t(int16_t(int8_t(x))); }
#endif
constexpr int kNumberBits = 32 / kDepth;

// One panel of up to kPanel columns, whose numbers are neighbours in each row of b.
void PackRows(int64_t k, int64_t columns, const uint8_t* b, int64_t row, uint8_t flip, uint8_t* bytes, int32_t* sums) {
  Words sum[kPanelWords];
  for (int v = 0; v < kPanelWords; ++v) sum[v] = SplatWord(0);
  for (int64_t p = 0; p < k; p += kDepth, b += kDepth * row, bytes += kPanel * kGroup) {
    uint32_t words[kPanel];
    if (p + kDepth <= k && columns == kPanel) {
      for (int j = 0; j < int(kPanel); ++j) {
        uint32_t word = 0;
#pragma GCC unroll 4
        for (int i = 0; i < kDepth; ++i) word |= WordOf(b[i * row + j] ^ flip) << (i * kNumberBits);
        words[j] = word;
      }
    } else {
      for (int64_t j = 0; j < kPanel; ++j) {
        words[j] = 0;
        for (int i = 0; j < columns && i < kDepth && p + i < k; ++i) words[j] |= WordOf(b[i * row + j] ^ flip) << (i * kNumberBits);
      }
    }
    for (int v = 0; v < kPanelWords; ++v) {
      const Words packed = LoadWords(words + v * kLanes32);
      StoreWords(bytes + v * kLanes32 * kGroup, packed);
      sum[v] = Dot(sum[v], SplatWord(int32_t(kOnes)), packed);
    }
  }
  for (int v = 0; v < kPanelWords; ++v) StoreWords(sums + v * kLanes32, sum[v]);
}

// The same where the numbers of a column are neighbours, or anything else.
void PackColumns(int64_t k, int64_t columns, const uint8_t* b, int64_t row, int64_t column, uint8_t flip, uint8_t* bytes, int32_t* sums) {
  const int64_t groups = (k + kDepth - 1) / kDepth;
  for (int64_t j = 0; j < kPanel; ++j) {
    uint32_t sum = 0;
    for (int64_t q = 0; q < groups; ++q) {
      uint32_t word = 0;
      for (int i = 0; j < columns && i < kDepth && q * kDepth + i < k; ++i) {
        const uint8_t x = b[(q * kDepth + i) * row + j * column] ^ flip;
        word |= WordOf(x) << (i * kNumberBits);
        sum += uint32_t(int32_t(int8_t(x)));
      }
      memcpy(bytes + (q * kPanel + j) * kGroup, &word, kGroup);
    }
    sums[j] = int32_t(sum);
  }
}

void PackB(int64_t k, int64_t n, const uint8_t* b, int64_t row, int64_t column, uint8_t flip, uint8_t* to, int32_t* sums) {
  const int64_t bytes = (k + kDepth - 1) / kDepth * kPanel * kGroup;
  for (int64_t j = 0; j < n; j += kPanel, to += bytes, sums += kPanel) {
    const int64_t columns = n - j < kPanel ? n - j : kPanel;
    if (column == 1)
      PackRows(k, columns, b + j, row, flip, to, sums);
    else
      PackColumns(k, columns, b + j * column, row, column, flip, to, sums);
  }
}

void PackA(int64_t k, const uint8_t* a, uint8_t flip, uint8_t* bytes) {
#if defined(__AVX512VNNI__)
  for (int64_t p = 0; p < k; ++p) bytes[p] = a[p] ^ flip;
#else
  for (int64_t p = 0; p < k; ++p) {
    const int16_t x = uint8_t(a[p] ^ flip);
    memcpy(bytes + 2 * p, &x, sizeof x);
  }
#endif
  constexpr int64_t kBytes = kGroup / kDepth;  // of a number
  memset(bytes + k * kBytes, 0, size_t((kDepth - k % kDepth) % kDepth * kBytes));
}

int32_t SumA(int64_t k, const uint8_t* a, uint8_t flip) {
  uint32_t sum = 0;
  for (int64_t p = 0; p < k; ++p) sum += uint8_t(a[p] ^ flip);
  return int32_t(sum);
}

void ToBytes(int64_t n, const int32_t* sums, const float* scale, const float* offset, float low, float high, uint8_t* to) {
  constexpr float kWhole = 12582912;  // 1.5 * 2^23: numbers of this size have no fraction, so adding it rounds
  for (int64_t j = 0; j < n; ++j) {
    float x = float(sums[j]) * scale[j] + offset[j];
    x = x > low ? x : low;  // NaN becomes the lowest
    x = x < high ? x : high;
    const float whole = x + kWhole;
    int32_t bits;
    memcpy(&bits, &whole, sizeof bits);
    to[j] = uint8_t(bits);  // the low bits of the fraction are those of the number
  }
}

void ToFloats(int64_t n, const int32_t* sums, const float* scale, const float* offset, float* to) {
  for (int64_t j = 0; j < n; ++j) to[j] = float(sums[j]) * scale[j] + offset[j];
}

constexpr Int8Table kInt8Table = {PackB, PackA, SumA, Block, ToBytes, ToFloats, kTileRows, kPanel, kDepth};

}  // namespace
}  // namespace thalweg::cpu::THALWEG_ISA

#endif  // THALWEG_PLUGINS_CPU_KERNELS_INT8_TILES_H_
