// The kernels of BatchMatMul, BatchMatMulV2 and BatchMatMulV3: products of the matrices in the last
// two axes. The factors of V3 have types of their own and are converted to the product's type
// first. A factor type is refused if the product's type cannot hold all its numbers.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_BATCH_MATMUL_H_
#define THALWEG_PLUGINS_CPU_KERNELS_BATCH_MATMUL_H_

#include <limits>
#include <vector>

#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/factor.h"

namespace thalweg::cpu {

// Returns the index of the factor's matrix for matrix `batch` of the output. Axes of size 1 and
// missing axes repeat.
inline int64_t FactorIndex(int64_t batch, const int64_t* out, int32_t out_rank, const int64_t* in, int32_t in_rank) {
  int64_t index = 0, step = 1;
  for (int32_t axis = out_rank - 3, own = in_rank - 3; axis >= 0 && own >= 0; --axis, --own) {
    const int64_t at = batch % out[axis];
    batch /= out[axis];
    if (in[own] != 1) index += at * step;
    step *= in[own];
  }
  return index;
}

inline int64_t Matrices(const int64_t* dims, int32_t rank) {
  int64_t n = 1;
  for (int32_t i = 0; i + 2 < rank; ++i) n *= dims[i];
  return n;
}

inline void CheckBatch(const int64_t* in, int32_t in_rank, const int64_t* out, int32_t out_rank, const char* name) {
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

  void operator()(tw::Frame frame, tw::In<T> x, tw::In<T> y, tw::Out<T> z) const { Run(frame, x.v, x.data(), y.v, y.data(), z); }

  // Computes z. x and y are the elements of the tensors xv and yv, in type T.
  void Run(tw::Frame frame, const tw_view* xv, const T* x, const tw_view* yv, const T* y, tw::Out<T> z) const {
    const Factor fx = FactorOf(xv->dims, xv->rank, adj_x_, "x"), fy = FactorOf(yv->dims, yv->rank, adj_y_, "y");
    CheckSizes(fx, fy, z.dims(), z.rank());
    CheckBatch(xv->dims, xv->rank, z.dims(), z.rank(), "x");
    CheckBatch(yv->dims, yv->rank, z.dims(), z.rank(), "y");
    if (z.size() == 0) return;
    auto x_at = [&](int64_t b) { return x + FactorIndex(b, z.dims(), z.rank(), xv->dims, xv->rank) * fx.rows * fx.columns; };
    auto y_at = [&](int64_t b) { return y + FactorIndex(b, z.dims(), z.rank(), yv->dims, yv->rank) * fy.rows * fy.columns; };
    int64_t count = Matrices(z.dims(), z.rank());
    if constexpr (kIsFloat<T>) {
      MatrixProduct<T> p = ProductOf<T>(fx, fy);
      if (Flatten(&p, Matrices(xv->dims, xv->rank), Matrices(yv->dims, yv->rank))) count = 1;
      Workspace work(frame.f, ProductScratch(p) * uint64_t(slots_));
      MultiplyMany(tables_, frame.f, p, count, x_at, y_at, z.data(), slots_, work.data());
    } else {
      MultiplyMany(frame.f, PlainProductOf<T>(fx, fy, adj_x_, adj_y_), count, x_at, y_at, z.data());
    }
  }

 protected:
  // Merges the products of many matrices with one into the product of one tall matrix with it,
  // where possible.
  bool Flatten(MatrixProduct<T>* p, int64_t x_count, int64_t y_count) const {
    if (y_count != 1 || adj_x_) return false;
    p->m *= x_count;
    return true;
  }

  GemmTables tables_;
  bool adj_x_, adj_y_;
  int slots_;
};

// Returns true if type To holds every number of type From.
template <class From, class To>
constexpr bool Holds() {
  if constexpr (std::is_same_v<From, To>) {
    return true;
  } else if constexpr (kIsComplex<To>) {
    if constexpr (kIsComplex<From>)
      return sizeof(From) <= sizeof(To);
    else
      return Holds<From, typename To::value_type>();
  } else if constexpr (kIsComplex<From>) {
    return false;
  } else {
    using F = std::numeric_limits<From>;
    using L = std::numeric_limits<To>;
    if (F::is_integer && L::is_integer) return F::digits <= L::digits && (F::is_signed <= L::is_signed);
    return !L::is_integer && F::digits <= L::digits && (F::is_integer || F::max_exponent <= L::max_exponent);
  }
}

// The elements of a tensor as type T. If the tensor has another type, they are converted into
// `room`.
template <class T>
struct Converted {
  TempArray<T> room;
  const T* data = nullptr;

  template <class From>
  bool Take(const tw_frame* f, const tw_view* v) {
    auto* from = reinterpret_cast<const From*>(Bytes(v));
    if constexpr (std::is_same_v<From, T>) {
      data = from;
      return true;
    } else if constexpr (Holds<From, T>()) {
      room = TempArray<T>(f, v->count);
      T* to = room.data();
      data = to;
      ParallelFor(f, int64_t(v->count), 2, [from, to](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = T(Wide<From>(from[i]));
      });
      return true;
    } else {
      return false;
    }
  }
  bool Take(const tw_frame* f, const tw_view* v) {
    switch (v->dtype) {
      case TW_FLOAT: return Take<float>(f, v);
      case TW_DOUBLE: return Take<double>(f, v);
      case TW_HALF: return Take<half>(f, v);
      case TW_BFLOAT16: return Take<bfloat16>(f, v);
      case TW_INT8: return Take<int8_t>(f, v);
      case TW_INT16: return Take<int16_t>(f, v);
      case TW_INT32: return Take<int32_t>(f, v);
      case TW_INT64: return Take<int64_t>(f, v);
      case TW_UINT8: return Take<uint8_t>(f, v);
      case TW_COMPLEX64: return Take<complex64>(f, v);
      case TW_COMPLEX128: return Take<complex128>(f, v);
      default: return false;
    }
  }
};

// Product: the class that multiplies factors of one type, constructed from the node and `with`.
template <class T, class Product = BatchMatMul<T>>
class BatchMatMulV3 {
 public:
  template <class... With>
  explicit BatchMatMulV3(const tw::Node& n, const With&... with) : product_(n, with...) {}
  void operator()(tw::Frame frame, tw::In<tw::Any> x, tw::In<tw::Any> y, tw::Out<T> z) const {
    Converted<T> a, b;
    Convert(frame.f, x.v, &a, "x", z.v());
    Convert(frame.f, y.v, &b, "y", z.v());
    product_.Run(frame, x.v, a.data, y.v, b.data, z);
  }

 private:
  static void Convert(const tw_frame* f, const tw_view* v, Converted<T>* to, const char* name, const tw_view* z) {
    if (to->Take(f, v)) return;
    throw tw::Error{TW_UNIMPLEMENTED, std::string("a product of type ") + TypeText(z->dtype) + " does not hold the numbers of '" + name +
                                          "', which is of type " + TypeText(v->dtype) + "; cast it, or ask for another Tout"};
  }

  Product product_;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_BATCH_MATMUL_H_
