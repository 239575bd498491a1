// Code that the kernels of recurrent cells share: tensors as floats, products over temporary
// matrices, and temporary memory.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_CELL_H_
#define THALWEG_PLUGINS_CPU_KERNELS_CELL_H_

#include <cstring>
#include <vector>

#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/gemm.h"
#include "kernels/recurrent.h"
#include "kernels/slots.h"
#include "kernels/widen.h"

namespace thalweg::cpu {

// An input as floats: the tensor itself, or a copy if its elements have 16 bits.
template <class T>
class FloatIn {
 public:
  FloatIn(tw::Frame f, const VectorTable& v, const tw::In<T>& x) {
    if constexpr (std::is_same_v<T, float>) {
      data_ = x.data();
    } else {
      own_ = TempArray<float>(f, x.size());
      Widen(v, x.data(), own_.data(), int64_t(x.size()));
      data_ = own_.data();
    }
  }
  const float* data() const { return data_; }

 private:
  TempArray<float> own_;
  const float* data_;
};

// An output computed as floats. Store rounds each element once and writes it to the tensor.
template <class T>
class FloatOut {
 public:
  explicit FloatOut(const tw::Out<T>& y) : y_(y) {
    if constexpr (!std::is_same_v<T, float>) own_ = TempArray<float>(y.f, y.size());
  }
  float* data() {
    if constexpr (std::is_same_v<T, float>)
      return y_.data();
    else
      return own_.data();
  }
  void Store(const VectorTable& v) const {
    if constexpr (!std::is_same_v<T, float>) Narrow(v, own_.data(), y_.data(), int64_t(y_.size()));
  }

 private:
  tw::Out<T> y_;
  TempArray<float> own_;
};

inline MatrixProduct<float> FloatProduct(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, bool trans_a, const float* b,
                                         int64_t ldb, bool trans_b, float* c, int64_t ldc) {
  MatrixProduct<float> p{};
  p.m = m, p.n = n, p.k = k;
  p.a = a, p.lda = lda, p.trans_a = trans_a;
  p.b = b, p.ldb = ldb, p.trans_b = trans_b;
  p.c = c, p.ldc = ldc;
  return p;
}

// The function tables of a cell, and its products. Products use memory of their own, because the
// workspace of a product depends on its sizes.
class CellMath {
 public:
  explicit CellMath(const tw_host* host)
      : gemm_(GemmTablesFor(host)), recurrent_(&TW_CPU_FOR_ISA(DetectIsa(host), Recurrent)), slots_(WorkerSlots()) {}

  const RecurrentTable& table() const { return *recurrent_; }
  const VectorTable& vectors() const { return *gemm_.vector; }

  // Runs products one after the other in one shared workspace.
  class Products {
   public:
    Products(const CellMath& math, const tw_frame* f) : math_(math), f_(f) {}
    void operator()(const MatrixProduct<float>& p) {
      if (p.m == 0 || p.n == 0) return;
      const uint64_t bytes = ProductScratch(p) * uint64_t(math_.slots_);
      if (bytes > bytes_) {
        work_ = TempArray<char>();
        work_ = TempArray<char>(f_, bytes);
        bytes_ = bytes;
      }
      Multiply(math_.gemm_, f_, p, math_.slots_, work_.get());
    }

   private:
    const CellMath& math_;
    const tw_frame* f_;
    TempArray<char> work_;
    uint64_t bytes_ = 0;
  };

  // sums[k] = sum over rows of a[row, k] b[row, k]. If b is NULL, of a alone.
  void SumProducts(const tw_frame* f, const float* a, int64_t a_step, const float* b, int64_t b_step, float* sums, int64_t rows,
                   int64_t columns) const {
    ParallelFor(f, columns, Cost(rows), [&](int64_t begin, int64_t end) {
      recurrent_->sum_products(a + begin, a_step, b ? b + begin : nullptr, b_step, sums + begin, rows, end - begin);
    });
  }

 private:
  GemmTables gemm_;
  const RecurrentTable* recurrent_;
  int slots_;
};

// Uninitialised memory for floats.
using Floats = TempArray<float>;

// to = [a b]: `rows` rows of a_columns and b_columns elements side by side.
inline void Beside(const tw_frame* f, const float* a, int64_t a_columns, const float* b, int64_t b_columns, int64_t rows, float* to) {
  const int64_t columns = a_columns + b_columns;
  ParallelFor(f, rows, Cost(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (a_columns) std::memcpy(to + row * columns, a + row * a_columns, size_t(a_columns) * sizeof(float));
      if (b_columns) std::memcpy(to + row * columns + a_columns, b + row * b_columns, size_t(b_columns) * sizeof(float));
    }
  });
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_CELL_H_
