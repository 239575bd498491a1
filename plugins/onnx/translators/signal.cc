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

// Cosines and sines [rows, columns] of the angles 2 pi (row column mod length) / length: large products lose no accuracy.
struct Waves {
  Value cosine, sine;
};

Waves WavesOf(Builder& b, const Value& rows, const Value& columns, const Value& length, uint32_t type) {
  const Value product = b.op("FloorMod", {Mul(b, b.unsqueeze(Count(b, rows), {1}), Count(b, columns)), length});
  const Value turn = b.op("RealDiv", {b.cast(product, TW_DOUBLE), b.cast(length, TW_DOUBLE)});
  const Value angle = Mul(b, turn, b.scalar(TW_DOUBLE, 2 * kPi));
  return {b.cast(b.op("Cos", {angle}), type), b.cast(b.op("Sin", {angle}), type)};
}

// Multiplies the last axis by a matrix [rows, columns].
Value Times(Builder& b, const Value& v, const Value& matrix, const Value& rows, const Value& columns) {
  const Value shape = b.concat({b.slice0(b.shape(v), 0, v.rank() - 1), b.unsqueeze(columns, {0})}, 0);
  return b.reshape(b.op("MatMul", {b.reshape(v, b.concat({b.ints({-1}), b.unsqueeze(rows, {0})}, 0)), matrix}), shape);
}

// The transform of the last axis, of `length` elements: `bins` columns.
Complex Transformed(Builder& b, const Complex& x, const Value& length, const Value& bins, bool inverse) {
  const uint32_t type = x.re.dtype();
  const Waves w = WavesOf(b, length, bins, length, type);
  const Value sine = inverse ? w.sine : b.op("Neg", {w.sine}), scale = b.op("Reciprocal", {b.cast(length, type)});
  const auto times = [&](const Value& v, const Value& m) { return Times(b, v, m, length, bins); };
  Value re = times(x.re, w.cosine), im = times(x.re, sine);
  if (x.im) {
    re = Minus(b, re, times(x.im, sine));
    im = Plus(b, im, times(x.im, w.cosine));
  }
  return inverse ? Complex{Mul(b, re, scale), Mul(b, im, scale)} : Complex{re, im};
}

Value HalfBins(Builder& b, const Value& length) { return Plus(b, b.op("FloorDiv", {length, Known(b, 2)}), Known(b, 1)); }

// The real signal of `length` elements whose first bins are the last axis. All bins but the first and the middle one count twice, for the
// bin that mirrors them.
Value RealInverse(Builder& b, const Complex& x, const Value& length) {
  const uint32_t type = x.re.dtype();
  const Value bins = HalfBins(b, length), bin = Count(b, bins);
  const Waves w = WavesOf(b, bins, length, length, type);
  const Value single = b.op("LogicalOr", {b.op("Equal", {bin, Known(b, 0)}), b.op("Equal", {Mul(b, bin, Known(b, 2)), length})});
  const Value once = b.op("Reciprocal", {b.cast(length, type)});
  const Value weight = b.op("SelectV2", {single, once, Plus(b, once, once)});
  const auto times = [&](const Value& v, const Value& m) { return Times(b, Mul(b, Resized(b, v, bins), weight), m, bins, length); };
  const Value re = times(x.re, w.cosine);
  return x.im ? Minus(b, re, times(x.im, w.sine)) : re;
}

// The order of `rank` axes that moves `axis` (an int64 scalar, which counts from the front) behind the others.
Value MovedLast(Builder& b, const Value& axis, int rank) {
  const Value others = Count(b, Known(b, rank - 1));
  const Value skipped = b.op("SelectV2", {b.op("Less", {others, axis}), others, Plus(b, others, Known(b, 1))});
  return b.concat({skipped, b.unsqueeze(axis, {0})}, 0);
}

void DFT(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int rank = RankOf(n, x, "input");
  Value axis = Known(b, n.opset < 20 ? n.i("axis", 1) : -2);
  if (n.opset >= 20 && n.has(2)) axis = ScalarOf(b, n.in(2), TW_INT64);
  if (axis.constant() && AxisOf(n, axis.constant()->integer(0), rank) == rank - 1) {
    n.fail("the last axis holds the real and imaginary parts; 'axis' must be another one");
  }
  axis = b.op("FloorMod", {axis, Known(b, rank)});
  const Value perm = MovedLast(b, axis, rank - 1);
  const auto transposed = [&](const Value& v, const Value& order) {
    return order.constant() ? b.transpose(v, order.constant()->integers()) : b.op("Transpose", {v, order});
  };
  const Complex given = Parts(b, n, x);
  Complex parts{transposed(given.re, perm), given.im ? transposed(given.im, perm) : Value()};
  const bool inverse = n.i("inverse", 0) != 0, half = n.i("onesided", 0) != 0;
  Value length = b.size(parts.re, -1);
  if (inverse && half) length = Mul(b, Minus(b, length, Known(b, 1)), Known(b, 2));
  if (n.has(1)) length = ScalarOf(b, n.in(1), TW_INT64);
  Value order;
  if (perm.constant()) {
    std::vector<int64_t> back(static_cast<size_t>(rank - 1));
    for (int64_t i = 0; i < rank - 1; ++i) back[static_cast<size_t>(perm.constant()->integer(i))] = i;
    order = b.ints(back);
  } else {
    order = b.op("InvertPermutation", {perm});
  }
  if (inverse && half) return n.out(b.unsqueeze(transposed(RealInverse(b, parts, length), order), {-1}));
  parts = {Resized(b, parts.re, length), parts.im ? Resized(b, parts.im, length) : Value()};
  parts = Transformed(b, parts, length, half ? HalfBins(b, length) : length, inverse);
  n.out(b.op("Pack", {transposed(parts.re, order), transposed(parts.im, order)}, {{"axis", -1}}));
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

constexpr Entry kSignal[] = {
    {"BlackmanWindow", 17, kLatest, &BlackmanWindow},   {"DFT", 17, kLatest, &DFT},
    {"HammingWindow", 17, kLatest, &HammingWindow},     {"HannWindow", 17, kLatest, &HannWindow},
    {"MelWeightMatrix", 17, kLatest, &MelWeightMatrix}, {"STFT", 17, kLatest, &STFT},
};

}  // namespace

Family SignalTranslators() { return {std::begin(kSignal), std::end(kSignal)}; }

}  // namespace thalweg::onnx
