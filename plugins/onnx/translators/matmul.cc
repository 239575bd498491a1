// Products of matrices and sums of products.
#include "matmul.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace thalweg::onnx {
namespace {

// Types without a kernel for products are widened; the low bits of sums of integers stay the same.
uint32_t ProductType(uint32_t dtype) {
  switch (dtype) {
    case TW_INT8:
    case TW_INT16:
    case TW_UINT8:
    case TW_UINT16: return TW_INT32;
    case TW_UINT32:
    case TW_UINT64: return TW_INT64;
    default: return dtype;
  }
}

}  // namespace

bool IsOneProduct(const Value& x, const Value& y) {
  const int rx = x.rank(), ry = y.rank();
  if (rx < 1 || ry < 1 || ry > 2) return false;
  return rx <= 2 || x.dim(-1) >= 0 || y.dim(0) >= 0;
}

Value MatMulBy(Builder& b, Node& n, Value x, Value y, const MatrixProduct& product) {
  const int rx = x.rank(), ry = y.rank();
  if (rx == 0 || ry == 0) n.fail("a scalar is no matrix");
  if (rx < 0 || ry < 0) n.unsupported("the ranks of both factors must be known");
  if (rx == 1) x = b.unsqueeze(x, {0});
  if (ry == 1) y = b.unsqueeze(y, {1});
  Value made;
  if (x.rank() > 2 && IsOneProduct(x, y)) {
    // One matrix for all rows: a single product of [rows, k] and [k, n].
    const int64_t k = x.dim(-1), columns = y.dim(-1);
    made = product(b.reshape(x, Dims{-1, k >= 0 ? k : y.dim(0)}), y);
    int64_t unknown = columns < 0;
    Dims dims = x.dims();
    dims.back() = columns;
    for (size_t i = 0; i + 1 < dims.size(); ++i) unknown += dims[i] < 0;
    if (unknown <= 1) {
      made = b.reshape(made, dims);
    } else {
      const Value lead = b.slice0(b.shape(x), 0, rx - 1);
      made = b.reshape(made, b.concat({lead, columns >= 0 ? b.ints({columns}) : b.unsqueeze(b.size(y, 1), {0})}, 0));
    }
  } else {
    made = product(x, y);
  }
  if (ry == 1) made = b.squeeze(made, {-1});
  if (rx == 1) made = b.squeeze(made, {ry == 1 ? -1 : -2});
  return made;
}

Value MatMulOf(Builder& b, Node& n, Value x, Value y) {
  return MatMulBy(b, n, std::move(x), std::move(y), [&b](const Value& u, const Value& v) {
    return b.op(u.rank() == 2 && v.rank() == 2 ? "MatMul" : "BatchMatMulV2", {u, v});
  });
}

namespace {

void MatMul(Builder& b, Node& n) {
  const uint32_t dtype = n.in(0).dtype(), wide = ProductType(dtype);
  n.out(b.cast(MatMulOf(b, n, b.cast(n.in(0), wide), b.cast(n.in(1), wide)), dtype));
}

void Gemm(Builder& b, Node& n) {
  const uint32_t dtype = n.in(0).dtype(), wide = ProductType(dtype);
  const bool real = IsFloating(dtype);
  const double alpha = n.f("alpha", 1), beta = n.f("beta", 1);
  Value y = b.op("MatMul", {b.cast(n.in(0), wide), b.cast(n.in(1), wide)},
                 {{"transpose_a", n.i("transA", 0) != 0}, {"transpose_b", n.i("transB", 0) != 0}});
  if (!real && (alpha != 1 || beta != 1)) {
    // Factors are real numbers: the sum is computed in double and cut.
    y = b.op("Mul", {b.cast(y, TW_DOUBLE), b.scalar(TW_DOUBLE, alpha)});
    if (n.has(2)) y = b.op("AddV2", {y, b.op("Mul", {b.cast(n.in(2), TW_DOUBLE), b.scalar(TW_DOUBLE, beta)})});
    return n.out(b.cast(y, dtype));
  }
  if (alpha != 1) y = b.op("Mul", {y, b.like(y, alpha)});
  if (n.has(2) && beta != 0) {
    Value c = b.cast(n.in(2), wide);
    if (beta != 1) c = b.op("Mul", {c, b.like(c, beta)});
    const bool row = c.rank() == 1 && c.dim(0) != 1;
    y = b.op(row && real ? "BiasAdd" : "AddV2", {y, c});
  }
  n.out(b.cast(y, dtype));
}

void Einsum(Builder& b, Node& n) { n.out(b.op("Einsum", n.all(), {{"equation", n.s("equation")}})); }

constexpr Entry kMatmul[] = {
    {"Einsum", 12, kLatest, &Einsum},
    {"Gemm", 1, kLatest, &Gemm},
    {"MatMul", 1, kLatest, &MatMul},
};

}  // namespace

Family MatMulTranslators() { return {std::begin(kMatmul), std::end(kMatmul)}; }

}  // namespace thalweg::onnx
