// Reading and writing elements at indices. Indices that are negative count from the end.
#include <iterator>

#include "common.h"

namespace thalweg::onnx {
namespace {

void Gather(Builder& b, Node& n) {
  const Value &x = n.in(0), &indices = n.in(1);
  int64_t axis = n.i("axis", 0);
  if (axis < 0 && x.rank() >= 0) axis = AxisOf(n, axis, x.rank());
  const Value from = FromFront(b, indices, b.size(x, static_cast<int>(axis)));
  n.out(b.op("GatherV2", {x, from, b.scalar(TW_INT32, static_cast<double>(axis))}));
}

// ---- Elements: indices of the rank of the data ----

// out[i][j][k] = x[i][indices[i][j][k]][k] for axis 1. Axes other than `axis` may be longer in x.
void GatherElements(Builder& b, Node& n) {
  Value x = n.in(0);
  const Value& indices = n.in(1);
  const int rank = RankOf(n, x, "data"), axis = AxisOf(n, n.i("axis", 0), rank);
  const Value from = FromFront(b, indices, b.size(x, axis));
  bool same = true;
  for (int i = 0; i < rank; ++i) same &= i == axis || (x.dim(i) >= 0 && x.dim(i) == indices.dim(i));
  if (!same) {
    std::vector<Value> sizes = SizesOf(b, indices, 0, rank);
    sizes[static_cast<size_t>(axis)] = Known(b, -1);
    x = b.op("Slice", {x, b.ints(std::vector<int64_t>(static_cast<size_t>(rank), 0)), Join(b, sizes)});
  }
  const int last = rank - 1;
  const Value picked = b.op("GatherV2", {MoveAxis(b, x, rank, axis, last), MoveAxis(b, from, rank, axis, last), b.scalar(TW_INT32, last)},
                            {{"batch_dims", last}});
  n.out(MoveAxis(b, picked, rank, last, axis));
}

// Full indices for ScatterNd: `indices` along `axis`, the place itself along every other axis. [.., rank].
Value Places(Builder& b, const Value& indices, int rank, int axis) {
  const Value shape = b.shape(indices);
  std::vector<Value> parts;
  for (int i = 0; i < rank; ++i) {
    if (i == axis) {
      parts.push_back(b.cast(indices, TW_INT64));
      continue;
    }
    Dims dims(static_cast<size_t>(rank), 1);
    dims[static_cast<size_t>(i)] = -1;
    parts.push_back(b.broadcast(b.reshape(Count(b, b.size(indices, i)), dims), shape));
  }
  return b.op("Pack", parts, {{"axis", rank}});
}

// Flat places of `places` [.., depth] in a tensor of which `sizes` are the first `depth` sizes.
Value Flat(Builder& b, const Value& places, const std::vector<Value>& sizes) {
  Value flat;
  const auto depth = static_cast<int64_t>(sizes.size());
  const std::vector<Value> parts =
      depth == 1 ? std::vector<Value>{b.squeeze(places, {-1})} : b.ops("Unpack", {places}, {{"axis", -1}, {"num", depth}}, sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) flat = i == 0 ? parts[0] : b.op("AddV2", {b.op("Mul", {flat, sizes[i]}), parts[i]});
  return flat;
}

// x with `updates` combined into the slices at `places` [.., depth], which count from the front.
Value Scattered(Builder& b, Node& n, const Value& x, const Value& places, int depth, const Value& updates) {
  const std::string how = n.s("reduction", "none");
  if (how == "none") return b.op("TensorScatterUpdate", {x, places, updates});
  if (how == "add") return b.op("TensorScatterAdd", {x, places, updates});
  if (how == "max") return b.op("TensorScatterMax", {x, places, updates});
  if (how == "min") return b.op("TensorScatterMin", {x, places, updates});
  if (how != "mul") n.unsupported("reduction '" + how + "'; there are none, add, mul, max and min");
  const std::vector<Value> sizes = SizesOf(b, x, 0, depth);
  Value count = Known(b, 1);
  for (const Value& size : sizes) count = b.op("Mul", {count, size});
  const Value factors = b.op("UnsortedSegmentProd", {updates, Flat(b, places, sizes), count});
  return b.op("Mul", {x, b.reshape(factors, b.shape(x))});
}

void ScatterElements(Builder& b, Node& n) {
  const Value &x = n.in(0), &indices = n.in(1);
  const int rank = RankOf(n, x, "data"), axis = AxisOf(n, n.i("axis", 0), rank);
  const Value places = Places(b, FromFront(b, indices, b.size(x, axis)), rank, axis);
  n.out(Scattered(b, n, x, places, rank, n.in(2)));
}

// ---- Slices: the last axis of the indices holds one place ----

int DepthOf(const Node& n, const Value& indices) {
  RankOf(n, indices, "indices");
  if (indices.dim(-1) < 0) n.unsupported("the last size of 'indices' must be known");
  return static_cast<int>(indices.dim(-1));
}

void ScatterND(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int depth = DepthOf(n, n.in(1));
  const Value places = FromFront(b, n.in(1), b.slice0(b.shape(x), 0, depth));
  n.out(Scattered(b, n, x, places, depth, n.in(2)));
}

// The first `batch` axes of both are the same; they become one axis, whose place is put before each index.
Value BatchGather(Builder& b, Node& n, const Value& x, const Value& places, int batch, int depth) {
  const int rank = RankOf(n, x, "data"), outer = places.rank();
  const Value shape = b.shape(x), own = b.shape(places);
  const auto merged = [&](const Value& v, const Value& sizes, int end) {
    return b.reshape(v, b.concat({b.ints({-1}), b.slice0(sizes, batch, end)}, 0));
  };
  const Value data = merged(x, shape, rank), at = merged(places, own, outer);
  Dims column(static_cast<size_t>(outer - batch + 1), 1);
  column[0] = -1;
  std::vector<Value> sizes = SizesOf(b, at, 0, outer - batch);
  sizes.push_back(Known(b, 1));
  const Value number = b.broadcast(b.reshape(Count(b, b.size(data, 0)), column), Join(b, sizes));
  const Value found = b.op("GatherNd", {data, b.concat({b.cast(number, at.dtype()), at}, outer - batch)});
  return b.reshape(found, b.concat({b.slice0(own, 0, outer - 1), b.slice0(shape, batch + depth, rank)}, 0));
}

void GatherND(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int batch = static_cast<int>(n.i("batch_dims", 0)), depth = DepthOf(n, n.in(1));
  const Value places = FromFront(b, n.in(1), b.slice0(b.shape(x), batch, batch + depth));
  n.out(batch == 0 ? b.op("GatherNd", {x, places}) : BatchGather(b, n, x, places, batch, depth));
}

// ---- Choosing by truth values ----

// The condition may be shorter than the axis; elements behind its end are left out.
void Compress(Builder& b, Node& n) {
  const Value chosen = b.reshape(b.op("Where", {n.in(1)}), Dims{-1});
  if (!n.has_attr("axis")) return n.out(b.op("GatherV2", {b.reshape(n.in(0), Dims{-1}), chosen, b.scalar(TW_INT32, 0)}));
  const int axis = AxisOf(n, n.i("axis"), RankOf(n, n.in(0), "input"));
  n.out(b.op("GatherV2", {n.in(0), chosen, b.scalar(TW_INT32, axis)}));
}

void NonZero(Builder& b, Node& n) { n.out(b.op("Transpose", {b.op("Where", {n.in(0)}), b.ints({1, 0}, TW_INT32)})); }

// Writes `update` into a cache [batch, .., places, ..]: row i of each batch goes to the place behind that batch's first one.
void TensorScatter(Builder& b, Node& n) {
  const Value &cache = n.in(0), &update = n.in(1);
  const int rank = RankOf(n, cache, "past_cache"), axis = AxisOf(n, n.i("axis", -2), rank);
  const std::string mode = n.s("mode", "linear");
  if (axis == 0) n.fail("'axis' is the axis of the batch");
  if (mode != "linear" && mode != "circular") n.fail("'mode' is '" + mode + "'; it must be linear or circular");
  const Value old = MoveAxis(b, cache, rank, axis, 1), rows = MoveAxis(b, update, rank, axis, 1);
  Value place = b.unsqueeze(Count(b, b.size(rows, 1)), {0});
  if (n.has(2)) place = b.op("AddV2", {place, b.unsqueeze(b.cast(n.in(2), TW_INT64), {1})});
  if (mode == "circular") place = b.op("FloorMod", {place, b.size(old, 1)});
  const Value sizes = Join(b, SizesOf(b, rows, 0, 2)), batch = b.unsqueeze(Count(b, b.size(rows, 0)), {1});
  const Value index = b.op("Pack", {b.broadcast(batch, sizes), b.broadcast(place, sizes)}, {{"axis", 2}});
  n.out(MoveAxis(b, b.op("TensorScatterUpdate", {old, index, rows}), rank, 1, axis));
}

constexpr Entry kGather[] = {
    {"Compress", 9, kLatest, &Compress},
    {"Gather", 1, kLatest, &Gather},
    {"GatherElements", 11, kLatest, &GatherElements},
    {"GatherND", 11, kLatest, &GatherND},
    {"NonZero", 9, kLatest, &NonZero},
    {"Scatter", 9, 10, &ScatterElements},
    {"ScatterElements", 11, kLatest, &ScatterElements},
    {"ScatterND", 11, kLatest, &ScatterND},
    {"TensorScatter", 24, kLatest, &TensorScatter},
};

}  // namespace

Family GatherTranslators() { return {std::begin(kGather), std::end(kGather)}; }

}  // namespace thalweg::onnx
