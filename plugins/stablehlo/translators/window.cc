// Reductions over windows, one axis after the other, and the scatter to the elements that windows select.
#include <algorithm>
#include <iterator>

#include "body.h"
#include "common.h"
#include "place.h"
#include "shape.h"

namespace thalweg::stablehlo {
namespace {

constexpr int64_t kMostReach = int64_t{1} << 30;  // of a window's size, stride or dilation: products of two fit 64 bits

struct Windows {
  std::vector<int64_t> size, stride, base_dilation, dilation, low, high;
};

Windows WindowsOf(const Op& op, int rank) {
  Windows w;
  const std::vector<int64_t> ones(static_cast<size_t>(rank), 1);
  w.size = op.ints("window_dimensions");
  w.stride = op.ints("window_strides", ones);
  w.base_dilation = op.ints("base_dilations", ones);
  w.dilation = op.ints("window_dilations", ones);
  const std::vector<int64_t> padding = op.ints("padding", std::vector<int64_t>(2 * static_cast<size_t>(rank), 0));
  const auto fill = [&](std::vector<int64_t>& v, const char* name) {
    if (v.empty() && rank > 0) v = ones;
    if (v.size() == 1 && rank > 1) v.resize(static_cast<size_t>(rank), v[0]);
    if (v.size() != static_cast<size_t>(rank)) op.fail(std::string(name) + " must have " + std::to_string(rank) + " entries");
    for (const int64_t one : v) {
      if (one < 1 || one > kMostReach) {
        op.fail(std::string(name) + " has " + std::to_string(one) + "; it must be between 1 and " + std::to_string(kMostReach));
      }
    }
  };
  fill(w.size, "window_dimensions");
  fill(w.stride, "window_strides");
  fill(w.base_dilation, "base_dilations");
  fill(w.dilation, "window_dilations");
  for (int axis = 0; axis < rank; ++axis) {
    const size_t i = 2 * static_cast<size_t>(axis);
    const bool one = padding.size() == 1;
    if (!one && padding.size() != 2 * static_cast<size_t>(rank)) op.fail("padding must have two entries for each axis");
    w.low.push_back(one ? padding[0] : padding[i]);
    w.high.push_back(one ? padding[0] : padding[i + 1]);
  }
  return w;
}

// Elements begin, begin + stride, ... of an axis, `count` of them.
Value Every(Translation& t, const Value& v, int axis, int64_t begin, int64_t stride, const Value& count) {
  const int rank = v.rank();
  if (stride == 1) {
    std::vector<Value> sizes = SizesOf(t, v);
    std::vector<int64_t> begins(static_cast<size_t>(rank), 0);
    begins[static_cast<size_t>(axis)] = begin;
    sizes[static_cast<size_t>(axis)] = count;
    return t.op("Slice", {v, t.ints(begins), Vector(t, sizes)});
  }
  std::vector<int64_t> begins(static_cast<size_t>(rank), 0), strides(begins.size(), 1);
  std::vector<Value> ends(begins.size(), Known(t, 0));
  begins[static_cast<size_t>(axis)] = begin;
  strides[static_cast<size_t>(axis)] = stride;
  ends[static_cast<size_t>(axis)] = Plus(t, Known(t, begin + 1), Times(t, Minus(t, count, Known(t, 1)), Known(t, stride)));
  const int64_t others = ((int64_t{1} << rank) - 1) & ~(int64_t{1} << axis);
  return t.op("StridedSlice", {v, t.ints(begins), Vector(t, ends), t.ints(strides)}, {{"begin_mask", others}, {"end_mask", others}});
}

// Combines the elements i, i + dilation, ... of each window along one axis: windows of 1, 2, 4, ... elements, put together as the bits of
// the size say. The number of steps grows with the logarithm of the size.
std::vector<Value> AlongAxis(Translation& t, const Fold& fold, std::vector<Value> values, int axis, int64_t size, int64_t stride,
                             int64_t dilation) {
  const Value length = SizesOf(t, values[0])[static_cast<size_t>(axis)];
  // The number of windows: (length - ((size - 1) dilation + 1)) / stride + 1, or 0.
  const Value room = Minus(t, length, Known(t, (size - 1) * dilation + 1));
  const Value count = Sized(t, "Maximum", Sized(t, "TruncateDiv", Plus(t, room, Known(t, stride)), Known(t, stride)), Known(t, 0));
  if (NumberOf(count) == 0) {
    for (Value& v : values) v = Every(t, v, axis, 0, 1, count);
    return values;
  }
  if (size == 1) {
    if (stride == 1) return values;
    for (Value& v : values) v = Every(t, v, axis, 0, stride, count);
    return values;
  }
  std::vector<Value> all;  // what is put together so far
  int64_t covered = 0;     // elements of a window in `all`
  int64_t width = 1;       // elements of a window in `values`
  Value left = length;     // windows of that width
  for (int64_t rest = size;; rest /= 2) {
    if (rest % 2) {
      std::vector<Value> part;
      for (const Value& v : values) part.push_back(Every(t, v, axis, covered * dilation, stride, count));
      all = all.empty() ? part : fold(all, part);
      covered += width;
    }
    if (rest == 1) return all;
    left = Minus(t, left, Known(t, width * dilation));
    std::vector<Value> a, b;
    for (const Value& v : values) {
      a.push_back(Every(t, v, axis, 0, 1, left));
      b.push_back(Every(t, v, axis, width * dilation, 1, left));
    }
    values = fold(a, b);
    width *= 2;
  }
}

// Running sums and products: windows as long as the axis that end, or begin, at each element.
const char* RunningOf(const Fold& fold, const Windows& w, const Value& x, int axis, bool* from_end) {
  const size_t i = static_cast<size_t>(axis);
  const int64_t length = x.dim(axis);
  if (length < 2 || w.size[i] != length || w.stride[i] != 1 || w.dilation[i] != 1 || w.base_dilation[i] != 1) return nullptr;
  const bool start = w.low[i] == length - 1 && w.high[i] == 0, end = w.low[i] == 0 && w.high[i] == length - 1;
  if (!start && !end) return nullptr;
  *from_end = end;
  if (fold.combiner() == Combiner::kAdd) return "Cumsum";
  return fold.combiner() == Combiner::kMultiply ? "Cumprod" : nullptr;
}

void ReduceWindow(Translation& t, Op& op) {
  const size_t n = op.inputs() / 2;
  if (n == 0 || op.inputs() != 2 * n) op.fail("it must have as many operands as initial values");
  const Fold fold(t, op, op.body());
  std::vector<Value> values = op.some(0, n);
  const std::vector<Value> first = op.some(n, n);
  const int rank = RankOf(op, values[0]);
  const Windows w = WindowsOf(op, rank);
  const bool neutral = n == 1 && Neutral(fold.combiner(), first[0]);
  // Axes where windows as long as the axis run: all others must be left alone.
  for (int axis = 0; axis < rank && neutral; ++axis) {
    bool from_end = false;
    const char* running = RunningOf(fold, w, values[0], axis, &from_end);
    bool alone = running != nullptr;
    for (int other = 0; other < rank; ++other) {
      const size_t i = static_cast<size_t>(other);
      if (other != axis) alone &= w.size[i] == 1 && w.stride[i] == 1 && w.base_dilation[i] == 1 && w.low[i] == 0 && w.high[i] == 0;
    }
    if (alone) return op.out(t.op(running, {values[0], t.scalar(TW_INT32, axis)}, {{"reverse", from_end}}));
  }
  std::vector<int64_t> between;
  for (const int64_t d : w.base_dilation) between.push_back(d - 1);
  const uint32_t type = values[0].dtype();
  // Narrow sums and products are computed in float, and rounded once.
  const bool narrow =
      n == 1 && (type == TW_HALF || type == TW_BFLOAT16) && (fold.combiner() == Combiner::kAdd || fold.combiner() == Combiner::kMultiply);
  std::vector<Value> fills = first;
  if (narrow) {
    values[0] = t.cast(values[0], TW_FLOAT);
    fills[0] = t.cast(fills[0], TW_FLOAT);
  }
  for (size_t i = 0; i < n; ++i) values[i] = Pad(t, values[i], fills[i], w.low, w.high, between);
  for (int axis = 0; axis < rank; ++axis) {
    const size_t i = static_cast<size_t>(axis);
    values = AlongAxis(t, fold, values, axis, w.size[i], w.stride[i], w.dilation[i]);
  }
  if (!neutral) {
    std::vector<Value> initial;
    for (size_t i = 0; i < n; ++i) initial.push_back(BroadcastTo(t, fills[i], SizesOf(t, values[i])));
    values = fold(initial, values);
  }
  if (narrow) values[0] = t.cast(values[0], type);
  for (size_t i = 0; i < n; ++i) op.out(i, values[i]);
}

// Every window selects one of its elements, in row-major order, as the first body says; what `source` has for the window is combined
// with the result at that place.
void SelectAndScatter(Translation& t, Op& op) {
  const Value &x = op.in(0), &source = op.in(1), &initial = op.in(2);
  WantStatic(op, x, "a scatter to selected elements");
  WantStatic(op, source, "a scatter to selected elements");
  const int rank = x.rank();
  const Windows w = WindowsOf(op, rank);
  const Block &select = op.body(0), &scatter = op.body(1);
  if (!Elementwise(t, select)) op.unsupported("the body that selects has other ops than element-wise ones");
  const Fold fold(t, op, scatter);
  const Combiner combiner = fold.combiner();
  const bool truth = combiner == Combiner::kOr || combiner == Combiner::kAnd;  // of truth values: a maximum or a minimum of 0 and 1
  if (!truth && combiner != Combiner::kAdd && combiner != Combiner::kMaximum && combiner != Combiner::kMinimum) {
    op.unsupported("the body that scatters must be a sum, a maximum or a minimum");
  }
  const std::vector<Value> sizes = SizesOf(t, x), windows = SizesOf(t, source);
  if (x.count() == 0 || source.count() == 0) return op.out(BroadcastTo(t, initial, sizes));
  const Value flat = t.reshape(x, Dims{-1});
  constexpr int64_t kMostElements = 4096;
  int64_t elements = 1;
  for (const int64_t size : w.size) {
    elements *= size;
    if (elements > kMostElements) op.unsupported("a window has more than " + std::to_string(kMostElements) + " elements");
  }
  Value value, place, chosen;  // what each window has selected so far; `chosen`: whether it has selected one
  for (int64_t element = 0; element < elements; ++element) {
    std::vector<int64_t> offset(static_cast<size_t>(rank));
    int64_t rest = element;
    for (int axis = rank - 1; axis >= 0; --axis) {
      offset[static_cast<size_t>(axis)] = rest % w.size[static_cast<size_t>(axis)];
      rest /= w.size[static_cast<size_t>(axis)];
    }
    std::vector<Value> at;
    Value inside;
    for (int axis = 0; axis < rank; ++axis) {
      const size_t i = static_cast<size_t>(axis);
      const Value begin = t.op("Mul", {CountAlong(t, windows[i], rank, axis), Known(t, w.stride[i])});
      at.push_back(t.op("AddV2", {begin, Known(t, offset[i] - w.low[i])}));
      if (w.low[i] == 0 && w.high[i] == 0) continue;
      const Value fits = t.op("LogicalAnd", {t.op("GreaterEqual", {at.back(), Known(t, 0)}), t.op("Less", {at.back(), sizes[i]})});
      inside = inside ? t.op("LogicalAnd", {inside, fits}) : fits;
    }
    Value here = rank == 0 ? Known(t, 0) : Place(t, at, sizes);
    if (inside) here = t.op("SelectV2", {inside, here, Known(t, 0)});
    here = BroadcastTo(t, here, windows);
    const Value there = t.op("GatherV2", {flat, here, t.scalar(TW_INT32, 0)});
    if (!value) {
      value = there;
      place = here;
      chosen = inside ? BroadcastTo(t, inside, windows) : Value();
      continue;
    }
    Value keeps = Vectorised(t, op, select, {value, there}).at(0);
    if (chosen) keeps = t.op("LogicalAnd", {keeps, chosen});
    if (inside) keeps = t.op("LogicalOr", {keeps, t.op("LogicalNot", {inside})});
    value = t.op("SelectV2", {keeps, value, there});
    place = t.op("SelectV2", {keeps, place, here});
    if (chosen) chosen = inside ? t.op("LogicalOr", {chosen, inside}) : Value();
  }
  const char* name = "TensorScatterMax";
  if (combiner == Combiner::kAdd) name = "TensorScatterAdd";
  if (combiner == Combiner::kMinimum || combiner == Combiner::kAnd) name = "TensorScatterMin";
  const uint32_t type = truth ? uint32_t{TW_UINT8} : x.dtype();
  if (chosen) {
    // A window that lies outside altogether selects nothing: its value goes behind the last place and is cut off.
    place = t.op("SelectV2", {chosen, place, Known(t, x.count())});
  }
  Value base = BroadcastTo(t, t.cast(initial, type), {Known(t, x.count() + (chosen ? 1 : 0))});
  base = t.op(name, {base, t.reshape(place, Dims{-1, 1}), t.reshape(t.cast(source, type), Dims{-1})});
  if (chosen) base = t.op("Slice", {base, t.ints({0}), t.ints({x.count()})});
  op.out(t.cast(t.reshape(base, x.dims()), x.dtype()));
}

constexpr Entry kWindow[] = {
    {"stablehlo.reduce_window", &ReduceWindow},
    {"stablehlo.select_and_scatter", &SelectAndScatter},
};

}  // namespace

Family window_translators() { return {std::begin(kWindow), std::end(kWindow)}; }

}  // namespace thalweg::stablehlo
