#include "eight_bits.h"

namespace thalweg::onnx {
namespace {

// Returns true if all elements are known and equal.
bool AllEqual(const Value& v) {
  const Tensor* t = v.constant();
  if (!t || t->count() == 0) return false;
  for (int64_t i = 1; i < t->count(); ++i) {
    if (t->integer(i) != t->integer(0)) return false;
  }
  return true;
}

bool IsOne(const Value& v) { return v.rank() == 0 || (v.rank() == 1 && v.dim(0) == 1); }

}  // namespace

bool IsEightBits(const Value& v, const Value& zero) {
  if (v.dtype() != TW_INT8 && v.dtype() != TW_UINT8) return false;
  return !zero || (zero.dtype() == v.dtype() && (IsOne(zero) || AllEqual(zero)));
}

Value ZeroPointOf(Builder& b, const Value& v, const Value& zero) {
  if (!zero) return b.like(v, 0);
  if (!IsOne(zero)) return b.like(v, static_cast<double>(zero.constant()->integer(0)));
  return zero.rank() == 0 ? zero : b.reshape(zero, Dims{});
}

EightBits EightBitsOf(Builder& b, const Value& v, const Value& zero) {
  const bool is_signed = v.dtype() == TW_INT8;
  const Value point = b.cast(ZeroPointOf(b, v, zero), TW_FLOAT);
  return {b.op("Bitcast", {v}, {{"type", Type{static_cast<uint32_t>(is_signed ? TW_QINT8 : TW_QUINT8)}}}),
          b.op("Sub", {b.scalar(TW_FLOAT, is_signed ? -128 : 0), point}), b.op("Sub", {b.scalar(TW_FLOAT, is_signed ? 127 : 255), point})};
}

Value SumsOf(Builder& b, const Value& sums) { return b.op("Bitcast", {sums}, {{"type", Type{TW_INT32}}}); }

}  // namespace thalweg::onnx
