// Ops that change or read the shape of a value and keep its elements.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "common.h"

namespace thalweg::onnx {
namespace {

// Sizes of 0 in `dims`, which is computed in the step, stand for the sizes of `x`.
Value WithSizesOf(Builder& b, const Value& x, const Value& dims) {
  const Value count = b.op("Size", {dims}, {{"out_type", Type{TW_INT64}}});
  const Value zeros = b.op("Fill", {b.unsqueeze(count, {0}), Known(b, 0)});
  const Value own = b.op("Slice", {b.concat({b.shape(x), zeros}, 0), b.ints({0}), b.unsqueeze(count, {0})});
  return b.op("SelectV2", {b.op("Equal", {dims, Known(b, 0)}), own, dims});
}

// A size of 0 copies the input's size of that axis unless `allowzero` is set; -1 follows from the rest.
void Reshape(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const Value dims = n.opset < 5 ? b.ints(n.ints("shape")) : b.cast(n.in(1), TW_INT64);
  if (n.i("allowzero", 0)) return n.out(b.reshape(x, dims));
  const std::vector<Element>* known = dims.known();
  if (!known) return n.out(b.reshape(x, WithSizesOf(b, x, dims)));
  Dims to;
  int free = 0;
  for (size_t i = 0; i < known->size(); ++i) {
    const Element& e = (*known)[i];
    int64_t size = e.known ? e.i : -1;
    if (e.known && e.i == 0) size = x.rank() > static_cast<int>(i) ? x.dim(static_cast<int>(i)) : -1;
    free += size < 0;
    to.push_back(size);
  }
  if (free <= 1) return n.out(b.reshape(x, to));  // one symbolic size follows from the others
  std::vector<Value> parts;
  for (size_t i = 0; i < known->size(); ++i) {
    const Element& e = (*known)[i];
    const int64_t at = static_cast<int64_t>(i);
    if (e.known && e.i == 0) {
      parts.push_back(b.unsqueeze(b.size(x, static_cast<int>(i)), {0}));
    } else {
      parts.push_back(e.known ? b.ints({e.i}) : b.slice0(dims, at, at + 1));
    }
  }
  n.out(b.reshape(x, b.concat(parts, 0)));
}

// The product of the sizes of the axes [begin, end).
Value Product(Builder& b, const Value& x, int begin, int end) {
  int64_t known = 1;
  bool all = true;
  for (int axis = begin; axis < end; ++axis) {
    all &= x.dim(axis) >= 0;
    known *= x.dim(axis);
  }
  if (all) return Known(b, known);
  if (end == begin + 1) return b.size(x, begin);
  return b.op("Prod", {b.slice0(b.shape(x), begin, end), b.scalar(TW_INT32, 0)});
}

void Flatten(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int rank = RankOf(n, x, "input");
  const int64_t given = n.i("axis", 1);
  if (given < -rank || given > rank) n.fail("axis " + std::to_string(given) + " is outside of a value of rank " + std::to_string(rank));
  const int axis = static_cast<int>(given < 0 ? given + rank : given);
  n.out(ReshapeTo(b, x, {Product(b, x, 0, axis), Product(b, x, axis, rank)}));
}

void Transpose(Builder& b, Node& n) {
  const Value& x = n.in(0);
  std::vector<int64_t> perm = n.ints("perm");
  if (perm.empty()) {
    perm.resize(static_cast<size_t>(RankOf(n, x, "data")));
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  n.out(b.transpose(x, perm));
}

// ---- Axes of size 1 ----

// One element for each of `rank` axes: 1 for those in `axes` (an int64 vector that the step computes), 0 for the others.
Value Marks(Builder& b, const Value& axes, int rank) {
  const Value places = b.unsqueeze(b.op("FloorMod", {axes, Known(b, rank)}), {1});
  const Value ones = b.op("OnesLike", {axes});
  return b.op("ScatterNd", {places, ones, b.ints({rank})});
}

// The places of zeros in `marks`, of which there are `count`.
Value Unmarked(Builder& b, const Value& marks, int64_t count) {
  const Value places = b.op("Where", {b.op("Equal", {marks, Known(b, 0)})});
  return b.op("Slice", {places, b.ints({0, 0}), b.ints({count, 1})});
}

void Unsqueeze(Builder& b, Node& n) {
  const Value& x = n.in(0);
  if (const auto axes = IntsOf(n, "axes", 13, 1)) return n.out(b.unsqueeze(x, *axes));
  const Value axes = b.cast(n.in(1), TW_INT64);
  if (axes.rank() != 1 || axes.dim(0) < 0) n.unsupported("the number of 'axes' must be known");
  const int rank = RankOf(n, x, "data"), grown = rank + static_cast<int>(axes.dim(0));
  const Value ones = b.op("Fill", {b.ints({grown}), Known(b, 1)});
  const Value sizes = b.op("TensorScatterUpdate", {ones, Unmarked(b, Marks(b, axes, grown), rank), b.shape(x)});
  n.out(b.op("Reshape", {x, sizes}));
}

void Squeeze(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const auto axes = IntsOf(n, "axes", 13, 1);
  if (axes) return n.out(axes->empty() ? b.op("Squeeze", {x}) : b.squeeze(x, *axes));
  if (n.opset < 13 || !n.has(1)) return n.out(b.op("Squeeze", {x}));
  const Value given = b.cast(n.in(1), TW_INT64);
  if (given.rank() != 1 || given.dim(0) < 0) n.unsupported("the number of 'axes' must be known");
  const int rank = RankOf(n, x, "data");
  const Value kept = Unmarked(b, Marks(b, given, rank), rank - given.dim(0));
  n.out(b.op("Reshape", {x, b.op("GatherNd", {b.shape(x), kept})}));
}

// ---- Sizes ----

// Sizes of the axes [start, end), which are clamped to the rank.
void Shape(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const Value shape = b.shape(x);
  if (!n.has_attr("start") && !n.has_attr("end")) return n.out(shape);
  const int64_t rank = RankOf(n, x, "data");
  const auto clamped = [rank](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  const int64_t start = clamped(n.i("start", 0));
  n.out(b.slice0(shape, start, std::max(start, clamped(n.i("end", rank)))));
}

void Size(Builder& b, Node& n) { n.out(b.op("Size", {n.in(0)}, {{"out_type", Type{TW_INT64}}})); }

// Both the value and `shape` broadcast.
void Expand(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const Value dims = b.cast(n.in(1), TW_INT64);
  const Tensor* known = dims.constant();
  if (!known || !x.static_shape()) return n.out(b.broadcast(x, b.op("BroadcastArgs", {b.shape(x), dims})));
  Dims to = known->integers();
  while (to.size() < x.dims().size()) to.insert(to.begin(), 1);
  const size_t lead = to.size() - x.dims().size();
  for (size_t i = 0; i < x.dims().size(); ++i) {
    if (to[lead + i] == 1) to[lead + i] = x.dims()[i];
  }
  n.out(b.broadcast(x, b.ints(to)));
}

void Tile(Builder& b, Node& n) {
  const Value& x = n.in(0);
  if (n.opset >= 6) return n.out(b.op("Tile", {x, b.cast(n.in(1), TW_INT64)}));
  const int rank = RankOf(n, x, "input");  // one axis
  const Value axis = ScalarOf(b, n.in(2), TW_INT64), times = ScalarOf(b, n.in(1), TW_INT64);
  const Value ones = b.op("Fill", {b.ints({rank}), Known(b, 1)});
  n.out(b.op("Tile", {x, b.op("TensorScatterUpdate", {ones, b.reshape(axis, Dims{1, 1}), b.unsqueeze(times, {0})})}));
}

constexpr Entry kShape[] = {
    {"Expand", 8, kLatest, &Expand}, {"Flatten", 1, kLatest, &Flatten},     {"Reshape", 1, kLatest, &Reshape},
    {"Shape", 1, kLatest, &Shape},   {"Size", 1, kLatest, &Size},           {"Squeeze", 1, kLatest, &Squeeze},
    {"Tile", 1, kLatest, &Tile},     {"Transpose", 1, kLatest, &Transpose}, {"Unsqueeze", 1, kLatest, &Unsqueeze},
};

}  // namespace

Family ShapeTranslators() { return {std::begin(kShape), std::end(kShape)}; }

}  // namespace thalweg::onnx
