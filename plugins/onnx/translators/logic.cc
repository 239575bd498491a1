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

void BitShift(Builder& b, Node& n) {
  const std::string direction = n.s("direction");
  if (direction != "LEFT" && direction != "RIGHT") n.fail("'direction' is '" + direction + "'; it must be LEFT or RIGHT");
  n.out(b.op(direction == "LEFT" ? "LeftShift" : "RightShift", {n.in(0), n.in(1)}));
}

void Where(Builder& b, Node& n) { n.out(b.op("SelectV2", {n.in(0), n.in(1), n.in(2)})); }

constexpr Entry kEntries[] = {
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

Family LogicTranslators() { return {std::begin(kEntries), std::end(kEntries)}; }

}  // namespace thalweg::onnx
