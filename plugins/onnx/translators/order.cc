// Ops that compare elements with each other: TopK and Unique.
#include <iterator>

#include "common.h"

namespace thalweg::onnx {
namespace {

// ---- The largest along an axis ----

// x in the opposite order. Inverted bits reverse the order of whole numbers without overflow.
Value Reversed(Builder& b, const Value& x) { return b.op(IsInteger(x.dtype()) ? "Invert" : "Neg", {x}); }

void TopK(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int rank = RankOf(n, x, "X"), axis = AxisOf(n, n.i("axis", -1), rank);
  const Value count = n.opset < 10 ? b.scalar(TW_INT32, static_cast<double>(n.i("k"))) : ScalarOf(b, n.in(1), TW_INT32);
  const bool smallest = n.i("largest", 1) == 0;
  const Value rows = MoveAxis(b, smallest ? Reversed(b, x) : x, rank, axis, rank - 1);
  const std::vector<Value> top = b.ops("TopKV2", {rows, count}, {{"index_type", Type{TW_INT64}}, {"sorted", true}}, 2);
  n.out(0, MoveAxis(b, smallest ? Reversed(b, top[0]) : top[0], rank, rank - 1, axis));
  n.out(1, MoveAxis(b, top[1], rank, rank - 1, axis));
}

// ---- Unique ----

// The place of each of the `count` rows [count, ..] in lexicographic order. Rows differ from each other. Every row is compared with every
// other one, at the first element in which both differ.
Value RowOrder(Builder& b, const Value& rows, const Value& count) {
  const Value flat = b.reshape(rows, b.concat({b.unsqueeze(count, {0}), b.ints({-1})}, 0));
  const Value differs = b.op("NotEqual", {b.unsqueeze(flat, {1}), b.unsqueeze(flat, {0})});
  const Value at = b.op("ArgMax", {b.cast(differs, TW_UINT8), b.scalar(TW_INT32, 2)}, {{"output_type", Type{TW_INT64}}});
  const Value own = b.op("GatherV2", {flat, at, b.scalar(TW_INT32, 1)}, {{"batch_dims", 1}});
  const Value smaller = b.op("Less", {b.transpose(own, {1, 0}), own});  // [i, j]: row j comes before row i
  return b.op("Sum", {b.cast(smaller, TW_INT64), b.scalar(TW_INT32, 1)});
}

// The place of each of `count` different numbers in ascending order.
Value NumberOrder(Builder& b, const Value& numbers, const Value& count) {
  const std::vector<Value> top = b.ops("TopKV2", {numbers, b.cast(count, TW_INT32)}, {{"index_type", Type{TW_INT64}}, {"sorted", true}}, 2);
  return b.op("InvertPermutation", {b.op("ReverseV2", {top[1], b.ints({0}, TW_INT32)})});
}

void Unique(Builder& b, Node& n) {
  const bool whole = !n.has_attr("axis");
  const Value x = whole ? b.reshape(n.in(0), Dims{-1}) : n.in(0);
  const int axis = whole ? 0 : AxisOf(n, n.i("axis"), RankOf(n, x, "X"));
  const std::vector<Value> found = b.ops("UniqueV2", {x, b.ints({axis})}, {{"out_idx", Type{TW_INT64}}}, 2);
  Value items = found[0], inverse = found[1];
  const Value count = b.size(items, axis);
  Value first = b.op("UnsortedSegmentMin", {Count(b, b.size(x, axis)), inverse, count});
  Value times = b.op("UnsortedSegmentSum", {b.op("OnesLike", {inverse}), inverse, count});
  if (n.i("sorted", 1)) {
    if (x.dtype() == TW_STRING || x.dtype() == TW_BOOL)
      n.unsupported(std::string("sorting of ") + DtypeName(x.dtype()) + "; set 'sorted' to 0");
    const Value order = whole ? NumberOrder(b, items, count) : RowOrder(b, MoveAxis(b, items, x.rank(), axis, 0), count);
    const Value sorted = b.op("InvertPermutation", {order}), start = b.scalar(TW_INT32, 0);
    items = b.op("GatherV2", {items, sorted, b.scalar(TW_INT32, axis)});
    first = b.op("GatherV2", {first, sorted, start});
    times = b.op("GatherV2", {times, sorted, start});
    inverse = b.op("GatherV2", {order, inverse, start});
  }
  const Value outputs[] = {items, first, inverse, times};
  for (size_t i = 0; i < 4; ++i) n.out(i, outputs[i]);
}

constexpr Entry kOrder[] = {
    {"TopK", 1, kLatest, &TopK},
    {"Unique", 11, kLatest, &Unique},
};

}  // namespace

Family OrderTranslators() { return {std::begin(kOrder), std::end(kOrder)}; }

}  // namespace thalweg::onnx
