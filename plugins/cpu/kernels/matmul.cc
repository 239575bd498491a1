// MatMul and BatchMatMulV2. Floating-point products run on gemm.h, the others on plain loops.
#include <algorithm>
#include <type_traits>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/gemm.h"
#include "kernels/plain_product.h"
#include "kernels/register.h"
#include "kernels/slots.h"

namespace thalweg::cpu {
namespace {

// One matrix of a factor: its sizes as stored, and whether the product wants it transposed.
struct Factor {
  int64_t rows, columns;
  bool transposed;
  int64_t outer() const { return transposed ? columns : rows; }
  int64_t inner() const { return transposed ? rows : columns; }
};

// The matrix in the last two axes; trust in the shape rule ends here, because the loops index by these sizes.
Factor FactorOf(const int64_t* dims, int32_t rank, bool transposed, const char* name) {
  if (rank < 2) Invalid(std::string(name) + " must be a matrix or a batch of them, but its shape is " + tw::text(dims, rank));
  return {dims[rank - 2], dims[rank - 1], transposed};
}
void CheckSizes(const Factor& a, const Factor& b, const int64_t* out, int32_t out_rank) {
  const int64_t inner_b = b.transposed ? b.columns : b.rows, n = b.transposed ? b.rows : b.columns;
  if (a.inner() != inner_b)
    Invalid("inner dimensions differ: " + tw::text(a.inner()) + " and " + tw::text(inner_b) + "; transpose or reshape one factor");
  if (out_rank < 2 || out[out_rank - 2] != a.outer() || out[out_rank - 1] != n)
    Invalid("the product has shape " + tw::text(out, out_rank) + ", the factors make [.., " + tw::text(a.outer()) + ", " + tw::text(n) +
            "]");
}

template <class T>
MatrixProduct<T> ProductOf(const Factor& a, const Factor& b) {
  MatrixProduct<T> p{};
  p.m = a.outer();
  p.k = a.inner();
  p.n = b.transposed ? b.rows : b.columns;
  p.lda = a.columns;
  p.ldb = b.columns;
  p.ldc = p.n;
  p.trans_a = a.transposed;
  p.trans_b = b.transposed;
  return p;
}

template <class T>
PlainProduct<T> PlainProductOf(const Factor& a, const Factor& b, bool conjugate_a, bool conjugate_b) {
  PlainProduct<T> p{};
  p.m = a.outer();
  p.k = a.inner();
  p.n = b.transposed ? b.rows : b.columns;
  p.a_row = a.transposed ? 1 : a.columns;
  p.a_column = a.transposed ? a.columns : 1;
  p.b_row = b.transposed ? 1 : b.columns;
  p.b_column = b.transposed ? b.columns : 1;
  p.conjugate_a = conjugate_a;
  p.conjugate_b = conjugate_b;
  return p;
}

int64_t Work(int64_t m, int64_t n, int64_t k) { return int64_t(std::min(1e15, double(m) * double(n) * double(k))); }

template <class T>
class MatMul {
 public:
  explicit MatMul(const tw::Node& n)
      : tables_(GemmTablesFor(n.host())), trans_a_(n.b("transpose_a")), trans_b_(n.b("transpose_b")), slots_(WorkerSlots()) {}

  uint64_t scratch(const tw::Node& n) const {
    if constexpr (!kIsFloat<T>)
      return 0;
    else
      return ProductScratch(ProductOf<T>(Of(n.node->shapes[0], trans_a_, "a"), Of(n.node->shapes[1], trans_b_, "b"))) * uint64_t(slots_);
  }

