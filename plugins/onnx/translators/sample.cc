// GridSample: an image read at real coordinates; and AffineGrid, which makes such coordinates.
#include <array>
#include <iterator>

#include "common.h"

namespace thalweg::onnx {
namespace {

Value Mul(Builder& b, const Value& x, const Value& y) { return b.op("Mul", {x, y}); }
Value Plus(Builder& b, const Value& x, const Value& y) { return b.op("AddV2", {x, y}); }
Value Minus(Builder& b, const Value& x, const Value& y) { return b.op("Sub", {x, y}); }
Value Half(Builder& b, const Value& x) { return Mul(b, x, b.like(x, 0.5)); }

enum class Outside { kZeros, kBorder, kReflection };
enum class Between { kNearest, kLinear, kCubic };

// One spatial axis: the coordinate of each point, and the size of the image along the axis, in the same real type.
struct Axis {
  Value coordinate, size;
  bool align;  // -1 and 1 are the centres of the first and the last pixel, not their outer edges
};

Value Clipped(Builder& b, const Axis& a, const Value& x) {
  return b.op("Minimum", {b.op("Maximum", {x, b.like(x, 0)}), Minus(b, a.size, b.like(x, 1))});
}

// Reflects coordinates at the edges as often as needed.
Value Reflected(Builder& b, const Axis& a, const Value& x) {
  const Value low = b.like(x, a.align ? 0 : -0.5), span = a.align ? Minus(b, a.size, b.like(x, 1)) : a.size;
  const Value far = b.op("Abs", {Minus(b, x, low)});
  const Value times = b.op("Floor", {b.op("DivNoNan", {far, span})});
  const Value rest = Minus(b, far, Mul(b, times, span));
  const Value odd = b.op("NotEqual", {b.op("FloorMod", {times, b.like(x, 2)}), b.like(x, 0)});
  return Clipped(b, a, Plus(b, b.op("SelectV2", {odd, Minus(b, span, rest), rest}), low));
}

Value Inside(Builder& b, const Axis& a, const Value& x, Outside outside) {
  return outside == Outside::kReflection ? Reflected(b, a, x) : Clipped(b, a, x);
}

// A pixel that takes part along one axis: its index, and its weight at each point.
struct Tap {
  Value index, weight;  // index: int64; weight absent: 1
};

Tap TapAt(Builder& b, const Axis& a, const Value& at, const Value& weight, Outside outside) {
  const Value inside = Inside(b, a, at, outside);
  Tap tap{b.cast(inside, TW_INT64), weight};
  if (outside == Outside::kZeros) {
    const Value is_pixel = b.cast(b.op("Equal", {inside, at}), at.dtype());
    tap.weight = weight ? Mul(b, weight, is_pixel) : is_pixel;
  }
  return tap;
}

// The weights of the four pixels around a point that lies `t` behind the second one.
std::array<Value, 4> CubicWeights(Builder& b, const Value& t) {
  constexpr double kA = -0.75;
  const auto number = [&](double v) { return b.like(t, v); };
  const auto near = [&](const Value& x) {  // ((A + 2) x - (A + 3)) x x + 1, for distances up to 1
    return Plus(b, Mul(b, Mul(b, Minus(b, Mul(b, x, number(kA + 2)), number(kA + 3)), x), x), number(1));
  };
  const auto far = [&](const Value& x) {  // ((A x - 5 A) x + 8 A) x - 4 A, for distances from 1 to 2
    return Minus(b, Mul(b, Plus(b, Mul(b, Minus(b, Mul(b, x, number(kA)), number(5 * kA)), x), number(8 * kA)), x), number(4 * kA));
  };
  const Value one = number(1);
  return {far(Plus(b, t, one)), near(t), near(Minus(b, one, t)), far(Minus(b, number(2), t))};
}

std::vector<Tap> Taps(Builder& b, const Axis& a, Between between, Outside outside) {
  if (between == Between::kCubic) {
    const Value first = b.op("Floor", {a.coordinate});
    const std::array<Value, 4> weights = CubicWeights(b, Minus(b, a.coordinate, first));
    std::vector<Tap> taps;
    for (int i = 0; i < 4; ++i) taps.push_back(TapAt(b, a, Plus(b, first, b.like(first, i - 1)), weights[static_cast<size_t>(i)], outside));
    return taps;
  }
  const Value x = outside == Outside::kZeros ? a.coordinate : Inside(b, a, a.coordinate, outside);
  if (between == Between::kNearest) return {TapAt(b, a, b.op("Rint", {x}), Value(), outside)};
  const Value first = b.op("Floor", {x}), rest = Minus(b, x, first), one = b.like(x, 1);
  return {TapAt(b, a, first, Minus(b, one, rest), outside), TapAt(b, a, Plus(b, first, one), rest, outside)};
}

// The sum over all combinations of one tap for each axis: weight times pixel. pixels: [batch, pixels, channels].
class Sum {
 public:
  Sum(Builder& b, const Value& pixels, const std::vector<std::vector<Tap>>& taps, const std::vector<Value>& sizes)
      : b_(b), pixels_(pixels), taps_(taps), sizes_(sizes) {}
  Value Run() {
    Add(0, Value(), Value());
    return total_;
  }

