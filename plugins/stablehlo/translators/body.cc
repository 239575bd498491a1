#include "body.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "../import.h"

namespace thalweg::stablehlo {
namespace {

constexpr std::string_view kElementwise[] = {
    "stablehlo.abs",
    "stablehlo.add",
    "stablehlo.and",
    "stablehlo.atan2",
    "stablehlo.bitcast_convert",
    "stablehlo.broadcast_in_dim",
    "stablehlo.cbrt",
    "stablehlo.ceil",
    "stablehlo.clamp",
    "stablehlo.compare",
    "stablehlo.complex",
    "stablehlo.constant",
    "stablehlo.convert",
    "stablehlo.cosine",
    "stablehlo.count_leading_zeros",
    "stablehlo.divide",
    "stablehlo.exponential",
    "stablehlo.exponential_minus_one",
    "stablehlo.floor",
    "stablehlo.imag",
    "stablehlo.is_finite",
    "stablehlo.log",
    "stablehlo.log_plus_one",
    "stablehlo.logistic",
    "stablehlo.maximum",
    "stablehlo.minimum",
    "stablehlo.multiply",
    "stablehlo.negate",
    "stablehlo.not",
    "stablehlo.or",
    "stablehlo.popcnt",
    "stablehlo.power",
    "stablehlo.real",
    "stablehlo.reduce_precision",
    "stablehlo.remainder",
    "stablehlo.reshape",
    "stablehlo.return",
    "stablehlo.round_nearest_afz",
    "stablehlo.round_nearest_even",
    "stablehlo.rsqrt",
    "stablehlo.select",
    "stablehlo.shift_left",
    "stablehlo.shift_right_arithmetic",
    "stablehlo.shift_right_logical",
    "stablehlo.sign",
    "stablehlo.sine",
    "stablehlo.sqrt",
    "stablehlo.subtract",
    "stablehlo.tan",
    "stablehlo.tanh",
    "stablehlo.xor",
};

}  // namespace

Combiner CombinerOf(const Op& op, const Block& block) {
  if (block.arguments.size() != 2 || block.operations.empty()) return Combiner::kOther;
  const Id a = block.arguments[0], b = block.arguments[1];
  const Operation& end = block.operations.back();
  if (end.operands.size() != 1) return Combiner::kOther;
  if (end.operands[0] == b) return Combiner::kSecond;
  if (block.operations.size() != 2) return Combiner::kOther;
  const Operation& only = block.operations[0];
  if (only.results.size() != 1 || only.results[0] != end.operands[0] || only.operands.size() != 2) return Combiner::kOther;
  if (!(only.operands[0] == a && only.operands[1] == b) && !(only.operands[0] == b && only.operands[1] == a)) return Combiner::kOther;
  const bool truth = op.function.values[a]->element == Element::kBool;
  if (only.name == "stablehlo.add") return truth ? Combiner::kOr : Combiner::kAdd;
  if (only.name == "stablehlo.multiply") return truth ? Combiner::kAnd : Combiner::kMultiply;
  if (only.name == "stablehlo.maximum") return truth ? Combiner::kOr : Combiner::kMaximum;
  if (only.name == "stablehlo.minimum") return truth ? Combiner::kAnd : Combiner::kMinimum;
  if (only.name == "stablehlo.and" && truth) return Combiner::kAnd;
  if (only.name == "stablehlo.or" && truth) return Combiner::kOr;
  return Combiner::kOther;
}

bool Elementwise(Translation& t, const Block& block, std::string_view* other) {
  std::vector<const Block*> open = {&block};
  std::set<const Block*> seen = {&block};
  while (!open.empty()) {
    const Block& one = *open.back();
    open.pop_back();
    for (const Operation& o : one.operations) {
      const Attribute* callee = o.name == "func.call" ? o.attribute("callee") : nullptr;
      const Function* called = callee ? t.import().module.find(callee->text) : nullptr;
      if (called && called->has_body) {
        if (seen.insert(&called->body).second) open.push_back(&called->body);
        continue;
      }
      if (std::find(std::begin(kElementwise), std::end(kElementwise), o.name) != std::end(kElementwise)) continue;
      if (other) *other = o.name;
      return false;
    }
  }
  return true;
}

std::vector<Value> Vectorised(Translation& t, const Op& op, const Block& block, const std::vector<Value>& args) {
  const Loose loose(op.function, block);
  return t.inlined_as(loose.function(), op, block, args);
}

Fold::Fold(Translation& t, const Op& op, const Block& block)
    : t_(t), op_(op), block_(block), combiner_(CombinerOf(op, block)), loose_(std::make_shared<const Loose>(op.function, block)) {
  std::string_view other;
  if (combiner_ == Combiner::kOther && !Elementwise(t, block, &other)) {
    op.unsupported("its body has " + std::string(other) + ", but only element-wise ops are supported there");
  }
}

std::vector<Value> Fold::operator()(const std::vector<Value>& a, const std::vector<Value>& b) const {
  switch (combiner_) {
    case Combiner::kAdd: return {t_.op("AddV2", {a[0], b[0]})};
    case Combiner::kMultiply: return {t_.op("Mul", {a[0], b[0]})};
    case Combiner::kAnd: return {t_.op("LogicalAnd", {a[0], b[0]})};
    case Combiner::kOr: return {t_.op("LogicalOr", {a[0], b[0]})};
    case Combiner::kSecond: return {b[0]};
    case Combiner::kMaximum:
      if (!IsComplex(a[0])) return {t_.op("Maximum", {a[0], b[0]})};
      break;
    case Combiner::kMinimum:
      if (!IsComplex(a[0])) return {t_.op("Minimum", {a[0], b[0]})};
      break;
    case Combiner::kOther: break;
  }
  std::vector<Value> args = a;
  args.insert(args.end(), b.begin(), b.end());
  std::vector<Value> out = t_.inlined_as(loose_->function(), op_, block_, args);
  for (size_t i = 0; i < out.size(); ++i) {
    // A result that depends on no argument is a scalar.
    if (out[i].rank() == 0 && a[i].rank() != 0) out[i] = t_.broadcast(out[i], t_.shape(a[i]));
  }
  return out;
}

bool Neutral(Combiner combiner, const Value& v) {
  const Tensor* known = v.splat() ? v.splat() : v.constant();
  if (!known || known->count() != 1 || IsComplex(v)) return false;
  const double x = known->real(0);
  const uint32_t type = v.dtype();
  const bool real = IsReal(v);
  switch (combiner) {
    case Combiner::kAdd:
    case Combiner::kOr: return x == 0;
    case Combiner::kMultiply:
    case Combiner::kAnd: return x == 1;
    case Combiner::kMaximum:
      if (real) return x == -std::numeric_limits<double>::infinity();
      if (IsUnsigned(v)) return x == 0;
      return known->integer(0) == std::numeric_limits<int64_t>::min() >> (64 - BitsOf(type));
    case Combiner::kMinimum:
      if (real) return x == std::numeric_limits<double>::infinity();
      if (IsUnsigned(v)) return static_cast<uint64_t>(known->integer(0)) == ~uint64_t{0} >> (64 - BitsOf(type));
      return known->integer(0) == std::numeric_limits<int64_t>::max() >> (64 - BitsOf(type));
    default: return false;
  }
}

}  // namespace thalweg::stablehlo
