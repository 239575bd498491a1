// Gather and scatter with general axes. Both count places in row-major order over the axes that are indexed; whole trailing axes move
// as blocks.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "body.h"
#include "common.h"
#include "place.h"

namespace thalweg::stablehlo {
namespace {

// How start indices, batch axes and window axes map to the operand.
struct Axes {
  std::vector<int64_t> window;            // axes of the updates or of the result that are window axes
  std::vector<int64_t> removed;           // axes of the operand without a window axis: collapsed or inserted
  std::vector<int64_t> batching;          // axes of the operand that are batch axes ...
  std::vector<int64_t> indices_batching;  // ... and the same axes of the indices
  std::vector<int64_t> map;               // component k of a start index is about axis map[k] of the operand
  int64_t vector_axis = 0;                // of the indices; their rank: each index is one number
};

// Indices as components: component k is an int64 value over the batch axes of the indices.
struct Starts {
  std::vector<Value> components;
  std::vector<Value> batch;  // sizes of the batch axes
};

Starts StartsOf(Translation& t, const Op& op, const Value& indices, const Axes& axes) {
  Starts s;
  const int rank = RankOf(op, indices);
  if (axes.vector_axis < 0 || axes.vector_axis > rank) op.fail("index_vector_dim is " + std::to_string(axes.vector_axis));
  const std::vector<Value> sizes = SizesOf(t, indices);
  for (int axis = 0; axis < rank; ++axis) {
    if (axis != axes.vector_axis) s.batch.push_back(sizes[static_cast<size_t>(axis)]);
  }
  const Value wide = Places(t, indices);
  if (axes.vector_axis == rank) {
    if (axes.map.size() != 1) op.fail("the indices are single numbers, but they are about " + std::to_string(axes.map.size()) + " axes");
    s.components.push_back(wide);
    return s;
  }
  for (size_t k = 0; k < axes.map.size(); ++k) {
    std::vector<int64_t> begin(static_cast<size_t>(rank), 0), size(begin.size(), -1);
    begin[static_cast<size_t>(axes.vector_axis)] = static_cast<int64_t>(k);
    size[static_cast<size_t>(axes.vector_axis)] = 1;
    s.components.push_back(ReshapeTo(t, t.op("Slice", {wide, t.ints(begin), t.ints(size)}), s.batch));
  }
  return s;
}

// How many axes of the operand, from the front, are counted one by one: behind them every axis is a whole window axis that no index
// moves.
int Counted(const std::vector<Value>& sizes, const std::vector<Value>& window, const Axes& axes, bool movable) {
  int counted = static_cast<int>(sizes.size());
  while (counted > 0) {
    const int64_t axis = counted - 1;
    const size_t i = static_cast<size_t>(axis);
    if (Contains(axes.removed, axis) || Contains(axes.batching, axis)) break;
    if (NumberOf(sizes[i]) < 0 || NumberOf(sizes[i]) != NumberOf(window[i])) break;
    // A gather clamps indices, so one that is about a whole axis is 0. A scatter leaves out what it would move outside.
    if (movable && Contains(axes.map, axis)) break;
    --counted;
  }
  return counted;
}

// The index of every element along axis `d` of the operand, over batch axes, then the counted window axes.
// shape: rank of both together. clamp: the start index is moved inside.
Value Along(Translation& t, const Axes& axes, const Starts& s, int d, const std::vector<Value>& sizes, const std::vector<Value>& window,
            const std::vector<int64_t>& window_axes, bool clamp) {
  const size_t i = static_cast<size_t>(d);
  const int batch_rank = static_cast<int>(s.batch.size()), rank = batch_rank + static_cast<int>(window_axes.size());
  Value at;
  for (size_t k = 0; k < axes.map.size(); ++k) {
    if (axes.map[k] != d) continue;
    Value start = s.components[k];
    if (clamp) {
      start = t.op("Minimum", {t.op("Maximum", {start, Known(t, 0)}), Minus(t, sizes[i], window[i])});
    }
    std::vector<Value> wide = s.batch;
    wide.resize(static_cast<size_t>(rank), Known(t, 1));
    at = ReshapeTo(t, start, wide);
  }
  for (size_t k = 0; k < axes.batching.size(); ++k) {
    if (axes.batching[k] != d) continue;
    // The axis of the indices, without the axis of the index vectors.
    const int64_t axis = axes.indices_batching[k];
    const int own = static_cast<int>(axis - (axis > axes.vector_axis ? 1 : 0));
    at = CountAlong(t, s.batch[static_cast<size_t>(own)], rank, own);
  }
  const auto found = std::find(window_axes.begin(), window_axes.end(), d);
  if (found != window_axes.end() && NumberOf(window[i]) != 1) {
    const Value offset = CountAlong(t, window[i], rank, batch_rank + static_cast<int>(found - window_axes.begin()));
    at = at ? t.op("AddV2", {at, offset}) : offset;
  }
  return at ? at : t.reshape(Known(t, 0), Dims(static_cast<size_t>(rank), 1));
}

void CheckAxes(const Op& op, const Axes& axes, int operand_rank, int indices_rank, int result_rank) {
  for (const int64_t a : axes.removed) AxisOf(op, a, operand_rank);
  for (const int64_t a : axes.batching) AxisOf(op, a, operand_rank);
  for (const int64_t a : axes.map) AxisOf(op, a, operand_rank);
  for (const int64_t a : axes.indices_batching) {
    AxisOf(op, a, indices_rank);
    if (a == axes.vector_axis) op.fail("index_vector_dim is among the batching dims of the indices");
  }
  for (const int64_t a : axes.window) AxisOf(op, a, result_rank);
  if (axes.batching.size() != axes.indices_batching.size()) op.fail("the batching dims of operand and indices differ in number");
  if (axes.window.size() + axes.removed.size() + axes.batching.size() != static_cast<size_t>(operand_rank)) {
    op.fail("the window axes, the axes without a window and the batching dims do not make up the operand's " +
            std::to_string(operand_rank) + " axes");
  }
}

void GatherOf(Translation& t, Op& op, const std::vector<Value>& window) {
  const Value &x = op.in(0), &indices = op.in(1);
  const int rank = RankOf(op, x);
  Axes axes{op.ints("offset_dims"),
            op.ints("collapsed_slice_dims"),
            op.ints("operand_batching_dims", {}),
            op.ints("start_indices_batching_dims", {}),
            op.ints("start_index_map"),
            op.i("index_vector_dim")};
  const int result_rank = static_cast<int>(op.out_shape().dims.size());
  CheckAxes(op, axes, rank, RankOf(op, indices), result_rank);
  if (window.size() != static_cast<size_t>(rank)) op.fail("slice_sizes must have " + std::to_string(rank) + " entries");
  const std::vector<Value> sizes = SizesOf(t, x);
  CheckParts(op, sizes, window);
  const Starts s = StartsOf(t, op, indices, axes);
  const int counted = Counted(sizes, window, axes, false);
  std::vector<int64_t> none = axes.removed;
  none.insert(none.end(), axes.batching.begin(), axes.batching.end());
  const std::vector<int64_t> shown = Others(none, rank);  // axes of the operand that are window axes, in their order
  std::vector<int64_t> split;                             // those that are counted
  for (const int64_t axis : shown) {
    if (axis < counted) split.push_back(axis);
  }
  std::vector<Value> made = s.batch;
  for (const int64_t axis : split) made.push_back(window[static_cast<size_t>(axis)]);
  Value result;
  const std::vector<Value> block(sizes.begin() + counted, sizes.end());
  if (counted == 0) {
    std::vector<Value> wide = s.batch;
    for (const Value& size : sizes) wide.push_back(size);
    std::vector<Value> aligned(s.batch.size(), Known(t, 1));
    aligned.insert(aligned.end(), sizes.begin(), sizes.end());
    result = BroadcastTo(t, ReshapeTo(t, x, aligned), wide);
  } else {
    std::vector<Value> at;
    for (int d = 0; d < counted; ++d) at.push_back(Along(t, axes, s, d, sizes, window, split, true));
    const std::vector<Value> outer(sizes.begin(), sizes.begin() + counted);
    const Value places = BroadcastTo(t, Place(t, at, outer), made);
    std::vector<Value> rows = {Product(t, sizes, 0, static_cast<size_t>(counted))};
    rows.insert(rows.end(), block.begin(), block.end());
    result = t.op("GatherV2", {ReshapeTo(t, x, rows), places, t.scalar(TW_INT32, 0)});
  }
  // Now: batch axes, then window axes. Both go to their places.
  std::vector<int64_t> perm(static_cast<size_t>(result_rank));
  int64_t batch = 0, offset = static_cast<int64_t>(s.batch.size());
  for (int axis = 0; axis < result_rank; ++axis) {
    perm[static_cast<size_t>(axis)] = Contains(axes.window, axis) ? offset++ : batch++;
  }
  op.out(t.transpose(result, perm));
}

void Gather(Translation& t, Op& op) {
  std::vector<Value> window;
  for (const int64_t size : op.ints("slice_sizes")) window.push_back(Known(t, size));
  GatherOf(t, op, window);
}

void DynamicGather(Translation& t, Op& op) { GatherOf(t, op, Parts(t, op.in(2), RankOf(op, op.in(0)))); }

void TorchIndexSelect(Translation& t, Op& op) {
  op.out(
      t.op("GatherV2", {op.in(0), op.in(1), t.scalar(TW_INT32, static_cast<double>(op.i("dim")))}, {{"batch_dims", op.i("batch_dims")}}));
}

const char* ScatterOf(Combiner combiner) {
  switch (combiner) {
    case Combiner::kAdd: return "TensorScatterAdd";
    case Combiner::kMaximum:
    case Combiner::kOr: return "TensorScatterMax";
    case Combiner::kMinimum:
    case Combiner::kAnd: return "TensorScatterMin";
    case Combiner::kSecond: return "TensorScatterUpdate";
    default: return nullptr;
  }
}

// Applies the body to one row after the other: the updates of one place follow each other.
std::vector<Value> OneByOne(Translation& t, const Fold& fold, const std::vector<Value>& rows, const Value& places,
                            const std::vector<Value>& news) {
  const size_t n = rows.size();
  std::vector<Value> first = {t.scalar(TW_INT64, 0)};
  first.insert(first.end(), rows.begin(), rows.end());
  const Value end = t.size(places, 0);
  std::vector<Value> last = t.run_while(
      first, [&](Translation& b, const std::vector<Value>& v) { return std::vector<Value>{b.op("Less", {v[0], end})}; },
      [&](Translation& b, const std::vector<Value>& v) {
        const Value place = b.op("GatherV2", {places, v[0], b.scalar(TW_INT32, 0)});  // [1]
        std::vector<Value> now, update;
        for (size_t i = 0; i < n; ++i) {
          now.push_back(b.op("GatherV2", {v[i + 1], place, b.scalar(TW_INT32, 0)}));
          update.push_back(b.op("GatherV2", {news[i], b.reshape(v[0], Dims{1}), b.scalar(TW_INT32, 0)}));
        }
        const std::vector<Value> made = fold.in(b)(now, update);
        std::vector<Value> next = {b.op("AddV2", {v[0], b.scalar(TW_INT64, 1)})};
        for (size_t i = 0; i < n; ++i) next.push_back(b.op("TensorScatterUpdate", {v[i + 1], b.reshape(place, Dims{1, 1}), made[i]}));
        return next;
      });
  last.erase(last.begin());
  return last;
}

void Scatter(Translation& t, Op& op) {
  const size_t n = (op.inputs() - 1) / 2;
  if (n == 0 || op.inputs() != 2 * n + 1) op.fail("it must have as many updates as operands, and indices");
  const std::vector<Value> in = op.some(0, n), updates = op.some(n + 1, n);
  const Value &indices = op.in(n), &x = in[0], &update = updates[0];
  const int rank = RankOf(op, x), update_rank = RankOf(op, update);
  const Axes axes{op.ints("update_window_dims"),           op.ints("inserted_window_dims"),
                  op.ints("input_batching_dims", {}),      op.ints("scatter_indices_batching_dims", {}),
                  op.ints("scatter_dims_to_operand_dims"), op.i("index_vector_dim")};
  CheckAxes(op, axes, rank, RankOf(op, indices), update_rank);
  const Fold fold(t, op, op.body());
  const std::vector<Value> sizes = SizesOf(t, x), update_sizes = SizesOf(t, update);
  const Starts s = StartsOf(t, op, indices, axes);
  std::vector<int64_t> none = axes.removed;
  none.insert(none.end(), axes.batching.begin(), axes.batching.end());
  const std::vector<int64_t> shown = Others(none, rank);
  std::vector<Value> window(static_cast<size_t>(rank), Known(t, 1));
  for (size_t k = 0; k < shown.size(); ++k) window[static_cast<size_t>(shown[k])] = update_sizes[static_cast<size_t>(axes.window[k])];
  CheckParts(op, sizes, window);
  const int counted = Counted(sizes, window, axes, true);
  std::vector<int64_t> split;
  for (const int64_t axis : shown) {
    if (axis < counted) split.push_back(axis);
  }
  // The updates: batch axes, then window axes.
  std::vector<int64_t> perm = Others(axes.window, update_rank);
  perm.insert(perm.end(), axes.window.begin(), axes.window.end());
  const size_t cut = static_cast<size_t>(counted);
  const Value block = Product(t, sizes, cut, sizes.size()), count = Product(t, sizes, 0, cut);
  std::vector<Value> made = s.batch;
  for (const int64_t axis : split) made.push_back(window[static_cast<size_t>(axis)]);
  const Value moved = Product(t, made, 0, made.size());
  if (NumberOf(moved) == 0 || x.count() == 0) {
    for (size_t i = 0; i < n; ++i) op.out(i, in[i]);
    return;
  }
  // Places, and one behind the last place for what lies outside.
  Value places = t.reshape(Known(t, 0), Dims(made.size(), 1)), inside;
  if (counted > 0) {
    std::vector<Value> at;
    for (int d = 0; d < counted; ++d) {
      at.push_back(Along(t, axes, s, d, sizes, window, split, false));
      if (!Contains(axes.map, d)) continue;
      const Value fits =
          t.op("LogicalAnd", {t.op("GreaterEqual", {at.back(), Known(t, 0)}), t.op("Less", {at.back(), sizes[static_cast<size_t>(d)]})});
      inside = inside ? t.op("LogicalAnd", {inside, fits}) : fits;
    }
    places = Place(t, at, std::vector<Value>(sizes.begin(), sizes.begin() + counted));
    if (inside) places = t.op("SelectV2", {inside, places, count});
  }
  places = t.reshape(BroadcastTo(t, places, made), Dims{-1, 1});
  std::vector<Value> rows, news;
  for (size_t i = 0; i < n; ++i) {
    rows.push_back(ReshapeTo(t, in[i], {count, block}));
    news.push_back(ReshapeTo(t, t.transpose(updates[i], perm), {moved, block}));
    if (!inside) continue;
    const Value more = BroadcastTo(t, Like(t, in[i], 0), {Known(t, 1), block});
    rows[i] = t.concat({rows[i], more}, 0);
  }
  const char* scatter = n == 1 ? ScatterOf(fold.combiner()) : nullptr;
  if (IsComplex(x) && (fold.combiner() == Combiner::kMaximum || fold.combiner() == Combiner::kMinimum)) scatter = nullptr;
  std::vector<Value> out;
  if (scatter) {
    const bool truth = IsBool(x) && fold.combiner() != Combiner::kSecond;
    const uint32_t type = truth ? uint32_t{TW_UINT8} : x.dtype();
    out = {t.cast(t.op(scatter, {t.cast(rows[0], type), places, t.cast(news[0], type)}), x.dtype())};
  } else if (NumberOf(moved) == 1 || op.flag("unique_indices")) {
    // No place is met twice, so all updates happen at once. The place behind the last one may be met twice, but it is dropped.
    std::vector<Value> now;
    const Value flat_places = t.reshape(places, Dims{-1});
    for (size_t i = 0; i < n; ++i) now.push_back(t.op("GatherV2", {rows[i], flat_places, t.scalar(TW_INT32, 0)}));
    const std::vector<Value> next = fold(now, news);
    for (size_t i = 0; i < n; ++i) out.push_back(t.op("TensorScatterUpdate", {rows[i], places, next[i]}));
  } else {
    out = OneByOne(t, fold, rows, places, news);
  }
  for (size_t i = 0; i < n; ++i) {
    Value result = out[i];
    if (inside) result = t.op("Slice", {result, t.ints({0, 0}), Vector(t, {count, block})});
    op.out(i, ReshapeTo(t, result, sizes));
  }
}

constexpr Entry kGather[] = {
    {"stablehlo.dynamic_gather", &DynamicGather},
    {"stablehlo.gather", &Gather},
    {"stablehlo.scatter", &Scatter},
    {"stablehlo.torch_index_select", &TorchIndexSelect},
};

}  // namespace

Family gather_translators() { return {std::begin(kGather), std::end(kGather)}; }

}  // namespace thalweg::stablehlo
