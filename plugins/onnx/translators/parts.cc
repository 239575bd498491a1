// Parts of values and values of parts: Slice, Split, Concat, Pad, CenterCropPad, Trilu.
#include <algorithm>
#include <iterator>
#include <limits>

#include "common.h"

namespace thalweg::onnx {
namespace {

// ---- Slice ----

// Bounds and steps that are known: one StridedSlice.
Value Sliced(Builder& b, const Value& x, const std::vector<int>& axes, const std::vector<int64_t>& starts, const std::vector<int64_t>& ends,
             const std::vector<int64_t>& steps) {
  const size_t given = axes.empty() ? 0 : static_cast<size_t>(*std::max_element(axes.begin(), axes.end())) + 1;
  std::vector<int64_t> begin(given, 0), end(given, 0), step(given, 1);
  int64_t whole = (int64_t{1} << given) - 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<size_t>(axes[i]);
    begin[at] = starts[i], end[at] = ends[i], step[at] = steps[i];
    whole &= ~(int64_t{1} << at);
  }
  if (axes.empty()) return x;
  return b.op("StridedSlice", {x, b.ints(begin), b.ints(end), b.ints(step)}, {{"begin_mask", whole}, {"end_mask", whole}});
}

// Puts `values` for `axes` into a vector that has `others` for all other axes. Both vectors are of int64, of any known or unknown length.
Value Placed(Builder& b, const Value& others, const Value& axes, const Value& values) {
  return b.op("TensorScatterUpdate", {others, b.unsqueeze(axes, {1}), values});
}

void Slice(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const Value starts = IntsValue(b, n, "starts", 10, 1), ends = IntsValue(b, n, "ends", 10, 2);
  if (!starts || !ends) n.fail("'starts' and 'ends' must be given");
  const Value steps = n.opset >= 10 ? IntsValue(b, n, "", 10, 4) : Value();
  const Value axes = IntsValue(b, n, "axes", 10, 3);
  const Tensor *s = starts.constant(), *e = ends.constant();
  const bool fixed = s && e && (!steps || steps.constant()) && (!axes || axes.constant());
  if (fixed) {
    std::vector<int64_t> step = steps ? steps.constant()->integers() : std::vector<int64_t>(static_cast<size_t>(s->count()), 1);
    std::vector<int> places;
    if (axes) {
      const std::vector<int64_t> given = axes.constant()->integers();
      const bool back = std::any_of(given.begin(), given.end(), [](int64_t a) { return a < 0; });
      places = AxesOf(n, given, back ? RankOf(n, x, "data") : x.rank() < 0 ? 64 : x.rank());
    } else {
      for (int i = 0; i < s->count(); ++i) places.push_back(i);
    }
    if (places.size() != step.size() || s->count() != e->count() || places.size() != static_cast<size_t>(s->count())) {
      n.fail("'starts', 'ends', 'axes' and 'steps' must have one element for each axis");
    }
    return n.out(Sliced(b, x, places, s->integers(), e->integers(), step));
  }
  const Value ones = b.op("OnesLike", {starts});
  if (!axes) return n.out(b.op("StridedSlice", {x, starts, ends, steps ? steps : ones}));
  const int rank = RankOf(n, x, "data");
  const Value places = b.op("FloorMod", {axes, Known(b, rank)});
  const auto all = [&](int64_t value) { return b.ints(std::vector<int64_t>(static_cast<size_t>(rank), value)); };
  const Value begin = Placed(b, all(0), places, starts), end = Placed(b, all(std::numeric_limits<int64_t>::max()), places, ends);
  n.out(b.op("StridedSlice", {x, begin, end, Placed(b, all(1), places, steps ? steps : ones)}));
}

// ---- Concat and Split ----

void Concat(Builder& b, Node& n) {
  int64_t axis = n.opset < 4 ? n.i("axis", 1) : n.i("axis");
  if (const int rank = n.in(0).rank(); rank >= 0) axis = AxisOf(n, axis, rank);
  n.out(b.concat(n.all(), axis));
}

// `size` parts of `axis` are as large as possible and equal, but for the last one, which is as large as what is left.
Value EvenSizes(Builder& b, const Value& size, int64_t parts) {
  const Value count = Known(b, parts);
  const Value each = b.op("FloorDiv", {b.op("AddV2", {size, Known(b, parts - 1)}), count});
  std::vector<Value> sizes(static_cast<size_t>(parts - 1), each);
  sizes.push_back(b.op("Sub", {size, b.op("Mul", {each, Known(b, parts - 1)})}));
  return Join(b, sizes);
}

void Split(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const auto parts = static_cast<int64_t>(n.outputs());
  int64_t axis = n.i("axis", 0);
  if (axis < 0) axis = AxisOf(n, axis, RankOf(n, x, "input"));
  const bool given = n.opset == 1 ? n.has(1) || n.has_attr("split") : n.opset < 13 ? n.has_attr("split") : n.has(1);
  const Value place = b.scalar(TW_INT32, static_cast<double>(axis));
  std::vector<Value> out;
  if (given) {
    const Value sizes = n.opset == 1 && n.has(1) ? b.cast(n.in(1), TW_INT64) : IntsValue(b, n, "split", 13, 1);
    out = b.ops("SplitV", {x, sizes, place}, {{"num_split", parts}}, n.outputs());
  } else if (n.has_attr("num_outputs")) {
    if (n.i("num_outputs") != parts)
      n.fail("'num_outputs' is " + std::to_string(n.i("num_outputs")) + ", but there are " + std::to_string(parts) + " outputs");
    out = b.ops("SplitV", {x, EvenSizes(b, b.size(x, static_cast<int>(axis)), parts), place}, {{"num_split", parts}}, n.outputs());
  } else {
    out = b.ops("Split", {place, x}, {{"num_split", parts}}, n.outputs());
  }
  for (size_t i = 0; i < out.size(); ++i) n.out(i, out[i]);
}

// ---- Pad ----

struct Padding {
  Value before, after;  // vectors of int64: one element for each axis of the value
};

Padding PaddingOf(Builder& b, Node& n, int rank) {
  const Value pads = n.opset < 2 ? b.ints(n.ints("paddings")) : IntsValue(b, n, "pads", 11, 1);
  if (!pads) n.fail("'pads' must be given");
  if (pads.dim(0) < 0 || pads.dim(0) % 2) n.unsupported("the number of 'pads' must be known and even");
  const int64_t half = pads.dim(0) / 2;
  Padding p{b.slice0(pads, 0, half), b.slice0(pads, half, 2 * half)};
  if (n.opset >= 18 && n.has(3)) {
    const Value axes = b.op("FloorMod", {b.cast(n.in(3), TW_INT64), Known(b, rank)});
    const Value zeros = b.ints(std::vector<int64_t>(static_cast<size_t>(rank), 0));
    p = {Placed(b, zeros, axes, p.before), Placed(b, zeros, axes, p.after)};
  }
  return p;
}

// Takes what negative pads cut off, and returns the pads without these.
Value Cut(Builder& b, const Value& x, Padding* p) {
  const auto negative = [](const Value& v) {
    if (!v.constant()) return true;
    const std::vector<int64_t> all = v.constant()->integers();
    return std::any_of(all.begin(), all.end(), [](int64_t i) { return i < 0; });
  };
  if (!negative(p->before) && !negative(p->after)) return x;
  const Value zero = Known(b, 0);
  const Value begin = b.op("Maximum", {b.op("Neg", {p->before}), zero}), cut = b.op("Minimum", {p->after, zero});
  const Value end = b.op("Maximum", {b.op("AddV2", {b.shape(x), cut}), begin});
  const Value kept = b.op("StridedSlice", {x, begin, end, b.op("OnesLike", {begin})});
  *p = {b.op("Maximum", {p->before, zero}), b.op("Maximum", {p->after, zero})};
  return kept;
}

// Repeats elements from the border ("edge") or from the other end ("wrap"), one axis after the other.
Value Repeated(Builder& b, Value x, const Padding& p, int rank, bool wrap) {
  for (int axis = 0; axis < rank; ++axis) {
    const auto of = [&](const Value& v) { return b.reshape(b.slice0(v, axis, axis + 1), Dims{}); };
    const Value before = of(p.before), after = of(p.after);
    const auto none = [](const Value& v) { return v.constant() && v.constant()->integer(0) == 0; };
    if (none(before) && none(after)) continue;
    const Value size = b.size(x, axis);
    const Value places = b.op("Range", {b.op("Neg", {before}), b.op("AddV2", {size, after}), Known(b, 1)});
    const Value last = b.op("Sub", {size, Known(b, 1)});
    const Value from = wrap ? b.op("FloorMod", {places, size}) : b.op("Minimum", {b.op("Maximum", {places, Known(b, 0)}), last});
    x = b.op("GatherV2", {x, from, b.scalar(TW_INT32, axis)});
  }
  return x;
}

void Pad(Builder& b, Node& n) {
  const int rank = RankOf(n, n.in(0), "data");
  const std::string mode = n.s("mode", "constant");
  Padding p = PaddingOf(b, n, rank);
  const Value x = Cut(b, n.in(0), &p);
  if (mode == "edge" || mode == "wrap") return n.out(Repeated(b, x, p, rank, mode == "wrap"));
  const Value pads = b.op("Pack", {p.before, p.after}, {{"axis", 1}});
  if (mode == "reflect") return n.out(b.op("MirrorPad", {x, pads}, {{"mode", "REFLECT"}}));
  if (mode != "constant") n.unsupported("mode '" + mode + "'; there are constant, reflect, edge and wrap");
  if (n.opset >= 11 && n.has(2)) return n.out(b.op("PadV2", {x, pads, ScalarOf(b, n.in(2))}));
  const double value = n.opset < 11 ? n.f("value", 0) : 0;
  if (x.dtype() == TW_STRING) return n.out(b.op("PadV2", {x, pads, b.constant(Tensor::String({}, {""}))}));
  n.out(b.op("PadV2", {x, pads, b.like(x, value)}));
}

// Cuts or extends axes around their centre to the wanted sizes.
void CenterCropPad(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int rank = RankOf(n, x, "input_data");
  const Value shape = b.shape(x), zero = Known(b, 0), two = Known(b, 2);
  Value wanted = b.cast(n.in(1), TW_INT64);
  if (const std::vector<int64_t> axes = n.ints("axes"); !axes.empty()) {
    std::vector<int64_t> places;
    for (const int axis : AxesOf(n, axes, rank)) places.push_back(axis);
    wanted = Placed(b, shape, b.ints(places), wanted);
  }
  const auto half = [&](const Value& more) { return b.op("FloorDiv", {b.op("Maximum", {more, zero}), two}); };
  const Value missing = b.op("Maximum", {b.op("Sub", {wanted, shape}), zero}), before = half(missing);
  const Value kept = b.op("Slice", {x, half(b.op("Sub", {shape, wanted})), b.op("Minimum", {shape, wanted})});
  const Value pads = b.op("Pack", {before, b.op("Sub", {missing, before})}, {{"axis", 1}});
  n.out(b.op("Pad", {kept, pads}));
}

// ---- Trilu ----

// Keeps the elements on and above diagonal k (`upper`), or on and below it.
void Trilu(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const bool upper = n.i("upper", 1) != 0;
  const Value k = n.has(1) ? ScalarOf(b, n.in(1), TW_INT64) : Known(b, 0);
  const Value all = Known(b, -1), bound = upper ? b.op("Neg", {k}) : k;
  // MatrixBandPart takes a negative bound for none, so it serves diagonals on one side only.
  if (bound.constant() && bound.constant()->integer(0) >= 0) {
    return n.out(b.op("MatrixBandPart", upper ? std::vector<Value>{x, bound, all} : std::vector<Value>{x, all, bound}));
  }
  const Value rows = b.unsqueeze(Count(b, b.size(x, -2)), {1}), columns = Count(b, b.size(x, -1));
  const Value diagonal = b.op("Sub", {columns, rows});
  n.out(b.op("SelectV2", {b.op(upper ? "GreaterEqual" : "LessEqual", {diagonal, k}), x, b.like(x, 0)}));
}

constexpr Entry kParts[] = {
    {"CenterCropPad", 18, kLatest, &CenterCropPad},
    {"Concat", 1, kLatest, &Concat},
    {"Pad", 1, kLatest, &Pad},
    {"Slice", 1, kLatest, &Slice},
    {"Split", 1, kLatest, &Split},
    {"Trilu", 14, kLatest, &Trilu},
};

}  // namespace

Family PartTranslators() { return {std::begin(kParts), std::end(kParts)}; }

}  // namespace thalweg::onnx
