// Fourier transforms over the last one, two or three axes.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

template <int32_t kRank>
void ComplexRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, kRank, "input");
  Set(s, 0, In(s, 0));
}

// kBackward: to real numbers. The last axis of complex numbers has n / 2 + 1 of n.
template <int32_t kRank, bool kBackward>
void RealRule(const tw::Shape& s) {
  WantRankAtLeast(s, 0, kRank, "input");
  WantVector(s, 1, "fft_length");
  if (s.known(1) && Known(s.dim(1, 0)) && s.dim(1, 0) != kRank)
    Fail("'fft_length' has " + tw::text(s.dim(1, 0)) + " entries; the op transforms " + std::to_string(kRank) + " axes");
  const MaybeDims in = In(s, 0);
  if (!in) return;
  Dims out = *in, lengths;
  const bool known = s.value(1, &lengths);
  for (size_t k = 0; k < size_t(kRank); ++k) {
    const size_t axis = in->size() - kRank + k;
    const bool last = k + 1 == size_t(kRank);
    out[axis] = -1;
    if (!known) continue;
    const int64_t n = lengths[k], half = n > 0 ? n / 2 + 1 : 0, needed = kBackward && last ? half : n;
    if (n < 0) Fail("'fft_length' is " + Text(lengths) + "; no entry may be negative");
    if (Known((*in)[axis]) && (*in)[axis] < needed)
      Fail("'input' is " + Text(in) + "; axis " + std::to_string(axis) + " needs at least " + tw::text(needed) +
           " elements for the 'fft_length' " + Text(lengths) + "; pad it with zeros");
    out[axis] = !kBackward && last ? half : n;
  }
  s.out(0, out);
}

// Returns the product of the last `rank` sizes of input 0, as a number of the type of `like`.
tw_edge Points(const tw::Grad& g, int64_t rank, tw_edge like) {
  const tw_edge count = g.op("Prod", {Tail(g, g.shape(0), -rank), Int(g, 0)});
  return CastTo(g, count, TypeOf(g, like));
}

std::string Name(const char* start, int32_t rank) { return start + (rank == 1 ? std::string() : std::to_string(rank) + "D"); }

template <int32_t kRank>
void ForwardGradient(const tw::Grad& g) {
  const tw_edge dx = g.op(Name("IFFT", kRank), {g.dy()});
  g.dx(0, g.op("Mul", {dx, Points(g, kRank, dx)}));
}

template <int32_t kRank>
void BackwardGradient(const tw::Grad& g) {
  const tw_edge dx = g.op(Name("FFT", kRank), {g.dy()});
  g.dx(0, g.op("RealDiv", {dx, Points(g, kRank, dx)}));
}

// Pads x with zeros to the sizes `shape`, a vector, or cuts it.
tw_edge Fit(const tw::Grad& g, tw_edge x, tw_edge shape) {
  const tw_edge own = ShapeOf(g, x), kept = g.op("Minimum", {own, shape});
  const tw_edge zeros = g.op("ZerosLike", {shape}), missing = g.op("Sub", {shape, kept});
  const tw_edge cut = g.op("Slice", {x, zeros, kept});
  return g.op("Pad", {cut, g.op("Pack", {zeros, missing}, {{"axis", 1}})});
}

uint32_t RealType(uint32_t type) { return type == TW_COMPLEX64 ? TW_FLOAT : TW_DOUBLE; }
uint32_t ComplexType(uint32_t type) { return type == TW_FLOAT ? TW_COMPLEX64 : TW_COMPLEX128; }

// Y[k] is the sum of x[j] exp(-2 pi i j k / n) for k up to n / 2, so dx is the real part of the sum
// of dY[k] exp(2 pi i j k / n): n times the inverse transform of dY with zeros behind it.
template <int32_t kRank>
void FromRealGradient(const tw::Grad& g) {
  const tw_edge lengths = g.x(1), dy = g.dy();
  const tw_edge whole = Concat(g, {Head(g, ShapeOf(g, dy), -kRank), lengths});
  const tw_edge back = g.op(Name("IFFT", kRank), {Fit(g, dy, whole)});
  const tw_edge points = g.op("Prod", {lengths, Int(g, 0)}), real = CastTo(g, Part(g, "Real", back), g.type_in(0));
  g.dx(0, Fit(g, g.op("Mul", {real, CastTo(g, points, g.type_in(0))}), g.shape(0)));
}

// Each number X[k] counts twice, for k and for n - k, except the first and, for even n, the last.
template <int32_t kRank>
void ToRealGradient(const tw::Grad& g) {
  const tw_edge lengths = g.x(1), last = g.op("Reshape", {Tail(g, lengths, -1), Ints(g, {})}), dy = g.dy();
  const uint32_t type = g.type_in(0), real = RealType(type);
  tw_edge dx = g.op(Name("RFFT", kRank), {CastTo(g, dy, real), lengths}, {tw::Attr::Type("Tcomplex", ComplexType(real))});
  const tw_edge k = g.op("Range", {Int(g, 0), g.op("AddV2", {g.op("FloorDiv", {last, Int(g, 2)}), Int(g, 1)}), Int(g, 1)});
  const tw_edge first = CastTo(g, g.op("Equal", {k, Int(g, 0)}), real);
  const tw_edge middle = CastTo(g, g.op("Equal", {g.op("Mul", {k, Int(g, 2)}), last}), real);
  const tw_edge times = g.op("Sub", {g.op("Sub", {g.scalar(2, real), first}), middle});
  const tw_edge points = CastTo(g, g.op("Prod", {lengths, Int(g, 0)}), real);
  dx = g.op("Mul", {dx, CastTo(g, g.op("RealDiv", {times, points}), type)});
  g.dx(0, Fit(g, dx, g.shape(0)));
}

template <int32_t kRank>
void Add(tw::Plugin& p) {
  const std::string axes = kRank == 1 ? "the last axis" : "the last " + std::to_string(kRank) + " axes";
  const std::string complex = "(input: Tcomplex) -> (output: Tcomplex); Tcomplex: {complex64, complex128} = complex64; ?data input; doc \"";
  const std::string types = "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64; ?data input; doc \"";
  p.op<ForwardGradient<kRank>, ComplexRule<kRank>>(Name("FFT", kRank) + complex + "the Fourier transform over " + axes + "\"");
  p.op<BackwardGradient<kRank>, ComplexRule<kRank>>(Name("IFFT", kRank) + complex + "the inverse Fourier transform over " + axes + "\"");
  p.op<FromRealGradient<kRank>, RealRule<kRank, false>>(Name("RFFT", kRank) + "(input: Treal, fft_length: int32) -> (output: Tcomplex); " +
                                                        types + "the Fourier transform of real numbers over " + axes +
                                                        "; the half that the other half follows from\"");
  p.op<ToRealGradient<kRank>, RealRule<kRank, true>>(Name("IRFFT", kRank) + "(input: Tcomplex, fft_length: int32) -> (output: Treal); " +
                                                     types + "the inverse Fourier transform to real numbers over " + axes + "\"");
}

}  // namespace

void register_fft(tw::Plugin& p) {
  Add<1>(p);
  Add<2>(p);
  Add<3>(p);
}

}  // namespace thalweg::ops
