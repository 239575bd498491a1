// Resize and Upsample. Images of rank 4 whose modes our resizing ops have go to them, also with sizes that are known only at run time.
// Everything else becomes, axis by axis, a gather for each place that takes part, with constant weights; that needs known sizes.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>

#include "table.h"

namespace thalweg::onnx {
namespace {

struct Mode {
  std::string kind = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubic_a = -0.75, outside = 0;
  bool exclude_outside = false, antialias = false;
};

// One axis: from `in` to `out` places. `exact` is the size before it was rounded down.
struct Axis {
  int axis = 0;
  int64_t in = 0, out = 0;
  double scale = 1, exact = 0, start = 0, end = 1;
};

// What takes part in one place of the result.
struct Taps {
  std::vector<int64_t> at;
  std::vector<double> weight;
  bool outside = false;  // the extrapolation value instead
};

double Coordinate(Node& n, const Mode& m, const Axis& a, int64_t o) {
  const double x = static_cast<double>(o), in = static_cast<double>(a.in);
  if (m.coordinates == "half_pixel") return (x + 0.5) / a.scale - 0.5;
  if (m.coordinates == "asymmetric") return x / a.scale;
  if (m.coordinates == "align_corners") return a.exact == 1 ? 0 : x * (in - 1) / (a.exact - 1);
  if (m.coordinates == "pytorch_half_pixel") return a.exact == 1 ? -0.5 : (x + 0.5) / a.scale - 0.5;
  if (m.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (m.coordinates == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(a.out) / (a.scale * in);
    return in / 2 * (1 - adjustment) + (x + 0.5) / a.scale - 0.5;
  }
  if (m.coordinates == "tf_crop_and_resize") {
    if (a.exact == 1) return 0.5 * (a.start + a.end) * (in - 1);
    return a.start * (in - 1) + x * (a.end - a.start) * (in - 1) / (a.exact - 1);
  }
  n.unsupported("'coordinate_transformation_mode' is '" + m.coordinates + "'");
}

int64_t Nearest(Node& n, const Mode& m, const Axis& a, double x) {
  if (m.nearest == "round_prefer_floor") return static_cast<int64_t>(std::ceil(x - 0.5));
  if (m.nearest == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  if (m.nearest == "floor") return static_cast<int64_t>(std::floor(x));
  if (m.nearest == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (m.nearest == "simple") return static_cast<int64_t>(a.scale < 1 ? std::ceil(x) : std::floor(x));
  n.unsupported("'nearest_mode' is '" + m.nearest + "'");
}

double Cubic(double d, double a) {
  d = std::fabs(d);
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  if (d < 2) return a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a;
  return 0;
}

Taps TapsOf(Node& n, const Mode& m, const Axis& a, int64_t o) {
  const double x = Coordinate(n, m, a, o);
  Taps taps;
  if (m.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.in - 1))) taps.outside = true;
  if (m.kind == "nearest") {
    taps.at = {Nearest(n, m, a, x)};
    taps.weight = {1};
  } else {
    // With antialias, a smaller image takes the mean over wider neighbourhoods.
    const double stretch = m.antialias ? std::min(a.scale, 1.0) : 1, reach = (m.kind == "linear" ? 1 : 2) / stretch;
    const double base = std::floor(x);
    auto first = static_cast<int64_t>(base) + 1 - static_cast<int64_t>(std::ceil(reach)), last = static_cast<int64_t>(base) + static_cast<int64_t>(std::ceil(reach));
    double total = 0;
    for (int64_t i = first; i <= last; ++i) {
      const double d = (static_cast<double>(i) - x) * stretch;
      double weight = m.kind == "linear" ? std::max(0.0, 1 - std::fabs(d)) : Cubic(d, m.cubic_a);
      if (m.exclude_outside && (i < 0 || i >= a.in)) weight = 0;
      taps.at.push_back(i);
      taps.weight.push_back(weight);
      total += weight;
    }
    if ((m.exclude_outside || m.antialias) && total != 0) {
      for (double& w : taps.weight) w /= total;
    }
  }
  for (int64_t& i : taps.at) i = std::clamp<int64_t>(i, 0, a.in - 1);
  return taps;
}

// Resizes one axis by gathers, in the type of x.
Value ResizeAxis(Builder& b, Node& n, const Value& x, const Mode& m, const Axis& a, std::vector<bool>* outside) {
  if (a.out > (1 << 24)) n.fail("axis " + std::to_string(a.axis) + " would become " + std::to_string(a.out) + " long");
  std::vector<Taps> all;
  size_t most = 0;
  bool same = a.in == a.out;
  outside->assign(static_cast<size_t>(a.out), false);
  for (int64_t o = 0; o < a.out; ++o) {
    all.push_back(TapsOf(n, m, a, o));
    most = std::max(most, all.back().at.size());
    (*outside)[static_cast<size_t>(o)] = all.back().outside;
    same &= !all.back().outside && m.kind == "nearest" && all.back().at[0] == o;
  }
  if (same) return x;
  Value sum;
  for (size_t t = 0; t < most; ++t) {
    std::vector<int64_t> index;
    std::vector<double> weight;
    bool any = false;
    for (const Taps& taps : all) {
      index.push_back(t < taps.at.size() ? taps.at[t] : 0);
      weight.push_back(t < taps.at.size() ? taps.weight[t] : 0);
      any |= weight.back() != 0;
    }
    if (!any) continue;
    Value part = b.op("GatherV2", {x, b.ints(index, TW_INT32), b.scalar(TW_INT32, a.axis)});
    if (m.kind != "nearest") {
      Dims dims(static_cast<size_t>(x.rank() - a.axis), 1);
      dims[0] = a.out;
      part = b.op("Mul", {part, b.reshape(b.constant(Tensor::Vector(x.dtype(), weight)), dims)});
    }
    sum = sum ? b.op("AddV2", {sum, part}) : part;
  }
  return sum;
}

// Our op for images [batch, channels, height, width] in this mode, with attributes; none if it is another computation. `ratio`: scales are
// exactly the ratios of sizes. `whole`: they are whole numbers.
struct Native {
  const char* op;
  Attrs attrs;
};
std::optional<Native> NativeOf(const Mode& m, uint32_t dtype, bool ratio, bool whole) {
  if (m.antialias || m.exclude_outside || !ratio) return std::nullopt;
  if (m.kind == "linear" && dtype == TW_FLOAT) {
    if (m.coordinates == "half_pixel") return Native{"ResizeBilinear", {{"half_pixel_centers", true}}};
    if (m.coordinates == "align_corners") return Native{"ResizeBilinear", {{"align_corners", true}}};
    if (m.coordinates == "asymmetric") return Native{"ResizeBilinear", {}};
  }
  if (m.kind == "nearest" && (dtype == TW_FLOAT || dtype == TW_UINT8 || dtype == TW_HALF)) {
    if (m.coordinates == "asymmetric" && (m.nearest == "floor" || (m.nearest == "simple" && whole))) return Native{"ResizeNearestNeighbor", {}};
    if (m.coordinates == "half_pixel" && (m.nearest == "round_prefer_ceil" || (whole && m.nearest == "round_prefer_floor"))) {
      return Native{"ResizeNearestNeighbor", {{"half_pixel_centers", true}}};
    }
  }
  return std::nullopt;
}

// Height and width that become `size`, an int32 vector of two.
Value ResizeNative(Builder& b, const Value& x, const Native& native, const Value& size) {
  const Value y = b.op(native.op, {b.transpose(x, {0, 2, 3, 1}), size}, native.attrs);
  return b.transpose(y, {0, 3, 1, 2});
}

struct Wanted {
  std::vector<int> axes;              // that may change
  std::vector<double> scales;         // of these axes; empty if they are not known now, or sizes are given
  std::optional<std::vector<int64_t>> sizes;
  Value size_input, scale_input, roi_input;  // what is not known now; absent: not given
};

bool Whole(double scale) { return scale >= 1 && scale == std::floor(scale); }

// ---- Sizes or scales that are known at run time only ----

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
    return Where(a.exact, 1, zero * o + (start + end) * 0.5 * (a.in + -1), start * (a.in + -1) + o * (end - start) * (a.in + -1) / (a.exact + -1));
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

// Resizes axis number i of the wanted ones by gathers with indices and weights that the step computes. inside: false where the extrapolation
// value goes, as a vector along the axis; absent: nowhere.
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

Value InReal(Builder& b, const Mode& m, const Value& x) {
  const bool real = IsFloating(x.dtype()) && x.dtype() != TW_HALF && x.dtype() != TW_BFLOAT16;
  return b.cast(x, m.kind == "nearest" || real ? x.dtype() : static_cast<uint32_t>(TW_FLOAT));
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

void ResizeTo(Builder& b, Node& n, const Value& x, const Mode& m, const Wanted& w, const std::vector<double>& roi) {
  bool known = (w.sizes || !w.scales.empty()) && (m.coordinates != "tf_crop_and_resize" || !roi.empty());
  for (const int axis : w.axes) known &= x.dim(axis) >= 0;
  if (!known) {
    // Axes that keep their size may be unknown.
    bool others = !w.scales.empty();
    for (size_t i = 0; i < w.axes.size() && others; ++i) others &= x.dim(w.axes[i]) >= 0 || w.scales[i] == 1;
    if (!others) return ResizeDynamic(b, n, x, m, w);
  }
  std::vector<Axis> axes;
  bool ratio = true, whole = true, batch = false;
  for (size_t i = 0; i < w.axes.size(); ++i) {
    Axis a;
    a.axis = w.axes[i];
    a.in = x.dim(a.axis);
    if (a.in < 0) continue;
    if (a.in == 0) n.fail("axis " + std::to_string(a.axis) + " is empty");
    if (w.sizes) {
      a.out = (*w.sizes)[i];
      a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
      a.exact = static_cast<double>(a.out);
    } else {
      a.scale = w.scales[i];
      // float rounding of a scale such as 0.6 must not lose a place that is exact on paper
      a.exact = static_cast<double>(a.in) * a.scale;
      if (a.exact > (1 << 24)) n.fail("axis " + std::to_string(a.axis) + " would become " + std::to_string(a.exact) + " long");
      a.out = static_cast<int64_t>(std::floor(a.exact + 1e-6 * std::max(1.0, a.scale)));
      if (std::fabs(a.exact - static_cast<double>(a.out)) < 1e-5) a.exact = static_cast<double>(a.out);
    }
    if (a.out < 0 || !std::isfinite(a.scale)) n.fail("axis " + std::to_string(a.axis) + " would become " + std::to_string(a.out) + " long");
    if (!roi.empty()) {
      a.start = roi[i];
      a.end = roi[i + w.axes.size()];
    }
    ratio &= a.exact == static_cast<double>(a.out);
    if (a.out == a.in && m.coordinates != "tf_crop_and_resize") continue;
    whole &= Whole(a.scale);
    batch |= a.axis < 2;
    axes.push_back(a);
  }
  const std::optional<Native> native = x.rank() == 4 && !batch && !axes.empty() ? NativeOf(m, x.dtype(), ratio, whole) : std::nullopt;
  if (native) {
    std::vector<int64_t> size = {x.dim(2), x.dim(3)};
    for (const Axis& a : axes) size[static_cast<size_t>(a.axis) - 2] = a.out;
    if (size[0] > 0 && size[1] > 0) return n.out(ResizeNative(b, x, *native, b.ints(size, TW_INT32)));
  }
  Value y = InReal(b, m, x);
  Value hidden;  // where the extrapolation value goes
  for (const Axis& a : axes) {
    std::vector<bool> outside;
    y = ResizeAxis(b, n, y, m, a, &outside);
    if (std::none_of(outside.begin(), outside.end(), [](bool o) { return o; })) continue;
    std::vector<int64_t> mask(outside.begin(), outside.end());
    Dims dims(static_cast<size_t>(x.rank() - a.axis), 1);
    dims[0] = a.out;
    const Value here = b.constant(Tensor::Vector(TW_BOOL, mask).Reshaped(dims));
    hidden = hidden ? b.op("LogicalOr", {hidden, here}) : here;
  }
  if (hidden) y = b.op("SelectV2", {hidden, b.like(y, m.outside), y});
  if (y.dtype() != x.dtype() && IsInteger(x.dtype())) y = b.op("Round", {y});
  n.out(b.cast(y, x.dtype()));
}

// An empty tensor stands for an absent input.
bool Given(Node& n, size_t i) { return n.has(i) && !(n.in(i).static_shape() && n.in(i).count() == 0); }

void SetScales(Node& n, size_t i, Wanted* w) {
  if (n.in(i).constant()) {
    w->scales = n.in(i).constant()->reals();
  } else {
    w->scale_input = n.in(i);
  }
}

void CheckMode(Node& n, const Mode& m) {
  if (m.kind != "nearest" && m.kind != "linear" && m.kind != "cubic") n.unsupported("'mode' is '" + m.kind + "'");
}

void Resize(Builder& b, Node& n) {
  const Value& x = n.in(0);
  if (x.rank() < 0) n.unsupported("the rank of the input is unknown");
  Mode m;
  m.kind = n.s("mode", "nearest");
  CheckMode(n, m);
  Wanted w;
  std::vector<double> roi;
  for (const int64_t a : n.ints("axes")) {
    if (a < -x.rank() || a >= x.rank()) n.fail("'axes' has " + std::to_string(a) + ", but the input has rank " + std::to_string(x.rank()));
    w.axes.push_back(static_cast<int>(a < 0 ? a + x.rank() : a));
  }
  if (w.axes.empty()) {
    for (int i = 0; i < x.rank(); ++i) w.axes.push_back(i);
  }
  if (n.opset < 11) {
    m.coordinates = "asymmetric";
    m.nearest = "simple";
    SetScales(n, 1, &w);
  } else {
    m.coordinates = n.s("coordinate_transformation_mode", "half_pixel");
    m.nearest = n.s("nearest_mode", "round_prefer_floor");
    m.cubic_a = n.f("cubic_coeff_a", -0.75);
    m.exclude_outside = n.i("exclude_outside", 0);
    m.outside = n.f("extrapolation_value", 0);
    m.antialias = n.i("antialias", 0);
    if (m.coordinates == "tf_crop_and_resize") {
      if (!Given(n, 1)) n.fail("'roi' is absent");
      w.roi_input = n.in(1);
      if (n.in(1).constant()) roi = n.in(1).constant()->reals();
      if (!roi.empty() && roi.size() != 2 * w.axes.size()) n.fail("'roi' has " + std::to_string(roi.size()) + " entries, not " + std::to_string(2 * w.axes.size()));
    }
    if (Given(n, 3)) {
      w.sizes = n.maybe_ints(3);
      if (!w.sizes) w.size_input = n.in(3);
    } else if (Given(n, 2)) {
      SetScales(n, 2, &w);
    } else {
      n.fail("neither scales nor sizes are given");
    }
  }
  const size_t given = w.sizes ? w.sizes->size() : w.scales.empty() ? w.axes.size() : w.scales.size();
  if (given != w.axes.size()) n.fail("there are " + std::to_string(given) + " scales or sizes for " + std::to_string(w.axes.size()) + " axes");
  const std::string aspect = n.s("keep_aspect_ratio_policy", "stretch");
  if (w.sizes && aspect != "stretch") {
    double scale = 0;
    for (size_t i = 0; i < w.axes.size(); ++i) {
      if (x.dim(w.axes[i]) <= 0) n.unsupported("'keep_aspect_ratio_policy' needs known sizes");
      const double own = static_cast<double>((*w.sizes)[i]) / static_cast<double>(x.dim(w.axes[i]));
      scale = i == 0 ? own : aspect == "not_larger" ? std::min(scale, own) : std::max(scale, own);
    }
    for (size_t i = 0; i < w.axes.size(); ++i) (*w.sizes)[i] = static_cast<int64_t>(std::floor(scale * static_cast<double>(x.dim(w.axes[i])) + 0.5));
  }
  ResizeTo(b, n, x, m, w, roi);
}

void Upsample(Builder& b, Node& n) {
  const Value& x = n.in(0);
  if (x.rank() < 0) n.unsupported("the rank of the input is unknown");
  Mode m;
  m.kind = n.s("mode", "nearest");
  if (m.kind == "bilinear") m.kind = "linear";
  CheckMode(n, m);
  m.coordinates = "asymmetric";
  m.nearest = "floor";
  Wanted w;
  for (int i = 0; i < x.rank(); ++i) w.axes.push_back(i);
  if (n.opset < 7) {
    w.scales = {1, 1, n.f("height_scale"), n.f("width_scale")};
  } else if (n.opset < 9) {
    w.scales = n.floats("scales");
  } else {
    SetScales(n, 1, &w);
  }
  if (!w.scale_input && w.scales.size() != w.axes.size()) n.fail("there are " + std::to_string(w.scales.size()) + " scales for rank " + std::to_string(x.rank()));
  ResizeTo(b, n, x, m, w, {});
}

constexpr Entry kEntries[] = {
    {"Resize", 10, kLatest, &Resize},
    {"Upsample", 1, 9, &Upsample},
};

}  // namespace

Family ResizeTranslators() { return {std::begin(kEntries), std::end(kEntries)}; }

}  // namespace thalweg::onnx
