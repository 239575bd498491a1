// Ops of detectors: RoiAlign and NonMaxSuppression; and Det.
#include <iterator>
#include <limits>

#include "common.h"
#include "loop.h"

namespace thalweg::onnx {
namespace {

Value Mul(Builder& b, const Value& x, const Value& y) { return b.op("Mul", {x, y}); }
Value Plus(Builder& b, const Value& x, const Value& y) { return b.op("AddV2", {x, y}); }
Value Minus(Builder& b, const Value& x, const Value& y) { return b.op("Sub", {x, y}); }

// ---- RoiAlign ----

// The samples of all regions along one axis: `bins` of the output, each with `samples` points. All are [regions, bins * samples].
struct Samples {
  Value low, high;                // indices of the pixels on both sides
  Value low_weight, high_weight;  // 0 for points outside of the image
  Value counts;                   // [regions, bins * samples]: 1, or 0 for points beyond the region's own number of samples
  Value number;                   // [regions]: the region's own number of samples per bin
};

// begin, length: of each region [regions]. ratio: points per bin, 0: as many as pixels.
Samples SamplesOf(Builder& b, const Value& begin, const Value& length, const Value& size, int64_t bins, int64_t ratio, Value* most) {
  const auto like = [&](double v) { return b.like(begin, v); };
  const auto column = [&](const Value& v) { return b.unsqueeze(v, {1, 2}); };
  const Value bin = b.op("RealDiv", {length, like(static_cast<double>(bins))});
  Samples s;
  s.number = ratio > 0 ? b.broadcast(like(static_cast<double>(ratio)), b.shape(bin)) : b.op("Maximum", {b.op("Ceil", {bin}), like(1)});
  *most = ratio > 0 ? Known(b, ratio)
                    : b.cast(b.op("Max", {b.concat({s.number, b.reshape(like(1), Dims{1})}, 0), b.scalar(TW_INT32, 0)}), TW_INT64);
  const Value which = b.unsqueeze(b.cast(Count(b, Known(b, bins)), begin.dtype()), {1});
  const Value point = b.cast(Count(b, *most), begin.dtype());
  const Value within = b.op("RealDiv", {Plus(b, point, like(0.5)), column(s.number)});
  Value at = Plus(b, column(begin), Mul(b, Plus(b, which, within), column(bin)));  // [regions, bins, samples]
  const Value flat = Join(b, {Known(b, -1), Mul(b, Known(b, bins), *most)});
  s.counts = b.reshape(b.broadcast(b.cast(b.op("Less", {point, column(s.number)}), begin.dtype()), b.shape(at)), flat);
  at = b.reshape(at, flat);
  const Value pixels = b.cast(size, begin.dtype()), last = Minus(b, pixels, like(1));
  const Value inside = b.op("LogicalAnd", {b.op("GreaterEqual", {at, like(-1)}), b.op("LessEqual", {at, pixels})});
  const Value clipped = b.op("Minimum", {b.op("Maximum", {at, like(0)}), last});
  const Value low = b.op("Floor", {clipped}), rest = Minus(b, clipped, low), valid = Mul(b, b.cast(inside, begin.dtype()), s.counts);
  s.low = b.cast(low, TW_INT64);
  s.high = b.cast(b.op("Minimum", {Plus(b, low, like(1)), last}), TW_INT64);
  s.low_weight = Mul(b, Minus(b, like(1), rest), valid);
  s.high_weight = Mul(b, rest, valid);
  return s;
}

// One of the four pixels around each point, times its weight: [regions, rows, columns, channels].
Value Corner(Builder& b, const Value& image, const Value& batch, const Value& row, const Value& row_weight, const Value& column,
             const Value& column_weight) {
  const Value y = b.unsqueeze(row, {2}), x = b.unsqueeze(column, {1});
  const Value shape = b.op("BroadcastArgs", {b.shape(y), b.shape(x)});
  const Value places =
      b.op("Pack", {b.broadcast(b.unsqueeze(batch, {1, 2}), shape), b.broadcast(y, shape), b.broadcast(x, shape)}, {{"axis", 3}});
  const Value weight = Mul(b, b.unsqueeze(row_weight, {2}), b.unsqueeze(column_weight, {1}));
  return Mul(b, b.op("GatherNd", {image, places}), b.cast(b.unsqueeze(weight, {3}), image.dtype()));
}

void RoiAlign(Builder& b, Node& n) {
  const Value &x = n.in(0), &rois = n.in(1), batch = b.cast(n.in(2), TW_INT64);
  const int64_t height = n.i("output_height", 1), width = n.i("output_width", 1), ratio = n.i("sampling_ratio", 0);
  const std::string mode = n.s("mode", "avg"),
                    where = n.s("coordinate_transformation_mode", n.opset < 16 ? "output_half_pixel" : "half_pixel");
  if (mode != "avg" && mode != "max") n.fail("'mode' is '" + mode + "'; it must be avg or max");
  const bool half = where == "half_pixel";
  if (RankOf(n, x, "X") != 4) n.fail("'X' must have rank 4 but has rank " + std::to_string(x.rank()));
  const std::vector<Value> sides = b.ops("Unpack", {rois}, {{"axis", 1}, {"num", 4}}, 4);
  const auto edge = [&](size_t i) {
    const Value scaled = Mul(b, sides[i], b.like(rois, n.f("spatial_scale", 1)));
    return half ? Minus(b, scaled, b.like(rois, 0.5)) : scaled;
  };
  const auto length = [&](const Value& from, const Value& to) {
    const Value l = Minus(b, to, from);
    return half ? l : b.op("Maximum", {l, b.like(l, 1)});
  };
  const Value x1 = edge(0), y1 = edge(1), x2 = edge(2), y2 = edge(3);
  Value rows, columns;  // points per bin
  const Samples v = SamplesOf(b, y1, length(y1, y2), b.size(x, 2), height, ratio, &rows);
  const Samples h = SamplesOf(b, x1, length(x1, x2), b.size(x, 3), width, ratio, &columns);
  const Value image = b.transpose(x, {0, 2, 3, 1});
  const auto corner = [&](bool low_row, bool low_column) {
    return Corner(b, image, batch, low_row ? v.low : v.high, low_row ? v.low_weight : v.high_weight, low_column ? h.low : h.high,
                  low_column ? h.low_weight : h.high_weight);
  };
  const char* join = mode == "avg" ? "AddV2" : "Maximum";
  Value points =
      b.op(join, {b.op(join, {corner(true, true), corner(true, false)}), b.op(join, {corner(false, true), corner(false, false)})});
  const Value split = Join(b, {Known(b, -1), Known(b, height), rows, Known(b, width), columns, b.size(x, 1)});
  if (mode == "avg") {
    const Value sum = b.op("Sum", {b.reshape(points, split), b.ints({2, 4}, TW_INT32)});
    const Value number = b.cast(b.unsqueeze(Mul(b, v.number, h.number), {1, 2, 3}), x.dtype());
    return n.out(b.transpose(b.op("RealDiv", {sum, number}), {0, 3, 1, 2}));
  }
  const Value counted = Mul(b, b.unsqueeze(v.counts, {2}), b.unsqueeze(h.counts, {1}));
  const Value none = b.like(x, -std::numeric_limits<double>::infinity());
  points = b.op("SelectV2", {b.op("Greater", {b.unsqueeze(counted, {3}), b.like(counted, 0)}), points, none});
  n.out(b.transpose(b.op("Max", {b.reshape(points, split), b.ints({2, 4}, TW_INT32)}), {0, 3, 1, 2}));
}

// ---- NonMaxSuppression ----

// Boxes of a centre and sizes (x, y, width, height) as boxes of corners (y1, x1, y2, x2).
Value Corners(Builder& b, const Value& boxes) {
  const std::vector<Value> c = b.ops("Unpack", {boxes}, {{"axis", -1}, {"num", 4}}, 4);
  const Value half = b.like(boxes, 0.5), wide = Mul(b, c[2], half), high = Mul(b, c[3], half);
  return b.op("Pack", {Minus(b, c[1], high), Minus(b, c[0], wide), Plus(b, c[1], high), Plus(b, c[0], wide)}, {{"axis", -1}});
}

// Rows of batch, class and box, for each class of each batch those that our op selects.
void NonMaxSuppression(Builder& b, Node& n) {
  const Value boxes = n.i("center_point_box", 0) ? Corners(b, n.in(0)) : n.in(0), scores = n.in(1);
  const Value most = n.has(2) ? ScalarOf(b, n.in(2), TW_INT32) : b.scalar(TW_INT32, 0);
  const Value overlap = n.has(3) ? ScalarOf(b, n.in(3)) : b.scalar(TW_FLOAT, 0);
  const Value least = n.has(4) ? ScalarOf(b, n.in(4)) : b.scalar(TW_FLOAT, -std::numeric_limits<double>::infinity());
  const Value classes = b.size(scores, 1), all = Mul(b, b.size(scores, 0), classes);
  const Value none = b.op("Fill", {b.ints({0, 3}), Known(b, 0)});
  const std::vector<Value> found =
      Repeat(b, Known(b, 0), all, {none}, [&](Builder& body, const Value& number, const std::vector<Value>& states) {
        const Value i = body.cast(number, TW_INT64), start = body.scalar(TW_INT32, 0);
        const Value batch = body.op("FloorDiv", {i, classes}), kind = body.op("FloorMod", {i, classes});
        const Value own_boxes = body.op("GatherV2", {boxes, batch, start});
        const Value own_scores = body.op("GatherV2", {body.op("GatherV2", {scores, batch, start}), kind, start});
        const Value chosen = body.cast(body.op("NonMaxSuppressionV3", {own_boxes, own_scores, most, overlap, least}), TW_INT64);
        const Value ones = body.op("OnesLike", {chosen});
        const Value rows = body.op("Pack", {Mul(body, ones, batch), Mul(body, ones, kind), chosen}, {{"axis", 1}});
        return std::vector<Value>{body.concat({states[0], rows}, 0)};
      });
  n.out(found[0]);
}

void Det(Builder& b, Node& n) { n.out(b.op("MatrixDeterminant", {n.in(0)})); }

constexpr Entry kDetection[] = {
    {"Det", 11, kLatest, &Det},
    {"NonMaxSuppression", 10, kLatest, &NonMaxSuppression},
    {"RoiAlign", 10, kLatest, &RoiAlign},
};

}  // namespace

Family DetectionTranslators() { return {std::begin(kDetection), std::end(kDetection)}; }

}  // namespace thalweg::onnx
