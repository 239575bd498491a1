// Conversions between element types.
#include "cast.h"

#include <array>
#include <iterator>

#include "../model.h"
#include "common.h"

namespace thalweg::onnx {

namespace {

// The shortest decimal text that reads back as the same number, as NumPy prints it: the first of 1 to `digits` digits that does.
Value ShortestText(Builder& b, const Value& x, int digits) {
  const auto text = [&](int precision) { return b.op("AsString", {x}, {{"precision", precision}, {"shortest", true}}); };
  Value found = text(digits);
  for (int precision = digits - 1; precision > 0; --precision) {
    const Value shorter = text(precision);
    const Value read = b.op("StringToNumber", {shorter}, {{"out_type", Type{x.dtype()}}});
    found = b.op("SelectV2", {b.op("Equal", {read, x}), shorter, found});
  }
  return found;
}

Value ToText(Builder& b, const Value& x) {
  constexpr int kFloatDigits = 9, kDoubleDigits = 17;  // enough for every number
  if (x.dtype() == TW_DOUBLE) return ShortestText(b, x, kDoubleDigits);
  if (IsFloating(x.dtype())) return ShortestText(b, b.cast(x, TW_FLOAT), kFloatDigits);
  return b.op("AsString", {x});
}

// The largest finite number of an 8-bit floating-point type; 0: another type.
double LargestFloat8(uint32_t dtype) {
  switch (dtype) {
    case TW_FLOAT8_E4M3FN: return 448;
    case TW_FLOAT8_E4M3FNUZ: return 240;
    case TW_FLOAT8_E5M2:
    case TW_FLOAT8_E5M2FNUZ: return 57344;
    default: return 0;
  }
}

Value FromText(Builder& b, const Value& x, uint32_t to) {
  uint32_t read = TW_INT64;
  if (to == TW_DOUBLE || to == TW_UINT64) {
    read = to;
  } else if (IsFloating(to)) {
    read = TW_FLOAT;
  }
  return b.cast(b.op("StringToNumber", {x}, {{"out_type", Type{read}}}), to);
}

}  // namespace

Value Converted(Builder& b, const Value& x, uint32_t to, bool saturate) {
  if (x.dtype() == to) return x;
  if (const double largest = LargestFloat8(to); saturate && largest > 0 && x.dtype() != TW_STRING) {
    // Our Cast makes what is too large infinite or NaN.
    const Value wide = LargestFloat8(x.dtype()) > 0 || !IsFloating(x.dtype()) ? b.cast(x, TW_FLOAT) : x;
    return b.cast(b.op("Minimum", {b.op("Maximum", {wide, b.like(wide, -largest)}), b.like(wide, largest)}), to);
  }
  // ONNX keeps the low bits of what is too large for integers of 4 and 2 bits; our Cast of real numbers takes the nearest integer.
  const bool narrow = to == TW_INT4 || to == TW_UINT4 || to == TW_INT2 || to == TW_UINT2;
  if (narrow && x.dtype() != TW_STRING && !IsInteger(x.dtype())) return b.cast(b.cast(x, TW_INT32), to);
  if (to == TW_STRING) return ToText(b, x);
  if (x.dtype() == TW_STRING) return FromText(b, x, to);
  return b.cast(x, to);
}

namespace {

// Before opset 6, the type was named.
uint32_t NamedType(const Node& n, const std::string& name) {
  static constexpr std::array<const char*, 17> kNames = {"UNDEFINED", "FLOAT",  "UINT8",     "INT8",       "UINT16",  "INT16",
                                                         "INT32",     "INT64",  "STRING",    "BOOL",       "FLOAT16", "DOUBLE",
                                                         "UINT32",    "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16"};
  for (size_t i = 1; i < kNames.size(); ++i) {
    if (name == kNames[i]) return DtypeOf(static_cast<int32_t>(i));
  }
  n.fail("'to' is '" + name + "', which is no element type");
}

void Cast(Builder& b, Node& n) {
  const uint32_t to = n.opset < 6 ? NamedType(n, n.s("to")) : DtypeOf(static_cast<int32_t>(n.i("to")));
  n.out(Converted(b, n.in(0), to, n.i("saturate", 1) != 0));
}

void CastLike(Builder& b, Node& n) { n.out(Converted(b, n.in(0), n.in(1).dtype(), n.i("saturate", 1) != 0)); }

// A truth value is a byte of 0 or 1.
void BitCast(Builder& b, Node& n) {
  const uint32_t to = DtypeOf(static_cast<int32_t>(n.i("to")));
  const Value x = n.in(0).dtype() == TW_BOOL ? b.cast(n.in(0), TW_UINT8) : n.in(0);
  if (to == TW_BOOL) return n.out(b.op("NotEqual", {x, b.like(x, 0)}));
  n.out(x.dtype() == to ? x : b.op("Bitcast", {x}, {{"type", Type{to}}}));
}

constexpr Entry kCast[] = {
    {"BitCast", 26, kLatest, &BitCast},
    {"Cast", 1, kLatest, &Cast},
    {"CastLike", 15, kLatest, &CastLike},
};

}  // namespace

Family CastTranslators() { return {std::begin(kCast), std::end(kCast)}; }

}  // namespace thalweg::onnx
