// Quantised forms: numbers of 8 bits (and 16, 4 and 2) that stand for (number - zero point) * scale. Products are computed exactly, in
// int32, by our quantised ops if a factor has one zero point; halves round to even.
#include <algorithm>
#include <iterator>
#include <limits>

#include "../model.h"
#include "cast.h"
#include "conv.h"
#include "eight_bits.h"
#include "matmul.h"

namespace thalweg::onnx {
namespace {

struct Limits {
  double low, high;
};

Limits LimitsOf(Node& n, uint32_t dtype) {
  switch (dtype) {
    case TW_INT8: return {-128, 127};
    case TW_UINT8: return {0, 255};
    case TW_INT16: return {-32768, 32767};
    case TW_UINT16: return {0, 65535};
    case TW_INT4: return {-8, 7};
    case TW_UINT4: return {0, 15};
    case TW_INT2: return {-2, 1};
    case TW_UINT2: return {0, 3};
    default: n.unsupported(std::string("quantised numbers of type ") + DtypeName(dtype));
  }
}

uint32_t RealTypeOf(const Value& v) { return v.dtype() == TW_DOUBLE ? TW_DOUBLE : TW_FLOAT; }

// A scale or zero point for values of x's shape: a scalar as it is, a vector along `axis`, blocks repeated along `axis`.
Value Along(Builder& b, Node& n, const Value& v, const Value& x, int64_t axis, int64_t block) {
  if (v.rank() == 0 || (v.rank() == 1 && v.dim(0) == 1 && block == 0)) return v.rank() == 0 ? v : b.reshape(v, Dims{});
  if (x.rank() < 0) n.unsupported("the rank of the input is unknown");
  if (axis < -x.rank() || axis >= x.rank())
    n.fail("'axis' is " + std::to_string(axis) + ", but the input has rank " + std::to_string(x.rank()));
  if (axis < 0) axis += x.rank();
  if (block == 0) {
    Dims dims(static_cast<size_t>(x.rank() - axis), 1);
    dims[0] = -1;
    return b.reshape(v, dims);
  }
  if (v.rank() != x.rank()) n.fail("with 'block_size' the scale needs the rank of the input, " + std::to_string(x.rank()));
  const Value index = b.op("FloorDiv", {b.op("Range", {b.scalar(TW_INT64, 0), b.size(x, static_cast<int>(axis)), b.scalar(TW_INT64, 1)}),
                                        b.scalar(TW_INT64, static_cast<double>(block))});
  return b.op("GatherV2", {v, index, b.scalar(TW_INT32, static_cast<double>(axis))});
}

// round(v) + zero, cut to the limits of `dtype`.
Value Saturate(Builder& b, Node& n, const Value& v, const Value& zero, uint32_t dtype) {
  const Limits limits = LimitsOf(n, dtype);
  Value y = b.op("Round", {v});
  if (zero) y = b.op("AddV2", {y, b.cast(zero, v.dtype())});
  y = b.op("Maximum", {b.op("Minimum", {y, b.like(y, limits.high)}), b.like(y, limits.low)});
  return b.cast(y, dtype);
}

void QuantizeLinear(Builder& b, Node& n) {
  const Value &x = n.in(0), &scale = n.in(1);
  const int64_t axis = n.i("axis", 1), block = n.i("block_size", 0);
  uint32_t to = n.has(2) ? n.in(2).dtype() : static_cast<uint32_t>(TW_UINT8);
  if (!n.has(2) && n.i("output_dtype", 0)) to = DtypeOf(static_cast<int32_t>(n.i("output_dtype")));
  const uint32_t wide = n.i("precision", 0) == 11 ? static_cast<uint32_t>(TW_DOUBLE) : RealTypeOf(scale);
  const Value by = Along(b, n, b.cast(scale, wide), x, axis, block);
  const Value zero = n.has(2) ? Along(b, n, b.cast(n.in(2), wide), x, axis, block) : Value();
  if (to == TW_FLOAT8_E4M3FN || to == TW_FLOAT8_E4M3FNUZ || to == TW_FLOAT8_E5M2 || to == TW_FLOAT8_E5M2FNUZ) {
    const Value scaled = b.op("RealDiv", {b.cast(x, wide), by});
    return n.out(Converted(b, zero ? b.op("AddV2", {scaled, zero}) : scaled, to, n.i("saturate", 1) != 0));
  }
  n.out(Saturate(b, n, b.op("RealDiv", {b.cast(x, wide), by}), zero, to));
}

void DequantizeLinear(Builder& b, Node& n) {
  const Value &x = n.in(0), &scale = n.in(1);
  const int64_t axis = n.i("axis", 1), block = n.i("block_size", 0);
  const uint32_t to = n.i("output_dtype", 0) ? DtypeOf(static_cast<int32_t>(n.i("output_dtype"))) : scale.dtype();
  const uint32_t wide = RealTypeOf(scale);
  Value y = b.cast(x, wide);
  if (n.has(2)) y = b.op("Sub", {y, Along(b, n, b.cast(n.in(2), wide), x, axis, block)});
  n.out(b.cast(b.op("Mul", {y, Along(b, n, b.cast(scale, wide), x, axis, block)}), to));
}

void DynamicQuantizeLinear(Builder& b, Node& n) {
  const Value& x = n.in(0);
  std::vector<int64_t> all;
  if (x.rank() < 0) n.unsupported("the rank of the input is unknown");
  for (int i = 0; i < x.rank(); ++i) all.push_back(i);
  const Value zero = b.like(x, 0);
  const Value low = b.op("Minimum", {b.op("Min", {x, b.ints(all)}), zero}), high = b.op("Maximum", {b.op("Max", {x, b.ints(all)}), zero});
  const Value scale = b.op("RealDiv", {b.op("Sub", {high, low}), b.like(x, 255)});
  Value point = b.op("Round", {b.op("DivNoNan", {b.op("Neg", {low}), scale})});
  point = b.op("Maximum", {b.op("Minimum", {point, b.like(x, 255)}), zero});
  const Value safe = b.op("SelectV2", {b.op("Equal", {scale, zero}), b.like(x, 1), scale});
  n.out(0, Saturate(b, n, b.op("RealDiv", {x, safe}), point, TW_UINT8));
  n.out(1, scale);
  n.out(2, b.cast(point, TW_UINT8));
}

// ---- Products ----

// x - zero in int32. zero: a scalar, or a vector along `axis` of x.
Value Centred(Builder& b, Node& n, const Value& x, const Value& zero, int64_t axis) {
  const Value wide = b.cast(x, TW_INT32);
  if (!zero) return wide;
  const Value point = b.cast(zero, TW_INT32);
  return b.op("Sub", {wide, Along(b, n, point, x, axis, 0)});
}

// Zero points and scales of the left factor go by rows, those of the right one by columns.
int64_t RowAxis(const Value& v) { return v.rank() > 1 ? -2 : -1; }

// The sums of (x - zero_x) * (y - zero_y) in int32.
Value CentredProduct(Builder& b, Node& n, const Value& x, const Value& zero_x, const Value& y, const Value& zero_y) {
  if (!IsOneProduct(x, y) || !IsEightBits(x, zero_x) || !IsEightBits(y, zero_y))
    return MatMulOf(b, n, Centred(b, n, x, zero_x, RowAxis(x)), Centred(b, n, y, zero_y, -1));
  return MatMulBy(b, n, x, y, [&](const Value& u, const Value& v) {
    const EightBits left = EightBitsOf(b, u, zero_x), right = EightBitsOf(b, v, zero_y);
    return SumsOf(b, b.op("QuantizedMatMul", {left.number, right.number, left.min, left.max, right.min, right.max}));
  });
}

Value CentredConv(Builder& b, Node& n, const Value& x, const Value& zero_x, const Value& w, const Value& zero_w) {
  if (const Value sums = ConvOfEightBits(b, n, x, zero_x, w, zero_w)) return sums;
  return ConvOf(b, n, Centred(b, n, x, zero_x, 1), Centred(b, n, w, zero_w, 0));
}

void MatMulInteger(Builder& b, Node& n) { n.out(CentredProduct(b, n, n.in(0), n.maybe(2), n.in(1), n.maybe(3))); }

void QLinearMatMul(Builder& b, Node& n) {
  Value product = b.cast(CentredProduct(b, n, n.in(0), n.in(2), n.in(3), n.in(5)), TW_FLOAT);
  product = b.op("Mul", {product, Along(b, n, b.cast(n.in(1), TW_FLOAT), product, RowAxis(product), 0)});
  product = b.op("Mul", {product, Along(b, n, b.cast(n.in(4), TW_FLOAT), product, -1, 0)});
  product = b.op("RealDiv", {product, Along(b, n, b.cast(n.in(6), TW_FLOAT), product, RowAxis(product), 0)});
  n.out(Saturate(b, n, product, Along(b, n, n.in(7), product, RowAxis(product), 0), n.in(7).dtype()));
}

void ConvInteger(Builder& b, Node& n) { n.out(CentredConv(b, n, n.in(0), n.maybe(2), n.in(1), n.maybe(3))); }

void QLinearConv(Builder& b, Node& n) {
  Value y = CentredConv(b, n, n.in(0), n.in(2), n.in(3), n.in(5));
  if (n.has(8)) y = b.op("AddV2", {y, Along(b, n, n.in(8), y, 1, 0)});
  y = b.cast(y, TW_FLOAT);
  const Value scale = b.op("RealDiv", {b.op("Mul", {b.cast(n.in(1), TW_FLOAT), b.cast(n.in(4), TW_FLOAT)}), b.cast(n.in(6), TW_FLOAT)});
  y = b.op("Mul", {y, Along(b, n, scale, y, 1, 0)});
  n.out(Saturate(b, n, y, Along(b, n, n.in(7), y, 1, 0), n.in(7).dtype()));
}

constexpr Entry kQuantise[] = {
    {"ConvInteger", 10, kLatest, &ConvInteger},
    {"DequantizeLinear", 10, kLatest, &DequantizeLinear},
    {"DynamicQuantizeLinear", 11, kLatest, &DynamicQuantizeLinear},
    {"MatMulInteger", 10, kLatest, &MatMulInteger},
    {"QLinearConv", 10, kLatest, &QLinearConv},
    {"QLinearMatMul", 10, kLatest, &QLinearMatMul},
    {"QuantizeLinear", 10, kLatest, &QuantizeLinear},
};

}  // namespace

Family QuantiseTranslators() { return {std::begin(kQuantise), std::end(kQuantise)}; }

}  // namespace thalweg::onnx
