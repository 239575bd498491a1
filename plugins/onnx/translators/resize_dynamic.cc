// Resizing with sizes or scales that are known at run time only: the step computes coordinates, indices and weights, in double.
#include "resize.h"

namespace thalweg::onnx::resize {
namespace {

// Numbers of the step, in double.
struct Number {
  Builder& b;
  Value v;
};
Number operator+(const Number& x, double y) { return {x.b, y == 0 ? x.v : x.b.op("AddV2", {x.v, x.b.scalar(TW_DOUBLE, y)})}; }
Number operator*(const Number& x, double y) { return {x.b, x.b.op("Mul", {x.v, x.b.scalar(TW_DOUBLE, y)})}; }
Number operator+(const Number& x, const Number& y) { return {x.b, x.b.op("AddV2", {x.v, y.v})}; }
Number operator-(const Number& x, const Number& y) { return {x.b, x.b.op("Sub", {x.v, y.v})}; }
Number operator*(const Number& x, const Number& y) { return {x.b, x.b.op("Mul", {x.v, y.v})}; }
Number operator/(const Number& x, const Number& y) { return {x.b, x.b.op("RealDiv", {x.v, y.v})}; }
Number Floor(const Number& x) { return {x.b, x.b.op("Floor", {x.v})}; }
Number Ceil(const Number& x) { return {x.b, x.b.op("Ceil", {x.v})}; }
// y where x is exactly `at`, else otherwise.
Number Where(const Number& x, double at, const Number& y, const Number& otherwise) {
  return {x.b, x.b.op("SelectV2", {x.b.op("Equal", {x.v, x.b.scalar(TW_DOUBLE, at)}), y.v, otherwise.v})};
}

// Element i of a vector of real or whole numbers.
Number Entry0(Builder& b, const Value& v, size_t i) {
  return {b, b.cast(b.reshape(b.slice0(v, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1), Dims{}), TW_DOUBLE)};
}

struct DynamicAxis {
  Number in, out, scale, exact;
};

Number DynamicCoordinate(Node& n, const Mode& m, const DynamicAxis& a, const Number& o, const Wanted& w, size_t i) {
  Builder& b = o.b;
  const Number zero{b, b.scalar(TW_DOUBLE, 0)};
  if (m.coordinates == "half_pixel") return (o + 0.5) / a.scale + -0.5;
  if (m.coordinates == "asymmetric") return o / a.scale;
  if (m.coordinates == "align_corners") return Where(a.exact, 1, zero * o, o * (a.in + -1) / (a.exact + -1));
  if (m.coordinates == "pytorch_half_pixel") return Where(a.exact, 1, zero * o + -0.5, (o + 0.5) / a.scale + -0.5);
  if (m.coordinates == "tf_half_pixel_for_nn") return (o + 0.5) / a.scale;
  if (m.coordinates == "half_pixel_symmetric") {
    const Number one{b, b.scalar(TW_DOUBLE, 1)};
    return a.in * 0.5 * (one - a.out / (a.scale * a.in)) + (o + 0.5) / a.scale + -0.5;
  }
  if (m.coordinates == "tf_crop_and_resize") {
    const Number start = Entry0(b, w.roi_input, i), end = Entry0(b, w.roi_input, i + w.axes.size());
    return Where(a.exact, 1, zero * o + (start + end) * 0.5 * (a.in + -1),
                 start * (a.in + -1) + o * (end - start) * (a.in + -1) / (a.exact + -1));
  }
  n.unsupported("'coordinate_transformation_mode' is '" + m.coordinates + "'");
}

Number DynamicNearest(Node& n, const Mode& m, const DynamicAxis& a, const Number& x) {
  if (m.nearest == "round_prefer_floor") return Ceil(x + -0.5);
  if (m.nearest == "round_prefer_ceil") return Floor(x + 0.5);
  if (m.nearest == "floor") return Floor(x);
  if (m.nearest == "ceil") return Ceil(x);
  if (m.nearest != "simple") n.unsupported("'nearest_mode' is '" + m.nearest + "'");
  Builder& b = x.b;
  return {b, b.op("SelectV2", {b.op("Less", {a.scale.v, b.scalar(TW_DOUBLE, 1)}), Ceil(x).v, Floor(x).v})};
}

// Weights of the places floor(x) - 1 to floor(x) + 2, or of floor(x) and floor(x) + 1; r is x - floor(x).
std::vector<Number> DynamicWeights(const Mode& m, const Number& r) {
  const Number one{r.b, r.b.scalar(TW_DOUBLE, 1)};
  if (m.kind == "linear") return {one - r, r};
  const double a = m.cubic_a;
  const auto near = [&](const Number& d) { return d * d * d * (a + 2) + d * d * -(a + 3) + 1; };
  const auto far = [&](const Number& d) { return d * d * d * a + d * d * (-5 * a) + d * (8 * a) + -4 * a; };
  return {far(r + 1), near(r), near(one - r), far(one - r + 1)};
}

// Resizes axis number i of the wanted ones by gathers with indices and weights that the step computes. inside: false where the
// extrapolation value goes, as a vector along the axis; absent: nowhere.
Value ResizeDynamicAxis(Builder& b, Node& n, const Value& x, const Mode& m, const Wanted& w, size_t i, Value* inside) {
  const int axis = w.axes[i];
  const Number in{b, b.cast(b.size(x, axis), TW_DOUBLE)}, zero{b, b.scalar(TW_DOUBLE, 0)};
  DynamicAxis a{in, in, in, in};
  if (w.size_input) {
    a.out.v = a.exact.v = Entry0(b, w.size_input, i).v;
    a.scale.v = (a.out / in).v;
  } else {
    a.scale.v = w.scale_input ? Entry0(b, w.scale_input, i).v : b.scalar(TW_DOUBLE, w.scales[i]);
    a.exact.v = (in * a.scale).v;
    a.out.v = Floor(a.exact + 1e-6).v;  // float rounding of a scale must not lose a place that is exact on paper
  }
  const Number o{b, b.cast(b.op("Range", {b.scalar(TW_INT64, 0), b.cast(a.out.v, TW_INT64), b.scalar(TW_INT64, 1)}), TW_DOUBLE)};
  const Number at = DynamicCoordinate(n, m, a, o, w, i);
  if (m.coordinates == "tf_crop_and_resize") {
    *inside = b.op("LogicalAnd", {b.op("GreaterEqual", {at.v, zero.v}), b.op("LessEqual", {at.v, (in + -1).v})});
  }
  const auto gather = [&](const Number& place) {
    const Value clipped = b.op("Maximum", {b.op("Minimum", {place.v, (in + -1).v}), zero.v});
    return b.op("GatherV2", {x, b.cast(clipped, TW_INT32), b.scalar(TW_INT32, axis)});
  };
  if (m.kind == "nearest") return gather(DynamicNearest(n, m, a, at));
  const Number base = Floor(at);
  std::vector<Number> weights = DynamicWeights(m, at - base);
  const int first = m.kind == "linear" ? 0 : -1;
  if (m.exclude_outside) {
    Number total = zero;
    for (size_t t = 0; t < weights.size(); ++t) {
      const Number place = base + (first + static_cast<double>(t));
      const Value within = b.op("LogicalAnd", {b.op("GreaterEqual", {place.v, zero.v}), b.op("LessEqual", {place.v, (in + -1).v})});
      weights[t].v = b.op("SelectV2", {within, weights[t].v, zero.v});
      total.v = (total + weights[t]).v;
    }
    for (Number& weight : weights) weight.v = (weight / total).v;
  }
  Dims dims(static_cast<size_t>(x.rank() - axis), 1);
  dims[0] = -1;
  Value sum;
  for (size_t t = 0; t < weights.size(); ++t) {
    const Value part = b.op("Mul", {gather(base + (first + static_cast<double>(t))), b.reshape(b.cast(weights[t].v, x.dtype()), dims)});
    sum = sum ? b.op("AddV2", {sum, part}) : part;
  }
  return sum;
}

// Height and width of images [batch, channels, height, width] whose scales are known or whose sizes are given; absent if other axes change.
Value DynamicSize(Builder& b, const Value& x, const Wanted& w) {
  if (x.rank() != 4 || w.scale_input) return Value();
  std::vector<Value> size(2);
  for (size_t i = 0; i < w.axes.size(); ++i) {
    const int axis = w.axes[i];
    const auto at = static_cast<int64_t>(i);
    if (axis < 2) {
      const std::vector<Element>* known = w.size_input ? w.size_input.known() : nullptr;
      const bool same = w.size_input ? known && known->size() > i && (*known)[i].known && (*known)[i].i == x.dim(axis) : w.scales[i] == 1;
      if (!same) return Value();
      continue;
    }
    Value& s = size[static_cast<size_t>(axis) - 2];
    if (w.size_input) {
      s = b.cast(b.slice0(w.size_input, at, at + 1), TW_INT32);
    } else if (Whole(w.scales[i])) {
      s = b.cast(b.op("Mul", {b.unsqueeze(b.size(x, axis), {0}), b.ints({static_cast<int64_t>(w.scales[i])})}), TW_INT32);
    } else {
      return Value();
    }
  }
  for (int axis = 2; axis < 4; ++axis) {
    Value& s = size[static_cast<size_t>(axis) - 2];
    if (!s) s = b.cast(b.unsqueeze(b.size(x, axis), {0}), TW_INT32);
  }
  return b.concat(size, 0);
}

}  // namespace

void ResizeDynamic(Builder& b, Node& n, const Value& x, const Mode& m, Wanted w) {
  if (m.antialias) n.unsupported("'antialias' needs sizes and scales that are known when the model is loaded");
  if (w.sizes) w.size_input = b.ints(*w.sizes);
  bool whole = !w.scales.empty();
  for (const double s : w.scales) whole &= Whole(s);
  if (const std::optional<Native> native = NativeOf(m, x.dtype(), whole || w.size_input, whole)) {
    if (const Value size = DynamicSize(b, x, w)) return n.out(ResizeNative(b, x, *native, size));
  }
  Value y = InReal(b, m, x), within;
  for (size_t i = 0; i < w.axes.size(); ++i) {
    if (!w.scales.empty() && w.scales[i] == 1 && m.coordinates != "tf_crop_and_resize") continue;
    Value inside;
    y = ResizeDynamicAxis(b, n, y, m, w, i, &inside);
    if (!inside) continue;
    Dims dims(static_cast<size_t>(x.rank() - w.axes[i]), 1);
    dims[0] = -1;
    inside = b.reshape(inside, dims);
    within = within ? b.op("LogicalAnd", {within, inside}) : inside;
  }
  if (within) y = b.op("SelectV2", {within, y, b.like(y, m.outside)});
  if (y.dtype() != x.dtype() && IsInteger(x.dtype())) y = b.op("Round", {y});
  n.out(b.cast(y, x.dtype()));
}

}  // namespace thalweg::onnx::resize
