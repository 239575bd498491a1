// Rows of products of a sparse matrix with a dense one, compiled once per instruction set. A few
// vectors of sums stay in registers while the loop walks all stored elements of the row.
#include "kernels/simd.h"
#include "kernels/sparse_product.h"

namespace thalweg::cpu::THALWEG_ISA {

// Defined in elementwise_isa.cc.
void LoadHalf(const uint16_t* x, float* y, int64_t n);
void StoreHalf(const float* x, uint16_t* y, int64_t n);
void LoadBfloat16(const uint16_t* x, float* y, int64_t n);
void StoreBfloat16(const float* x, uint16_t* y, int64_t n);

namespace {

constexpr int64_t kAhead = 8;   // elements; rows of b are seldom in a cache, so they are prefetched
constexpr int64_t kBlock = 64;  // columns, or 16-bit elements, widened at a time

template <class T>
inline void Ask(const SparseRow<T>& row, int64_t e, const T* b, int64_t stride, int64_t n) {
  if (e + kAhead >= row.reach) return;
  const char* from = reinterpret_cast<const char*>(b + row.at[e + kAhead] * stride);
  for (int64_t at = 0; at < n * int64_t(sizeof(T)); at += 64) __builtin_prefetch(from + at);
}

template <int kVectors, class T>
void Columns(const SparseRow<T>& row, const T* b, int64_t stride, T* y) {
  constexpr int L = kLanes<T>;
  Vec<T> sums[kVectors] = {};
  for (int64_t e = 0; e < row.count; ++e) {
    Ask(row, e, b, stride, kVectors * L);
    const T* from = b + row.at[e] * stride;
    const Vec<T> value = Splat(row.values[e]);
    for (int i = 0; i < kVectors; ++i) sums[i] += value * Load(from + i * L);
  }
  for (int i = 0; i < kVectors; ++i) Store(y + i * L, sums[i]);
}

template <class T>
void FirstColumns(const SparseRow<T>& row, const T* b, int64_t stride, T* y, int n) {
  Vec<T> sums{};
  for (int64_t e = 0; e < row.count; ++e) {
    Ask(row, e, b, stride, n);
    sums += Splat(row.values[e]) * LoadFirst(b + row.at[e] * stride, n);
  }
  StoreFirst(y, sums, n);
}

template <class T>
void OneColumn(const SparseRow<T>& row, const T* b, int64_t stride, T* y) {
  T sum = 0;
  for (int64_t e = 0; e < row.count; ++e) {
    Ask(row, e, b, stride, 1);
    sum += row.values[e] * b[row.at[e] * stride];
  }
  *y = sum;
}

template <class T>
void Row(const SparseRow<T>& row, const T* b, int64_t stride, T* y, int64_t n) {
  constexpr int L = kLanes<T>;
  if (n == 1) return OneColumn(row, b, stride, y);
  for (; n >= 8 * L; n -= 8 * L, b += 8 * L, y += 8 * L) Columns<8>(row, b, stride, y);
  for (; n >= 2 * L; n -= 2 * L, b += 2 * L, y += 2 * L) Columns<2>(row, b, stride, y);
  for (; n >= L; n -= L, b += L, y += L) Columns<1>(row, b, stride, y);
  if (n > 0) FirstColumns(row, b, stride, y, int(n));
}

inline int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

template <auto kLoad, auto kStore>
void ShortRow(const SparseRow<uint16_t>& row, const uint16_t* b, int64_t stride, uint16_t* y, int64_t n) {
  for (int64_t c = 0; c < n; c += kBlock) {
    const int64_t columns = Least(kBlock, n - c);
    float sums[kBlock] = {}, values[kBlock], wide[kBlock];
    for (int64_t first = 0; first < row.count; first += kBlock) {
      const int64_t count = Least(kBlock, row.count - first);
      kLoad(row.values + first, values, count);
      for (int64_t e = 0; e < count; ++e) {
        Ask(row, first + e, b + c, stride, columns);
        kLoad(b + c + row.at[first + e] * stride, wide, columns);
        for (int64_t j = 0; j < columns; ++j) sums[j] += values[e] * wide[j];
      }
    }
    kStore(sums, y + c, columns);
  }
}

}  // namespace

const SparseProductTable& SparseProduct() {
  static constexpr SparseProductTable table = {Row<float>, Row<double>, ShortRow<LoadHalf, StoreHalf>,
                                               ShortRow<LoadBfloat16, StoreBfloat16>};
  return table;
}

}  // namespace thalweg::cpu::THALWEG_ISA
