// Row loops, compiled once per instruction set. Element-wise loops are plain loops that the
// compiler vectorises. Loops over whole rows use explicit vectors, because rows are often shorter
// than the vectoriser's unrolled loop.
#include <math.h>

#include "kernels/simd.h"
#include "kernels/vector.h"

namespace thalweg::cpu::THALWEG_ISA {

// Defined in elementwise_isa.cc.
void LoadHalf(const uint16_t* x, float* y, int64_t n);
void StoreHalf(const float* x, uint16_t* y, int64_t n);
void LoadBfloat16(const uint16_t* x, float* y, int64_t n);
void StoreBfloat16(const float* x, uint16_t* y, int64_t n);

namespace {

constexpr int L = kLanes<float>;

void Relu(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? 0.f : x[i];
}
void Relu6(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    float low = x[i] < 0 ? 0.f : x[i];
    y[i] = low > 6 ? 6.f : low;
  }
}
void ReluGrad(const float* dy, const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? dy[i] : 0.f;
}
void Relu6Grad(const float* dy, const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = ((x[i] > 0) & (x[i] < 6)) ? dy[i] : 0.f;
}

// Calls f(offset, lanes) for each vector of a row; lanes is L except for the last vector.
template <class F>
inline void ForVectors(int64_t columns, F&& f) {
  int64_t c = 0;
  for (; c + L <= columns; c += L) f(c, L);
  if (c < columns) f(c, int(columns - c));
}
inline Vec<float> LoadUpTo(const float* p, int n) { return n == L ? Load(p) : LoadFirst(p, n); }
inline void StoreUpTo(float* p, Vec<float> v, int n) { n == L ? Store(p, v) : StoreFirst(p, v, n); }

inline float Across(Vec<float> v) {
  float sum = v[0];
  for (int i = 1; i < L; ++i) sum += v[i];
  return sum;
}

void AddBias(const float* x, const float* bias, float* y, int64_t rows, int64_t columns) {
  for (; rows > 0; --rows, x += columns, y += columns)
    ForVectors(columns, [&](int64_t c, int n) { StoreUpTo(y + c, LoadUpTo(x + c, n) + LoadUpTo(bias + c, n), n); });
}

void SumRows(const float* x, float* sum, int64_t rows, int64_t columns) {
  ForVectors(columns, [&](int64_t c, int n) {
    Vec<float> total = LoadUpTo(sum + c, n);
    for (int64_t r = 0; r < rows; ++r) total += LoadUpTo(x + r * columns + c, n);
    StoreUpTo(sum + c, total, n);
  });
}

float Sum(const float* x, int64_t n) {
  constexpr int kSums = 8;
  Vec<float> sum[kSums] = {};
  int64_t i = 0;
  for (; i + kSums * L <= n; i += kSums * L)
#pragma GCC unroll 8
    for (int v = 0; v < kSums; ++v) sum[v] += Load(x + i + v * L);
  for (; i < n; i += L) sum[0] += LoadUpTo(x + i, n - i < L ? int(n - i) : L);
  for (int v = 1; v < kSums; ++v) sum[0] += sum[v];
  return Across(sum[0]);
}

// Starts from the first element and takes the last elements one by one, because a partial load
// fills with zeros, which must not win.
inline float RowMax(const float* x, int64_t columns) {
  Vec<float> most = Splat(x[0]);
  int64_t c = 0;
  for (; c + L <= columns; c += L) {
    Vec<float> v = Load(x + c);
    most = v > most ? v : most;
  }
  float best = most[0];
  for (int i = 1; i < L; ++i) best = most[i] > best ? most[i] : best;
  for (; c < columns; ++c) best = x[c] > best ? x[c] : best;
  return best;
}

void ShiftRows(const float* x, float* y, int64_t rows, int64_t columns) {
  for (; rows > 0; --rows, x += columns, y += columns) {
    const Vec<float> shift = Splat(RowMax(x, columns));
    ForVectors(columns, [&](int64_t c, int n) { StoreUpTo(y + c, LoadUpTo(x + c, n) - shift, n); });
  }
}

inline float RowSum(const float* x, int64_t columns) {
  Vec<float> sum{};
  ForVectors(columns, [&](int64_t c, int n) { sum += LoadUpTo(x + c, n); });
  return Across(sum);
}

void RowSums(const float* x, float* sums, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) sums[r] = RowSum(x + r * columns, columns);
}

void NormaliseRows(const float* x, float* y, int64_t rows, int64_t columns) {
  for (; rows > 0; --rows, x += columns, y += columns) {
    const Vec<float> scale = Splat(1 / RowSum(x, columns));
    ForVectors(columns, [&](int64_t c, int n) { StoreUpTo(y + c, LoadUpTo(x + c, n) * scale, n); });
  }
}

void SubtractColumn(const float* x, const float* shift, float* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const Vec<float> less = Splat(shift[r]);
    ForVectors(columns, [&](int64_t c, int n) { StoreUpTo(y + c, LoadUpTo(x + c, n) - less, n); });
  }
}

void LabelSums(const float* x, const float* labels, float* weights, float* dots, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, x += columns, labels += columns) {
    Vec<float> weight{}, dot{};
    ForVectors(columns, [&](int64_t c, int n) {
      const Vec<float> l = LoadUpTo(labels + c, n), product = l * LoadUpTo(x + c, n);
      weight += l;
      dot += l == Vec<float>{} ? Vec<float>{} : product;
    });
    weights[r] = Across(weight);
    dots[r] = Across(dot);
  }
}

void SoftmaxLessLabels(const float* x, const float* sums, const float* labels, float* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, x += columns, labels += columns, y += columns) {
    const Vec<float> scale = Splat(1 / sums[r]);
    ForVectors(columns, [&](int64_t c, int n) { StoreUpTo(y + c, LoadUpTo(x + c, n) * scale - LoadUpTo(labels + c, n), n); });
  }
}

}  // namespace

const VectorTable& Vectors() {
  static constexpr VectorTable table = {
      .relu = Relu,
      .relu6 = Relu6,
      .relu_grad = ReluGrad,
      .relu6_grad = Relu6Grad,
      .add_bias = AddBias,
      .sum_rows = SumRows,
      .sum = Sum,
      .shift_rows = ShiftRows,
      .normalise_rows = NormaliseRows,
      .row_sums = RowSums,
      .subtract_column = SubtractColumn,
      .label_sums = LabelSums,
      .softmax_less_labels = SoftmaxLessLabels,
      .load_half = LoadHalf,
      .store_half = StoreHalf,
      .load_bfloat16 = LoadBfloat16,
      .store_bfloat16 = StoreBfloat16,
  };
  return table;
}

}  // namespace thalweg::cpu::THALWEG_ISA