  void operator()(tw::Frame frame, tw::In<T> a, tw::In<T> b, tw::Out<T> c) const {
    const Factor fa = FactorOf(a.dims(), a.rank(), trans_a_, "a"), fb = FactorOf(b.dims(), b.rank(), trans_b_, "b");
    CheckSizes(fa, fb, c.dims(), c.rank());
    if constexpr (kIsFloat<T>) {
      MatrixProduct<T> p = ProductOf<T>(fa, fb);
      p.a = a.data();
      p.b = b.data();
      p.c = c.data();
      Workspace work(frame.f, ProductScratch(p) * uint64_t(slots_));
      Multiply(tables_, frame.f, p, slots_, work.data());
    } else {
      if (c.size() == 0) return;
      PlainProduct<T> p = PlainProductOf<T>(fa, fb, false, false);
      p.a = a.data();
      p.b = b.data();
      p.c = c.data();
      ParallelFor(frame.f, p.m, Work(1, p.n, p.k), [&](int64_t begin, int64_t end) { MultiplyRows(p, begin, end); });
    }
  }

 private:
  static Factor Of(const tw_shape& s, bool transposed, const char* name) { return FactorOf(s.dims, s.rank, transposed, name); }

  GemmTables tables_;
  bool trans_a_, trans_b_;
  int slots_;
};

// Where matrix `batch` of the output finds its factor: axes of size 1 repeat, missing ones too.
int64_t FactorIndex(int64_t batch, const int64_t* out, int32_t out_rank, const int64_t* in, int32_t in_rank) {
  int64_t index = 0, step = 1;
  for (int32_t axis = out_rank - 3, own = in_rank - 3; axis >= 0 && own >= 0; --axis, --own) {
    const int64_t at = batch % out[axis];
    batch /= out[axis];
    if (in[own] != 1) index += at * step;
    step *= in[own];
  }
  return index;
}

int64_t Matrices(const int64_t* dims, int32_t rank) {
  int64_t n = 1;
  for (int32_t i = 0; i + 2 < rank; ++i) n *= dims[i];
  return n;
}

void CheckBatch(const int64_t* in, int32_t in_rank, const int64_t* out, int32_t out_rank, const char* name) {
  bool fits = in_rank <= out_rank;
  for (int32_t axis = out_rank - 3, own = in_rank - 3; fits && own >= 0; --axis, --own) fits = in[own] == out[axis] || in[own] == 1;
  if (!fits)
    Invalid(std::string("the batch axes of ") + name + " " + tw::text(in, in_rank) + " do not broadcast to " + tw::text(out, out_rank));
}

template <class T>
class BatchMatMul {
 public:
  explicit BatchMatMul(const tw::Node& n)
      : tables_(GemmTablesFor(n.host())), adj_x_(n.b("adj_x")), adj_y_(n.b("adj_y")), slots_(WorkerSlots()) {}

  uint64_t scratch(const tw::Node& n) const {
    if constexpr (!kIsFloat<T>) {
      return 0;
    } else {
      const tw_shape &x = n.node->shapes[0], &y = n.node->shapes[1];
      MatrixProduct<T> p = ProductOf<T>(FactorOf(x.dims, x.rank, adj_x_, "x"), FactorOf(y.dims, y.rank, adj_y_, "y"));
      Flatten(&p, Matrices(x.dims, x.rank), Matrices(y.dims, y.rank));
      return ProductScratch(p) * uint64_t(slots_);
    }
  }

