// Values made of few numbers: Constant, ConstantOfShape, Range, EyeLike, OneHot, CumSum, and moves of whole blocks of elements.
#include <algorithm>
#include <iterator>

#include "../model.h"
#include "common.h"

namespace thalweg::onnx {
namespace {

// One of several attributes has the elements.
void Constant(Builder& b, Node& n) {
  if (n.has_attr("value")) return n.out(b.constant(n.tensor("value")));
  if (n.has_attr("sparse_value")) return n.out(b.constant(n.tensor("sparse_value")));
  if (n.has_attr("value_int")) return n.out(b.reshape(b.ints({n.i("value_int")}), Dims{}));
  if (n.has_attr("value_ints")) return n.out(b.ints(n.ints("value_ints")));
  if (n.has_attr("value_float")) return n.out(b.scalar(TW_FLOAT, n.f("value_float")));
  if (n.has_attr("value_floats")) return n.out(b.constant(Tensor::Vector(TW_FLOAT, n.floats("value_floats"))));
  if (n.has_attr("value_string")) return n.out(b.constant(Tensor::String({}, {n.s("value_string")})));
  const std::vector<std::string> texts = n.strings("value_strings");
  if (!n.has_attr("value_strings")) n.fail("no attribute has the elements");
  n.out(b.constant(Tensor::String({static_cast<int64_t>(texts.size())}, texts)));
}

void ConstantOfShape(Builder& b, Node& n) {
  const Value value = n.has_attr("value") ? b.constant(n.tensor("value")) : b.scalar(TW_FLOAT, 0);
  n.out(b.op("Fill", {b.cast(n.in(0), TW_INT64), ScalarOf(b, value)}));
}

void Range(Builder& b, Node& n) { n.out(b.op("Range", {ScalarOf(b, n.in(0)), ScalarOf(b, n.in(1)), ScalarOf(b, n.in(2))})); }

void EyeLike(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const uint32_t type = n.has_attr("dtype") ? DtypeOf(static_cast<int32_t>(n.i("dtype"))) : x.dtype();
  if (RankOf(n, x, "input") != 2) n.fail("the input must have rank 2 but has rank " + std::to_string(x.rank()));
  const Value rows = b.unsqueeze(Count(b, b.size(x, 0)), {1}), columns = Count(b, b.size(x, 1));
  n.out(b.cast(b.op("Equal", {b.op("Sub", {columns, rows}), Known(b, n.i("k", 0))}), type));
}

// Indices may be real numbers; those in [-depth, 0) count from the end, those outside give a row of the off value.
void OneHot(Builder& b, Node& n) {
  const Value depth = ScalarOf(b, n.in(1), TW_INT64), values = n.in(2);
  const Value indices = FromFront(b, b.cast(n.in(0), TW_INT64), depth);
  const auto value = [&](int64_t i) { return b.reshape(b.slice0(values, i, i + 1), Dims{}); };
  const int64_t axis = n.i("axis", -1);
  const int64_t place = axis < -1 ? axis + RankOf(n, indices, "indices") + 1 : axis;
  n.out(b.op("OneHot", {indices, b.cast(depth, TW_INT32), value(1), value(0)}, {{"axis", place}}));
}

template <const char* const& kOp>
void Cumulated(Builder& b, Node& n) {
  n.out(b.op(kOp, {n.in(0), ScalarOf(b, n.in(1))}, {{"exclusive", n.i("exclusive", 0) != 0}, {"reverse", n.i("reverse", 0) != 0}}));
}

constexpr const char* kCumsum = "Cumsum";
constexpr const char* kCumprod = "Cumprod";

void ReverseSequence(Builder& b, Node& n) {
  n.out(b.op("ReverseSequence", {n.in(0), n.in(1)}, {{"seq_dim", n.i("time_axis", 0)}, {"batch_dim", n.i("batch_axis", 1)}}));
}

// ---- Blocks of elements between depth and space; the value is [batch, channels, height, width] ----

int64_t BlockOf(const Node& n, const Value& x) {
  const int64_t block = n.i("blocksize");
  if (block < 1) n.fail("'blocksize' is " + std::to_string(block) + "; it must be positive");
  if (RankOf(n, x, "input") != 4) n.fail("the input must have rank 4 but has rank " + std::to_string(x.rank()));
  return block;
}

Value Times(Builder& b, const Value& size, int64_t by) { return b.op("Mul", {size, Known(b, by)}); }
Value By(Builder& b, const Value& size, int64_t by) { return b.op("FloorDiv", {size, Known(b, by)}); }

// DCR: a channel's place in its block comes before its number; CRD: behind.
void DepthToSpace(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int64_t block = BlockOf(n, x), area = block * block;
  const std::string mode = n.s("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.fail("'mode' is '" + mode + "'; it must be DCR or CRD");
  const std::vector<Value> s = SizesOf(b, x, 0, 4);
  const Value side = Known(b, block), channels = By(b, s[1], area);
  const bool first = mode == "DCR";
  const Value parts =
      first ? ReshapeTo(b, x, {s[0], side, side, channels, s[2], s[3]}) : ReshapeTo(b, x, {s[0], channels, side, side, s[2], s[3]});
  const Value moved = b.transpose(parts, first ? std::vector<int64_t>{0, 3, 4, 1, 5, 2} : std::vector<int64_t>{0, 1, 4, 2, 5, 3});
  n.out(ReshapeTo(b, moved, {s[0], channels, Times(b, s[2], block), Times(b, s[3], block)}));
}

void SpaceToDepth(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const std::string mode = n.s("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.fail("'mode' is '" + mode + "'; it must be DCR or CRD");
  const int64_t block = BlockOf(n, x);
  const std::vector<Value> s = SizesOf(b, x, 0, 4);
  const Value side = Known(b, block), height = By(b, s[2], block), width = By(b, s[3], block);
  const Value parts = ReshapeTo(b, x, {s[0], s[1], height, side, width, side});
  const std::vector<int64_t> perm = mode == "DCR" ? std::vector<int64_t>{0, 3, 5, 1, 2, 4} : std::vector<int64_t>{0, 1, 3, 5, 2, 4};
  n.out(ReshapeTo(b, b.transpose(parts, perm), {s[0], Times(b, s[1], block * block), height, width}));
}

constexpr Entry kFill[] = {
    {"Constant", 1, kLatest, &Constant},
    {"ConstantOfShape", 9, kLatest, &ConstantOfShape},
    {"CumProd", 26, kLatest, &Cumulated<kCumprod>},
    {"CumSum", 11, kLatest, &Cumulated<kCumsum>},
    {"DepthToSpace", 1, kLatest, &DepthToSpace},
    {"EyeLike", 9, kLatest, &EyeLike},
    {"OneHot", 9, kLatest, &OneHot},
    {"Range", 11, kLatest, &Range},
    {"ReverseSequence", 10, kLatest, &ReverseSequence},
    {"SpaceToDepth", 1, kLatest, &SpaceToDepth},
};

}  // namespace

Family FillTranslators() { return {std::begin(kFill), std::end(kFill)}; }

}  // namespace thalweg::onnx
