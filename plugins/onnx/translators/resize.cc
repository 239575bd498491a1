// Resize and Upsample. Images of rank 4 whose modes our resizing ops have go to them, also with sizes that are known only at run time.
// Everything else becomes, axis by axis, a gather for each place that takes part, with constant weights; that needs known sizes.
#include "resize.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>

namespace thalweg::onnx {
namespace resize {

bool Whole(double scale) { return scale >= 1 && scale == std::floor(scale); }

Value InReal(Builder& b, const Mode& m, const Value& x) {
  const bool real = IsFloating(x.dtype()) && x.dtype() != TW_HALF && x.dtype() != TW_BFLOAT16;
  return b.cast(x, m.kind == "nearest" || real ? x.dtype() : static_cast<uint32_t>(TW_FLOAT));
}

std::optional<Native> NativeOf(const Mode& m, uint32_t dtype, bool ratio, bool whole) {
  if (m.antialias || m.exclude_outside || !ratio) return std::nullopt;
  if (m.kind == "linear" && dtype == TW_FLOAT) {
    if (m.coordinates == "half_pixel") return Native{"ResizeBilinear", {{"half_pixel_centers", true}}};
    if (m.coordinates == "align_corners") return Native{"ResizeBilinear", {{"align_corners", true}}};
    if (m.coordinates == "asymmetric") return Native{"ResizeBilinear", {}};
  }
  if (m.kind == "nearest" && (dtype == TW_FLOAT || dtype == TW_UINT8 || dtype == TW_HALF)) {
    if (m.coordinates == "asymmetric" && (m.nearest == "floor" || (m.nearest == "simple" && whole)))
      return Native{"ResizeNearestNeighbor", {}};
    if (m.coordinates == "half_pixel" && (m.nearest == "round_prefer_ceil" || (whole && m.nearest == "round_prefer_floor"))) {
      return Native{"ResizeNearestNeighbor", {{"half_pixel_centers", true}}};
    }
  }
  return std::nullopt;
}

Value ResizeNative(Builder& b, const Value& x, const Native& native, const Value& size) {
  const Value y = b.op(native.op, {b.transpose(x, {0, 2, 3, 1}), size}, native.attrs);
  return b.transpose(y, {0, 3, 1, 2});
}

}  // namespace resize

namespace {

using namespace resize;

// One axis: from `in` to `out` places. `exact` is the size before it was rounded down.
struct Axis {
  int axis = 0;
  int64_t in = 0, out = 0;
  double scale = 1, exact = 0, start = 0, end = 1;
};

constexpr double kLongest = 1 << 16;  // places of an axis whose indices are constants

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
  if (!(std::fabs(x) < 1e9))
    n.fail("place " + std::to_string(o) + " of axis " + std::to_string(a.axis) + " would come from place " + std::to_string(x));
  Taps taps;
  if (m.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.in - 1))) taps.outside = true;
  if (m.kind == "nearest") {
    taps.at = {Nearest(n, m, a, x)};
    taps.weight = {1};
  } else {
    // With antialias, a smaller image takes the mean over wider neighbourhoods.
    const double stretch = m.antialias ? std::min(a.scale, 1.0) : 1, reach = (m.kind == "linear" ? 1 : 2) / stretch;
    const double base = std::floor(x);
    auto first = static_cast<int64_t>(base) + 1 - static_cast<int64_t>(std::ceil(reach)),
         last = static_cast<int64_t>(base) + static_cast<int64_t>(std::ceil(reach));
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

void ResizeTo(Builder& b, Node& n, const Value& x, const Mode& m, const Wanted& w, const std::vector<double>& roi) {
  if (m.coordinates == "tf_crop_and_resize" && roi.empty()) return ResizeDynamic(b, n, x, m, w);
  bool known = w.sizes || !w.scales.empty();
  for (const int axis : w.axes) known &= x.dim(axis) >= 0;
  if (!known) {
    // Axes that keep their size may be unknown.
    bool others = !w.scales.empty();
    for (size_t i = 0; i < w.axes.size() && others; ++i) others &= x.dim(w.axes[i]) >= 0 || w.scales[i] == 1;
    if (!others) return ResizeDynamic(b, n, x, m, w);
  }
  // Long axes get their indices from the step, not from constants.
  for (size_t i = 0; i < w.axes.size(); ++i) {
    if (x.dim(w.axes[i]) < 0) continue;
    const double out = w.sizes ? static_cast<double>((*w.sizes)[i]) : w.scales[i] * static_cast<double>(x.dim(w.axes[i]));
    if (!(out >= 0 && out <= 1e9)) n.fail("axis " + std::to_string(w.axes[i]) + " would become " + std::to_string(out) + " long");
    if (out > kLongest) return ResizeDynamic(b, n, x, m, w);
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

// The sizes that one scale gives all axes: that of the axis which needs the least or the most. choose: Min or Max.
Value KeptAspect(Builder& b, const Value& x, const Wanted& w, const char* choose) {
  const std::vector<int64_t> axes(w.axes.begin(), w.axes.end());
  const Value in = b.cast(b.op("GatherV2", {b.shape(x), b.ints(axes), b.scalar(TW_INT32, 0)}), TW_DOUBLE);
  const Value scale = b.op(choose, {b.op("RealDiv", {b.cast(w.size_input, TW_DOUBLE), in}), b.scalar(TW_INT32, 0)});
  return b.cast(b.op("Floor", {b.op("AddV2", {b.op("Mul", {scale, in}), b.scalar(TW_DOUBLE, 0.5)})}), TW_INT64);
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
      if (!roi.empty() && roi.size() != 2 * w.axes.size())
        n.fail("'roi' has " + std::to_string(roi.size()) + " entries, not " + std::to_string(2 * w.axes.size()));
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
  if (given != w.axes.size())
    n.fail("there are " + std::to_string(given) + " scales or sizes for " + std::to_string(w.axes.size()) + " axes");
  const std::string aspect = n.s("keep_aspect_ratio_policy", "stretch");
  if (aspect != "stretch" && aspect != "not_larger" && aspect != "not_smaller") n.fail("'keep_aspect_ratio_policy' is '" + aspect + "'");
  if (w.sizes && aspect != "stretch") {
    double scale = 0;
    for (size_t i = 0; i < w.axes.size(); ++i) {
      if (x.dim(w.axes[i]) <= 0) n.unsupported("'keep_aspect_ratio_policy' needs known sizes");
      const double own = static_cast<double>((*w.sizes)[i]) / static_cast<double>(x.dim(w.axes[i]));
      scale = i == 0 ? own : aspect == "not_larger" ? std::min(scale, own) : std::max(scale, own);
    }
    for (size_t i = 0; i < w.axes.size(); ++i)
      (*w.sizes)[i] = static_cast<int64_t>(std::floor(scale * static_cast<double>(x.dim(w.axes[i])) + 0.5));
  }
  if (w.size_input && aspect != "stretch") w.size_input = KeptAspect(b, x, w, aspect == "not_larger" ? "Min" : "Max");
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
  if (!w.scale_input && w.scales.size() != w.axes.size())
    n.fail("there are " + std::to_string(w.scales.size()) + " scales for rank " + std::to_string(x.rank()));
  ResizeTo(b, n, x, m, w, {});
}

constexpr Entry kResize[] = {
    {"Resize", 10, kLatest, &Resize},
    {"Upsample", 1, 9, &Upsample},
};

}  // namespace

Family ResizeTranslators() { return {std::begin(kResize), std::end(kResize)}; }

}  // namespace thalweg::onnx
