// Windows, Fourier transforms and the mel scale.
#include <iterator>
#include <numbers>

#include "../model.h"
#include "common.h"

namespace thalweg::onnx {
namespace {

constexpr double kPi = std::numbers::pi;

Value Mul(Builder& b, const Value& x, const Value& y) { return b.op("Mul", {x, y}); }
Value Plus(Builder& b, const Value& x, const Value& y) { return b.op("AddV2", {x, y}); }
Value Minus(Builder& b, const Value& x, const Value& y) { return b.op("Sub", {x, y}); }

uint32_t OutputType(const Node& n) { return DtypeOf(static_cast<int32_t>(n.i("output_datatype", 1))); }

// ---- Windows: sums of cosines of whole periods ----

struct Window {
  double constant, once, twice;  // w[i] = constant + once * cos(2 pi i / n) + twice * cos(4 pi i / n)
};

void Cosines(Builder& b, Node& n, const Window& w) {
  const Value size = ScalarOf(b, n.in(0), TW_INT64);
  const Value period = n.i("periodic", 1) ? size : Minus(b, size, Known(b, 1));
  const Value turn = b.op("RealDiv", {b.cast(Count(b, size), TW_DOUBLE), b.cast(period, TW_DOUBLE)});
  const auto wave = [&](double turns, double factor) {
    return Mul(b, b.op("Cos", {Mul(b, turn, b.scalar(TW_DOUBLE, 2 * kPi * turns))}), b.scalar(TW_DOUBLE, factor));
  };
  Value sum = Plus(b, wave(1, w.once), b.scalar(TW_DOUBLE, w.constant));
  if (w.twice != 0) sum = Plus(b, sum, wave(2, w.twice));
  n.out(b.cast(sum, OutputType(n)));
}

void HannWindow(Builder& b, Node& n) { Cosines(b, n, {0.5, -0.5, 0}); }
void HammingWindow(Builder& b, Node& n) { Cosines(b, n, {25.0 / 46, -21.0 / 46, 0}); }
void BlackmanWindow(Builder& b, Node& n) { Cosines(b, n, {0.42, -0.5, 0.08}); }

// ---- Fourier transforms ----

struct Complex {
  Value re, im;  // im absent: 0
};

// Splits the last axis, which has the real part and perhaps the imaginary part.
Complex Parts(Builder& b, const Node& n, const Value& x) {
  if (x.dim(-1) != 1 && x.dim(-1) != 2) n.unsupported("the last size of the signal must be known, and be 1 (real) or 2 (complex)");
  if (x.dim(-1) == 1) return {b.squeeze(x, {-1}), Value()};
  const std::vector<Value> parts = b.ops("Unpack", {x}, {{"axis", -1}, {"num", 2}}, 2);
  return {parts[0], parts[1]};
}

// Cuts the last axis to `length`, or extends it by zeros.
Value Resized(Builder& b, const Value& x, const Value& length) {
  const int last = x.rank() - 1;
  const Value size = b.size(x, -1);
  if (size.constant() && length.constant() && size.constant()->integer(0) == length.constant()->integer(0)) return x;
  const auto row = [&](const Value& v) {
    std::vector<Value> all(static_cast<size_t>(last), Known(b, 0));
    all.push_back(v);
    return Join(b, all);
  };
  const Value missing = b.op("Maximum", {Minus(b, length, size), Known(b, 0)});
  const Value longer = b.op("Pad", {x, b.op("Pack", {row(Known(b, 0)), row(missing)}, {{"axis", 1}})});
  std::vector<Value> sizes(static_cast<size_t>(last), Known(b, -1));
  sizes.push_back(length);
  return b.op("Slice", {longer, b.ints(std::vector<int64_t>(static_cast<size_t>(last) + 1, 0)), Join(b, sizes)});
}

// Multiplies the last axis, of `length` elements, by the matrix of the transform: `bins` columns. The angle of element i and bin k is
// 2 pi (i k mod length) / length, so that large products lose no accuracy.
Complex Transformed(Builder& b, const Complex& x, const Value& length, const Value& bins, bool inverse) {
  const uint32_t type = x.re.dtype();
  const Value product = b.op("FloorMod", {Mul(b, b.unsqueeze(Count(b, length), {1}), Count(b, bins)), length});
  const Value turn = b.op("RealDiv", {b.cast(product, TW_DOUBLE), b.cast(length, TW_DOUBLE)});
  const Value angle = Mul(b, turn, b.scalar(TW_DOUBLE, inverse ? -2 * kPi : 2 * kPi));
  const Value scale = inverse ? b.op("Reciprocal", {b.cast(length, TW_DOUBLE)}) : b.scalar(TW_DOUBLE, 1);
  const auto matrix = [&](const char* wave) { return b.cast(Mul(b, b.op(wave, {angle}), scale), type); };
  const Value cosine = matrix("Cos"), sine = matrix("Sin");
  const Value rows = b.slice0(b.shape(x.re), 0, x.re.rank() - 1);
  const Value two = b.concat({b.ints({-1}), b.unsqueeze(length, {0})}, 0), back = b.concat({rows, b.unsqueeze(bins, {0})}, 0);
  const auto times = [&](const Value& v, const Value& m) { return b.reshape(b.op("MatMul", {b.reshape(v, two), m}), back); };
  const Value re = times(x.re, cosine), im = b.op("Neg", {times(x.re, sine)});
  if (!x.im) return {re, im};
  return {Plus(b, re, times(x.im, sine)), Plus(b, im, times(x.im, cosine))};
}

Value HalfBins(Builder& b, const Value& length) { return Plus(b, b.op("FloorDiv", {length, Known(b, 2)}), Known(b, 1)); }

void DFT(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int rank = RankOf(n, x, "input");
  int64_t given = n.opset < 20 ? n.i("axis", 1) : -2;
  if (n.opset >= 20 && n.has(2)) given = n.const_ints(2, "'axis'")[0];
  const int axis = AxisOf(n, given, rank);
  if (axis == rank - 1) n.fail("the last axis holds the real and imaginary parts; 'axis' must be another one");
  const bool inverse = n.i("inverse", 0) != 0, half = n.i("onesided", 0) != 0;
  if (inverse && half) n.unsupported("'inverse' together with 'onesided'");
  Complex parts = Parts(b, n, x);
  const Value length = n.has(1) ? ScalarOf(b, n.in(1), TW_INT64) : b.size(x, axis);
  const auto last = [&](const Value& v) { return v ? Resized(b, MoveAxis(b, v, rank - 1, axis, rank - 2), length) : v; };
  parts = Transformed(b, {last(parts.re), last(parts.im)}, length, half ? HalfBins(b, length) : length, inverse);
  const Value joined = b.op("Pack", {parts.re, parts.im}, {{"axis", -1}});
  n.out(MoveAxis(b, joined, rank, rank - 2, axis));
}

// Frames of the signal [batch, length, 1 or 2], each multiplied by the window and transformed.
void STFT(Builder& b, Node& n) {
  const Value &x = n.in(0), step = ScalarOf(b, n.in(1), TW_INT64);
  if (!n.has(2) && !n.has(3)) n.fail("'window' or 'frame_length' must be given");
  const Value length = n.has(3) ? ScalarOf(b, n.in(3), TW_INT64) : b.size(n.in(2), 0);
  const Complex signal = Parts(b, n, x);
  const Value frames = Plus(b, b.op("FloorDiv", {Minus(b, b.size(x, 1), length), step}), Known(b, 1));
  const Value places = Plus(b, b.unsqueeze(Mul(b, Count(b, frames), step), {1}), Count(b, length));
  const auto framed = [&](const Value& v) {
    if (!v) return v;
    const Value found = b.op("GatherV2", {v, places, b.scalar(TW_INT32, 1)});
    return n.has(2) ? Mul(b, found, n.in(2)) : found;
  };
  const Value bins = n.i("onesided", 1) ? HalfBins(b, length) : length;
  const Complex out = Transformed(b, {framed(signal.re), framed(signal.im)}, length, bins, false);
  n.out(b.op("Pack", {out.re, out.im}, {{"axis", -1}}));
}

// ---- The mel scale ----

// [bins of a spectrum, mel bins]: triangles that rise from one edge to the next and fall to the one after it. Edges are equally far from
// each other on the mel scale, and are rounded down to bins.
void MelWeightMatrix(Builder& b, Node& n) {
  const uint32_t type = OutputType(n);
  const auto number = [&](double v) { return b.scalar(TW_DOUBLE, v); };
  const auto real = [&](size_t i) { return ScalarOf(b, n.in(i), TW_DOUBLE); };
  const Value count = ScalarOf(b, n.in(0), TW_INT64), length = ScalarOf(b, n.in(1), TW_INT64);
  const auto mel = [&](const Value& hertz) {
    const Value ratio = b.op("Log1p", {b.op("RealDiv", {hertz, number(700)})});
    return Mul(b, ratio, number(2595 / std::numbers::ln10));
  };
  const Value low = mel(real(3)), high = mel(real(4)), edges = Plus(b, count, Known(b, 2));
  const Value step = b.op("RealDiv", {Minus(b, high, low), b.cast(edges, TW_DOUBLE)});
  const Value mels = Plus(b, Mul(b, b.cast(Count(b, edges), TW_DOUBLE), step), low);
  const Value hertz = Mul(b, b.op("Expm1", {Mul(b, mels, number(std::numbers::ln10 / 2595))}), number(700));
  const Value bin = b.op("Floor", {b.op("RealDiv", {Mul(b, b.cast(Plus(b, length, Known(b, 1)), TW_DOUBLE), hertz), real(2)})});
  const auto edge = [&](int64_t first) { return b.op("Slice", {bin, b.ints({first}), b.unsqueeze(count, {0})}); };
  const Value from = edge(0), top = edge(1), to = edge(2);
  const Value at = b.unsqueeze(b.cast(Count(b, HalfBins(b, length)), TW_DOUBLE), {1});
  const auto both = [&](const Value& p, const Value& q) { return b.op("LogicalAnd", {p, q}); };
  const Value rise = b.op("RealDiv", {Minus(b, at, from), Minus(b, top, from)}),
              fall = b.op("RealDiv", {Minus(b, to, at), Minus(b, to, top)});
  const Value rises = both(b.op("GreaterEqual", {at, from}), b.op("Less", {at, top}));
  const Value falls = both(b.op("Greater", {at, top}), b.op("Less", {at, to}));
  const Value sides = b.op("SelectV2", {rises, rise, b.op("SelectV2", {falls, fall, number(0)})});
  n.out(b.cast(b.op("SelectV2", {b.op("Equal", {at, top}), number(1), sides}), type));
}

constexpr Entry kEntries[] = {
    {"BlackmanWindow", 17, kLatest, &BlackmanWindow},   {"DFT", 17, kLatest, &DFT},
    {"HammingWindow", 17, kLatest, &HammingWindow},     {"HannWindow", 17, kLatest, &HannWindow},
    {"MelWeightMatrix", 17, kLatest, &MelWeightMatrix}, {"STFT", 17, kLatest, &STFT},
};

}  // namespace

Family SignalTranslators() { return {std::begin(kEntries), std::end(kEntries)}; }

}  // namespace thalweg::onnx
