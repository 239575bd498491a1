// Ops of ai.onnx.ml that prepare features: ArrayFeatureExtractor, Binarizer, LabelEncoder, Scaler.
#include <iterator>

#include "common.h"

namespace thalweg::onnx {
namespace {

constexpr const char* kDomain = "ai.onnx.ml";

// Columns of the last axis. A vector counts as one row.
void ArrayFeatureExtractor(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const Value rows = RankOf(n, x, "X") == 1 ? b.unsqueeze(x, {0}) : x;
  n.out(b.op("GatherV2", {rows, b.reshape(n.in(1), Dims{-1}), b.scalar(TW_INT32, rows.rank() - 1)}));
}

void Binarizer(Builder& b, Node& n) {
  const Value& x = n.in(0);
  n.out(b.cast(b.op("Greater", {x, b.like(x, n.f("threshold", 0))}), x.dtype()));
}

void Scaler(Builder& b, Node& n) {
  const Value x = b.cast(n.in(0), TW_FLOAT);
  const auto attribute = [&](const char* name) { return b.constant(Tensor::Vector(TW_FLOAT, n.floats(name))); };
  const Value moved = n.has_attr("offset") ? b.op("Sub", {x, attribute("offset")}) : x;
  n.out(n.has_attr("scale") ? b.op("Mul", {moved, attribute("scale")}) : moved);
}

// The list of a LabelEncoder that has this beginning of a name, in whichever element type; absent: none.
Value ListOf(Builder& b, const Node& n, const std::string& what) {
  if (n.has_attr(what + "_tensor")) return b.reshape(b.constant(n.tensor(what + "_tensor")), Dims{-1});
  if (n.has_attr(what + "_int64s")) return b.ints(n.ints(what + "_int64s"));
  if (n.has_attr(what + "_floats")) return b.constant(Tensor::Vector(TW_FLOAT, n.floats(what + "_floats")));
  if (!n.has_attr(what + "_strings")) return Value();
  const std::vector<std::string> texts = n.strings(what + "_strings");
  return b.constant(Tensor::String({static_cast<int64_t>(texts.size())}, texts));
}

Value DefaultOf(Builder& b, const Node& n, uint32_t type) {
  if (n.has_attr("default_tensor")) return ScalarOf(b, b.constant(n.tensor("default_tensor")));
  if (type == TW_STRING) return b.constant(Tensor::String({}, {n.s("default_string", "_Unused")}));
  if (type == TW_INT64) return Known(b, n.i("default_int64", -1));
  return b.scalar(type, n.f("default_float", -0.0));
}

// The value of the first key that equals the element. NaN finds the key that is NaN.
void LabelEncoder(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const Value keys = ListOf(b, n, "keys"), values = ListOf(b, n, "values");
  if (!keys || !values) n.fail("the attributes have no keys or no values");
  if (keys.dtype() != x.dtype())
    n.fail(std::string("the keys are ") + DtypeName(keys.dtype()) + ", but the input is " + DtypeName(x.dtype()));
  if (keys.dim(0) != values.dim(0) || keys.dim(0) == 0) {
    n.fail("there are " + std::to_string(keys.dim(0)) + " keys and " + std::to_string(values.dim(0)) + " values");
  }
  const Value column = b.unsqueeze(x, {-1}), last = b.scalar(TW_INT32, -1);
  Value same = b.op("Equal", {column, keys});
  if (IsFloating(x.dtype())) same = b.op("LogicalOr", {same, b.op("LogicalAnd", {b.op("IsNan", {column}), b.op("IsNan", {keys})})});
  const Value at = b.op("ArgMax", {b.cast(same, TW_UINT8), last}, {{"output_type", Type{TW_INT64}}});
  const Value found = b.op("GatherV2", {values, at, b.scalar(TW_INT32, 0)});
  n.out(b.op("SelectV2", {b.op("Any", {same, last}), found, DefaultOf(b, n, values.dtype())}));
}

constexpr Entry kLearning[] = {
    {"ArrayFeatureExtractor", 1, kLatest, &ArrayFeatureExtractor, kDomain},
    {"Binarizer", 1, kLatest, &Binarizer, kDomain},
    {"LabelEncoder", 2, kLatest, &LabelEncoder, kDomain},
    {"Scaler", 1, kLatest, &Scaler, kDomain},
};

}  // namespace

Family LearningTranslators() { return {std::begin(kLearning), std::end(kLearning)}; }

}  // namespace thalweg::onnx
