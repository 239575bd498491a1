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

Value Converted(Builder& b, const Value& x, uint32_t to) {
  if (x.dtype() == to) return x;
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
  n.out(Converted(b, n.in(0), n.opset < 6 ? NamedType(n, n.s("to")) : DtypeOf(static_cast<int32_t>(n.i("to")))));
}

void CastLike(Builder& b, Node& n) { n.out(Converted(b, n.in(0), n.in(1).dtype())); }

void BitCast(Builder& b, Node& n) { n.out(b.op("Bitcast", {n.in(0)}, {{"type", Type{DtypeOf(static_cast<int32_t>(n.i("to")))}}})); }

constexpr Entry kEntries[] = {
    {"BitCast", 26, kLatest, &BitCast},
    {"Cast", 1, kLatest, &Cast},
    {"CastLike", 15, kLatest, &CastLike},
};

}  // namespace

Family CastTranslators() { return {std::begin(kEntries), std::end(kEntries)}; }

}  // namespace thalweg::onnx