 private:
  void Add(size_t axis, const Value& index, const Value& weight) {
    if (axis < taps_.size()) {
      for (const Tap& tap : taps_[axis]) {
        const Value place = index ? Plus(b_, Mul(b_, index, sizes_[axis]), tap.index) : tap.index;
        Add(axis + 1, place, weight && tap.weight ? Mul(b_, weight, tap.weight) : tap.weight ? tap.weight : weight);
      }
      return;
    }
    Value found = b_.op("GatherV2", {pixels_, index, b_.scalar(TW_INT32, 1)}, {{"batch_dims", 1}});
    if (weight) found = Mul(b_, found, b_.cast(b_.unsqueeze(weight, {2}), found.dtype()));
    total_ = total_ ? Plus(b_, total_, found) : found;
  }

  Builder& b_;
  const Value pixels_;
  const std::vector<std::vector<Tap>>& taps_;
  const std::vector<Value>& sizes_;
  Value total_;
};

Between BetweenOf(const Node& n) {
  const std::string mode = n.s("mode", n.opset < 20 ? "bilinear" : "linear");
  if (mode == "nearest") return Between::kNearest;
  if (mode == "bilinear" || mode == "linear") return Between::kLinear;
  if (mode == "bicubic" || mode == "cubic") return Between::kCubic;
  n.unsupported("mode '" + mode + "'; there are nearest, linear and cubic");
}

Outside OutsideOf(const Node& n) {
  const std::string mode = n.s("padding_mode", "zeros");
  if (mode == "zeros") return Outside::kZeros;
  if (mode == "border") return Outside::kBorder;
  if (mode == "reflection") return Outside::kReflection;
  n.unsupported("padding_mode '" + mode + "'; there are zeros, border and reflection");
}

// The grid is [batch, ..., axes]; its last axis begins with the image's last axis.
void GridSample(Builder& b, Node& n) {
  const Value &x = n.in(0), &grid = n.in(1);
  const int axes = RankOf(n, x, "X") - 2;
  if (axes < 1) n.fail("'X' must have rank 3 or more but has rank " + std::to_string(x.rank()));
  const bool align = n.i("align_corners", 0) != 0;
  const Between between = BetweenOf(n);
  const Outside outside = OutsideOf(n);
  const std::vector<Value> sizes = SizesOf(b, x, 2, 2 + axes);
  const Value batch = b.size(x, 0), channels = b.size(x, 1), any = Known(b, -1);
  const Value pixels = b.transpose(b.reshape(x, Join(b, {batch, channels, any})), {0, 2, 1});
  const Value points = b.reshape(grid, Join(b, {batch, any, Known(b, axes)}));
  std::vector<std::vector<Tap>> taps;
  for (int i = 0; i < axes; ++i) {
    const int64_t place = axes - 1 - i;
    const Value given = b.squeeze(b.op("Slice", {points, b.ints({0, 0, place}), b.ints({-1, -1, 1})}), {2});
    const Value size = b.cast(sizes[static_cast<size_t>(i)], grid.dtype());
    const Value shifted = Plus(b, given, b.like(given, 1));
    const Value coordinate =
        align ? Mul(b, Half(b, shifted), Minus(b, size, b.like(given, 1))) : Half(b, Minus(b, Mul(b, shifted, size), b.like(given, 1)));
    taps.push_back(Taps(b, {coordinate, size, align}, between, outside));
  }
  const Value sum = b.transpose(Sum(b, pixels, taps, sizes).Run(), {0, 2, 1});
  const Value shape = b.concat({Join(b, {batch, channels}), b.slice0(b.shape(grid), 1, 1 + axes)}, 0);
  n.out(b.reshape(sum, shape));
}

// The coordinates of the pixels of an image of `size` [batch, channels, ...] under affine maps theta [batch, axes, axes + 1].
void AffineGrid(Builder& b, Node& n) {
  const Value &theta = n.in(0), size = b.cast(n.in(1), TW_INT64);
  const int64_t axes = size.dim(0) - 2;
  if (axes != 2 && axes != 3) n.unsupported("the number of elements of 'size' must be known, and be 4 or 5");
  const bool align = n.i("align_corners", 0) != 0;
  const Value one = b.like(theta, 1), two = b.like(theta, 2), spatial = b.slice0(size, 2, 2 + axes);
  std::vector<Value> columns;
  for (int64_t i = axes - 1; i >= 0; --i) {
    const Value count = b.reshape(b.slice0(spatial, i, i + 1), Dims{}), real = b.cast(count, theta.dtype());
    const Value number = b.cast(Count(b, count), theta.dtype());
    const Value part =
        align ? b.op("DivNoNan", {Mul(b, number, two), Minus(b, real, one)}) : b.op("RealDiv", {Plus(b, Mul(b, number, two), one), real});
    Dims dims(static_cast<size_t>(axes), 1);
    dims[static_cast<size_t>(i)] = -1;
    columns.push_back(b.broadcast(b.reshape(Minus(b, part, one), dims), spatial));
  }
  columns.push_back(b.op("Fill", {spatial, one}));
  const Value points = b.reshape(b.op("Pack", columns, {{"axis", axes}}), Dims{1, -1, axes + 1});
  const Value grid = b.op("BatchMatMulV2", {points, theta}, {{"adj_y", true}});
  n.out(b.reshape(grid, b.concat({b.slice0(size, 0, 1), spatial, b.ints({axes})}, 0)));
}

constexpr Entry kSample[] = {
    {"AffineGrid", 20, kLatest, &AffineGrid},
    {"GridSample", 16, kLatest, &GridSample},
};

}  // namespace

Family SampleTranslators() { return {std::begin(kSample), std::end(kSample)}; }

}  // namespace thalweg::onnx
