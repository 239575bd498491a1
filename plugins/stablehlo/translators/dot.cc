// Products of matrices and tensors: dot, dot_general, einsum forms.
#include <algorithm>
#include <iterator>

#include "common.h"
#include "product.h"

namespace thalweg::stablehlo {
namespace {

void Dot(Translation& t, Op& op) {
  const Value &a = op.in(0), &b = op.in(1);
  op.out(Product(t, op, a, b, {{}, {}, {RankOf(op, a) - 1}, {0}}, op.out_dtype()));
}

void DotGeneral(Translation& t, Op& op) {
  const ProductAxes axes{op.ints("lhs_batching_dimensions", {}), op.ints("rhs_batching_dimensions", {}),
                         op.ints("lhs_contracting_dimensions", {}), op.ints("rhs_contracting_dimensions", {})};
  op.out(Product(t, op, op.in(0), op.in(1), axes, op.out_dtype()));
}

void Einsum(Translation& t, Op& op) {
  std::string equation = op.s("einsum_config");
  op.out(t.op("Einsum", op.all(), {{"equation", equation}, {"N", op.inputs()}}));
}

constexpr Entry kDot[] = {
    {"stablehlo.dot", &Dot},
    {"stablehlo.dot_general", &DotGeneral},
    {"stablehlo.einsum", &Einsum},
    {"stablehlo.unary_einsum", &Einsum},
};

}  // namespace

uint32_t WorkingType(uint32_t dtype) {
  switch (dtype) {
    case TW_BOOL:
    case TW_INT8:
    case TW_UINT8:
    case TW_INT16:
    case TW_UINT16: return TW_INT32;  // the low bits of sums of products are the same
    default: return dtype;
  }
}

Value Product(Translation& t, const Op& op, const Value& lhs, const Value& rhs, const ProductAxes& axes, uint32_t dtype) {
  const int a_rank = RankOf(op, lhs), b_rank = RankOf(op, rhs);
  if (axes.lhs_batch.size() != axes.rhs_batch.size() || axes.lhs_sum.size() != axes.rhs_sum.size()) {
    op.fail("the operands have other numbers of batching or of contracting dimensions");
  }
  const auto check = [&](const std::vector<int64_t>& all, int rank) {
    for (const int64_t axis : all) AxisOf(op, axis, rank);
  };
  check(axes.lhs_batch, a_rank);
  check(axes.lhs_sum, a_rank);
  check(axes.rhs_batch, b_rank);
  check(axes.rhs_sum, b_rank);
  const uint32_t type = WorkingType(dtype);
  const auto joined = [](std::vector<int64_t> x, const std::vector<int64_t>& y) {
    x.insert(x.end(), y.begin(), y.end());
    return x;
  };
  const std::vector<int64_t> a_free = Others(joined(axes.lhs_batch, axes.lhs_sum), a_rank);
  const std::vector<int64_t> b_free = Others(joined(axes.rhs_batch, axes.rhs_sum), b_rank);
  const std::vector<Value> a_sizes = SizesOf(t, lhs), b_sizes = SizesOf(t, rhs);
  const auto picked = [](const std::vector<Value>& sizes, const std::vector<int64_t>& which) {
    std::vector<Value> some;
    for (const int64_t axis : which) some.push_back(sizes[static_cast<size_t>(axis)]);
    return some;
  };
  const std::vector<Value> batch = picked(a_sizes, axes.lhs_batch), sum = picked(a_sizes, axes.lhs_sum), m = picked(a_sizes, a_free),
                           n = picked(b_sizes, b_free);
  const Value rows = Product(t, m, 0, m.size()), columns = Product(t, n, 0, n.size()), inner = Product(t, sum, 0, sum.size());
  const Value batches = Product(t, batch, 0, batch.size());
  Value a = t.cast(lhs, type), b = t.cast(rhs, type);
  a = t.transpose(a, joined(joined(axes.lhs_batch, a_free), axes.lhs_sum));
  b = t.transpose(b, joined(joined(axes.rhs_batch, axes.rhs_sum), b_free));
  std::vector<Value> sizes = batch;
  sizes.insert(sizes.end(), m.begin(), m.end());
  sizes.insert(sizes.end(), n.begin(), n.end());
  Value product;
  if (axes.lhs_sum.empty() && axes.lhs_batch.empty() && (m.empty() || n.empty())) {
    product = t.op("Mul", {a, b});
    return t.cast(ReshapeTo(t, product, sizes), dtype);
  }
  if (batch.empty()) {
    a = ReshapeTo(t, a, {rows, inner});
    b = ReshapeTo(t, b, {inner, columns});
    product = t.op("MatMul", {a, b});
  } else {
    a = ReshapeTo(t, a, {batches, rows, inner});
    b = ReshapeTo(t, b, {batches, inner, columns});
    product = t.op("BatchMatMulV2", {a, b});
  }
  product = ReshapeTo(t, product, sizes);
  return dtype == TW_BOOL ? t.op("NotEqual", {product, t.like(product, 0)}) : t.cast(product, dtype);
}

Family dot_translators() { return {std::begin(kDot), std::end(kDot)}; }

}  // namespace thalweg::stablehlo
