// Functions of one value, element by element, that have one op of ours.
#include <iterator>

#include "table.h"

namespace thalweg::onnx {
namespace {

void SameName(Builder& b, Node& n) { n.out(b.op(n.type(), {n.in(0)})); }

void Identity(Builder&, Node& n) { n.out(n.in(0)); }

bool IsUnsigned(uint32_t dtype) { return dtype == TW_UINT8 || dtype == TW_UINT16 || dtype == TW_UINT32 || dtype == TW_UINT64; }

void Abs(Builder& b, Node& n) { n.out(IsUnsigned(n.in(0).dtype()) ? n.in(0) : b.op("Abs", {n.in(0)})); }

void Sign(Builder& b, Node& n) {
  const Value& x = n.in(0);
  n.out(IsUnsigned(x.dtype()) ? b.op("Minimum", {x, b.like(x, 1)}) : b.op("Sign", {x}));
}

void Not(Builder& b, Node& n) { n.out(b.op("LogicalNot", {n.in(0)})); }

void BitwiseNot(Builder& b, Node& n) { n.out(b.op("Invert", {n.in(0)})); }

void IsNaN(Builder& b, Node& n) { n.out(b.op("IsNan", {n.in(0)})); }

void IsInf(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const bool positive = n.i("detect_positive", 1) != 0, negative = n.i("detect_negative", 1) != 0;
  const Value infinite = b.op("IsInf", {x});
  if (positive && negative) return n.out(infinite);
  const Value sign = b.op(positive ? "Greater" : "Less", {x, b.like(x, 0)});
  n.out(b.op("LogicalAnd", {infinite, positive || negative ? sign : b.scalar(TW_BOOL, 0)}));
}

constexpr Entry kUnary[] = {
    {"Abs", 1, kLatest, &Abs},
    {"Acos", 7, kLatest, &SameName},
    {"Acosh", 9, kLatest, &SameName},
    {"Asin", 7, kLatest, &SameName},
    {"Asinh", 9, kLatest, &SameName},
    {"Atan", 7, kLatest, &SameName},
    {"Atanh", 9, kLatest, &SameName},
    {"BitwiseNot", 18, kLatest, &BitwiseNot},
    {"Ceil", 1, kLatest, &SameName},
    {"Cos", 7, kLatest, &SameName},
    {"Cosh", 9, kLatest, &SameName},
    {"Erf", 9, kLatest, &SameName},
    {"Exp", 1, kLatest, &SameName},
    {"Floor", 1, kLatest, &SameName},
    {"Identity", 1, kLatest, &Identity},
    {"IsInf", 10, kLatest, &IsInf},
    {"IsNaN", 9, kLatest, &IsNaN},
    {"Log", 1, kLatest, &SameName},
    {"Neg", 1, kLatest, &SameName},
    {"Not", 1, kLatest, &Not},
    {"Reciprocal", 1, kLatest, &SameName},
    {"Round", 11, kLatest, &SameName},
    {"Sign", 9, kLatest, &Sign},
    {"Sin", 7, kLatest, &SameName},
    {"Sinh", 9, kLatest, &SameName},
    {"Sqrt", 1, kLatest, &SameName},
    {"Tan", 7, kLatest, &SameName},
    {"Tanh", 1, kLatest, &SameName},
};

}  // namespace

Family UnaryTranslators() { return {std::begin(kUnary), std::end(kUnary)}; }

}  // namespace thalweg::onnx