  void operator()(tw::Frame frame, tw::In<T> x, tw::In<T> y, tw::Out<T> z) const {
    const Factor fx = FactorOf(x.dims(), x.rank(), adj_x_, "x"), fy = FactorOf(y.dims(), y.rank(), adj_y_, "y");
    CheckSizes(fx, fy, z.dims(), z.rank());
    CheckBatch(x.dims(), x.rank(), z.dims(), z.rank(), "x");
    CheckBatch(y.dims(), y.rank(), z.dims(), z.rank(), "y");
    if (z.size() == 0) return;
    auto x_at = [&](int64_t b) { return x.data() + FactorIndex(b, z.dims(), z.rank(), x.dims(), x.rank()) * fx.rows * fx.columns; };
    auto y_at = [&](int64_t b) { return y.data() + FactorIndex(b, z.dims(), z.rank(), y.dims(), y.rank()) * fy.rows * fy.columns; };
    int64_t count = Matrices(z.dims(), z.rank());
    if constexpr (kIsFloat<T>) {
      MatrixProduct<T> p = ProductOf<T>(fx, fy);
      if (Flatten(&p, Matrices(x.dims(), x.rank()), Matrices(y.dims(), y.rank()))) count = 1;
      Workspace work(frame.f, ProductScratch(p) * uint64_t(slots_));
      MultiplyAll(frame.f, p, count, x_at, y_at, z.data(), work.data());
    } else {
      const PlainProduct<T> all = PlainProductOf<T>(fx, fy, adj_x_, adj_y_);
      ParallelFor(frame.f, count, Work(all.m, all.n, all.k), [&](int64_t begin, int64_t end) {
        PlainProduct<T> p = all;
        for (int64_t i = begin; i < end; ++i) {
          p.a = x_at(i);
          p.b = y_at(i);
          p.c = z.data() + i * p.m * p.n;
          MultiplyRows(p, 0, p.m);
        }
      });
    }
  }

 private:
  // Many matrices times one are one tall matrix times it.
  bool Flatten(MatrixProduct<T>* p, int64_t x_count, int64_t y_count) const {
    if (y_count != 1 || adj_x_) return false;
    p->m *= x_count;
    return true;
  }

  // Large products are shared out one by one, small ones whole and several at a time.
  template <class X, class Y>
  void MultiplyAll(const tw_frame* f, const MatrixProduct<T>& shape, int64_t count, X x_at, Y y_at, T* z, char* scratch) const {
    auto product = [&](int64_t i) {
      MatrixProduct<T> p = shape;
      p.a = x_at(i);
      p.b = y_at(i);
      p.c = z + i * p.m * p.n;
      return p;
    };
    constexpr int64_t kTaskWork = 1 << 19;  // multiply-adds
    const int64_t work = std::max<int64_t>(1, Work(shape.m, shape.n, shape.k));
    if (count < slots_ && work > kTaskWork) {
      for (int64_t i = 0; i < count; ++i) Multiply(tables_, f, product(i), slots_, scratch);
      return;
    }
    const int64_t together = std::clamp<int64_t>(kTaskWork / work, 1, count);
    const uint64_t bytes = ProductScratch(shape);
    ForEachTask(f, (count + together - 1) / together, slots_, [&](int64_t task, int slot) {
      for (int64_t i = task * together; i < std::min(count, (task + 1) * together); ++i)
        MultiplyCell(tables_, product(i), 0, shape.m, 0, shape.n, scratch + uint64_t(slot) * bytes);
    });
  }

  GemmTables tables_;
  bool adj_x_, adj_y_;
  int slots_;
};

}  // namespace

void register_matmul(tw::Plugin& p) {
  p.kernel<MatMul<float>, MatMul<double>, MatMul<half>, MatMul<bfloat16>>("MatMul @CPU");
  p.kernel<MatMul<int32_t>, MatMul<int64_t>, MatMul<uint8_t>, MatMul<uint16_t>, MatMul<uint32_t>, MatMul<uint64_t>>("MatMul @CPU");
  p.kernel<MatMul<complex64>, MatMul<complex128>>("MatMul @CPU");
  p.kernel<BatchMatMul<float>, BatchMatMul<double>, BatchMatMul<half>, BatchMatMul<bfloat16>>("BatchMatMulV2 @CPU");
  p.kernel<BatchMatMul<int16_t>, BatchMatMul<int32_t>, BatchMatMul<int64_t>>("BatchMatMulV2 @CPU");
  p.kernel<BatchMatMul<uint8_t>, BatchMatMul<uint16_t>, BatchMatMul<uint32_t>, BatchMatMul<uint64_t>>("BatchMatMulV2 @CPU");
  p.kernel<BatchMatMul<complex64>, BatchMatMul<complex128>>("BatchMatMulV2 @CPU");
}

}  // namespace thalweg::cpu
