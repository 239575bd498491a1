// Comparisons, truth values, bits, and the choice between two values.
#include <iterator>

#include "elementwise.h"

namespace thalweg::onnx {
namespace {

template <const char* const& kOp>
void Binary(Builder& b, Node& n) {
  n.out(b.op(kOp, {n.in(0), AlignedOperand(b, n)}));
}

constexpr const char* kAnd = "LogicalAnd";
constexpr const char* kOr = "LogicalOr";
constexpr const char* kNotEqual = "NotEqual";
constexpr const char* kEqual = "Equal";
constexpr const char* kGreater = "Greater";
constexpr const char* kGreaterEqual = "GreaterEqual";
constexpr const char* kLess = "Less";
constexpr const char* kLessEqual = "LessEqual";
constexpr const char* kBitwiseAnd = "BitwiseAnd";
constexpr const char* kBitwiseOr = "BitwiseOr";
constexpr const char* kBitwiseXor = "BitwiseXor";

// A shift by less than 0 bits or by all bits leaves no bit of the operand: the result is 0, or -1 for a negative number that goes right.
void BitShift(Builder& b, Node& n) {
  const std::string direction = n.s("direction");
  if (direction != "LEFT" && direction != "RIGHT") n.fail("'direction' is '" + direction + "'; it must be LEFT or RIGHT");
  const bool left = direction == "LEFT";
  const Value &x = n.in(0), &y = n.in(1);
  const Value shifted = b.op(left ? "LeftShift" : "RightShift", {x, y});
  const bool is_signed = x.dtype() == TW_INT8 || x.dtype() == TW_INT16 || x.dtype() == TW_INT32 || x.dtype() == TW_INT64;
  if (n.opset < 28 && !is_signed) return n.out(shifted);  // undefined then
  const Value zero = b.like(x, 0), bits = b.like(x, 8.0 * ElementBytes(x.dtype()));
  const Value within = b.op("LogicalAnd", {b.op("GreaterEqual", {y, zero}), b.op("Less", {y, bits})});
  const Value sign = b.op("SelectV2", {b.op("Less", {x, zero}), b.like(x, -1), zero});
  n.out(b.op("SelectV2", {within, shifted, left || !is_signed ? zero : sign}));
}

void Where(Builder& b, Node& n) { n.out(b.op("SelectV2", {n.in(0), n.in(1), n.in(2)})); }

constexpr Entry kLogic[] = {
    {"And", 1, kLatest, &Binary<kAnd>},
    {"BitShift", 11, kLatest, &BitShift},
    {"BitwiseAnd", 18, kLatest, &Binary<kBitwiseAnd>},
    {"BitwiseOr", 18, kLatest, &Binary<kBitwiseOr>},
    {"BitwiseXor", 18, kLatest, &Binary<kBitwiseXor>},
    {"Equal", 1, kLatest, &Binary<kEqual>},
    {"Greater", 1, kLatest, &Binary<kGreater>},
    {"GreaterOrEqual", 12, kLatest, &Binary<kGreaterEqual>},
    {"Less", 1, kLatest, &Binary<kLess>},
    {"LessOrEqual", 12, kLatest, &Binary<kLessEqual>},
    {"Or", 1, kLatest, &Binary<kOr>},
    {"Where", 9, kLatest, &Where},
    {"Xor", 1, kLatest, &Binary<kNotEqual>},
};

}  // namespace

Family LogicTranslators() { return {std::begin(kLogic), std::end(kLogic)}; }

}  // namespace thalweg::onnx
