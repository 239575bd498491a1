// Arithmetic, element by element. Before opset 7, the second input was aligned at `axis` if the attribute `broadcast` was set.
#include "elementwise.h"

#include <iterator>
#include <string>

#include "common.h"

namespace thalweg::onnx {

Value AlignedOperand(Builder& b, Node& n) {
  Value second = n.in(1);
  if (n.opset >= 7 || n.i("broadcast", 0) == 0 || !n.has_attr("axis")) return second;
  const int rank = RankOf(n, n.in(0), "A"), own = RankOf(n, second, "B");
  int64_t axis = n.i("axis");
  if (axis < 0) axis += rank;
  if (axis < 0 || axis + own > rank) {
    n.fail("'axis' is " + std::to_string(n.i("axis")) + ", but the operands have ranks " + std::to_string(rank) + " and " +
           std::to_string(own));
  }
  std::vector<int64_t> added;
  for (int64_t i = own; i < rank - axis; ++i) added.push_back(i);
  return b.unsqueeze(second, added);
}

namespace {

template <const char* const& kOp>
void Binary(Builder& b, Node& n) {
  n.out(b.op(kOp, {n.in(0), AlignedOperand(b, n)}));
}

constexpr const char* kAdd = "AddV2";
constexpr const char* kSub = "Sub";
constexpr const char* kMul = "Mul";

// Whole numbers are divided towards zero.
void Div(Builder& b, Node& n) { n.out(b.op(IsInteger(n.in(0).dtype()) ? "TruncateDiv" : "RealDiv", {n.in(0), AlignedOperand(b, n)})); }

// The result has the type of the base. A real power of a whole number is computed in double and loses its fraction.
void Pow(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const Value y = AlignedOperand(b, n);
  const bool is_signed = x.dtype() == TW_INT8 || x.dtype() == TW_INT16 || x.dtype() == TW_INT32 || x.dtype() == TW_INT64;
  uint32_t type = x.dtype();
  if (IsInteger(type) && IsFloating(y.dtype())) {
    type = TW_DOUBLE;
  } else if (IsInteger(type) && !is_signed) {
    type = TW_INT64;
  }
  n.out(b.cast(b.op("Pow", {b.cast(x, type), b.cast(y, type)}), x.dtype()));
}

// fmod 0: the sign is the divisor's, as in Python; 1: the dividend's, as in C.
void Mod(Builder& b, Node& n) {
  const Value &x = n.in(0), &y = n.in(1);
  const uint32_t type = x.dtype();
  const bool is_unsigned = type == TW_UINT8 || type == TW_UINT16 || type == TW_UINT32 || type == TW_UINT64;
  if (n.i("fmod", 0) == 0 || is_unsigned) return n.out(b.op("FloorMod", {x, y}));
  uint32_t computed = type;
  if (type == TW_INT8 || type == TW_INT16) computed = TW_INT32;
  n.out(b.cast(b.op("TruncateMod", {b.cast(x, computed), b.cast(y, computed)}), type));
}

Value Combined(Builder& b, Node& n, const char* op) {
  Value all = n.in(0);
  for (size_t i = 1; i < n.inputs(); ++i) all = b.op(op, {all, n.in(i)});
  return all;
}

void Max(Builder& b, Node& n) { n.out(Combined(b, n, n.in(0).dtype() == TW_BOOL ? "LogicalOr" : "Maximum")); }
void Min(Builder& b, Node& n) { n.out(Combined(b, n, n.in(0).dtype() == TW_BOOL ? "LogicalAnd" : "Minimum")); }
void Sum(Builder& b, Node& n) { n.out(Combined(b, n, "AddV2")); }

void Mean(Builder& b, Node& n) {
  const Value sum = Combined(b, n, "AddV2");
  n.out(n.inputs() == 1 ? sum : b.op("RealDiv", {sum, b.like(sum, static_cast<double>(n.inputs()))}));
}

// If `min` is larger than `max`, the result is `max`.
void Clip(Builder& b, Node& n) {
  const Value& x = n.in(0);
  Value low = n.maybe(1), high = n.maybe(2);
  if (n.opset < 11) {
    if (n.has_attr("min")) low = b.like(x, n.f("min"));
    if (n.has_attr("max")) high = b.like(x, n.f("max"));
  }
  Value y = low ? b.op("Maximum", {x, ScalarOf(b, low)}) : x;
  n.out(high ? b.op("Minimum", {y, ScalarOf(b, high)}) : y);
}

constexpr Entry kElementwise[] = {
    {"Add", 1, kLatest, &Binary<kAdd>}, {"Sub", 1, kLatest, &Binary<kSub>}, {"Mul", 1, kLatest, &Binary<kMul>}, {"Div", 1, kLatest, &Div},
    {"Pow", 1, kLatest, &Pow},          {"Mod", 10, kLatest, &Mod},         {"Max", 1, kLatest, &Max},          {"Min", 1, kLatest, &Min},
    {"Sum", 1, kLatest, &Sum},          {"Mean", 1, kLatest, &Mean},        {"Clip", 1, kLatest, &Clip},
};

}  // namespace

Family ElementwiseTranslators() { return {std::begin(kElementwise), std::end(kElementwise)}; }

}  // namespace thalweg::onnx
