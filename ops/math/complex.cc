// Ops that build complex numbers from their parts and take them apart. The gradient of z is d/d re
// + i d/d im, as in TensorFlow.
#include "ops/common/grad.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// The type of the parts of a complex type.
uint32_t PartType(uint32_t complex) { return complex == TW_COMPLEX128 ? TW_DOUBLE : TW_FLOAT; }

// dy in the precision of the input.
tw_edge Dy(const tw::Grad& g) { return CastTo(g, g.dy(), PartType(g.type_in(0))); }

void ComplexGradient(const tw::Grad& g) {
  const uint32_t type = g.type_in(0);
  BroadcastGradient(g, CastTo(g, Part(g, "Real", g.dy()), type), CastTo(g, Part(g, "Imag", g.dy()), type));
}
void RealGradient(const tw::Grad& g) {
  const tw_edge dy = Dy(g);
  g.dx(0, Complex(g, dy, Number(g, 0, dy)));
}
void ImagGradient(const tw::Grad& g) {
  const tw_edge dy = Dy(g);
  g.dx(0, Complex(g, Number(g, 0, dy), dy));
}
// (-im + i re) / |z|^2 = i / conj(z)
void AngleGradient(const tw::Grad& g) {
  const tw_edge dy = Dy(g);
  g.dx(0, g.op("RealDiv", {Complex(g, Number(g, 0, dy), dy), Conj(g, g.x(0))}));
}
// z / |z|, and 0 at 0. Sign would not do, because it has no derivative.
void ComplexAbsGradient(const tw::Grad& g) {
  const tw_edge dy = Dy(g), zero = Number(g, 0, dy), size = CastTo(g, g.y(), PartType(g.type_in(0)));
  const tw_edge spread = g.op("Mul", {Complex(g, dy, zero), g.x(0)});
  g.dx(0, g.op("DivNoNan", {spread, Complex(g, size, zero)}));
}

template <void (*Gradient)(const tw::Grad&)>
void Parts(tw::Plugin& p, const std::string& name, const std::string& in, const std::string& out, const std::string& doc) {
  p.op<Gradient>(name + "(" + in + ": T[*s]) -> (" + out +
                 ": Tout[*s]); T: {complex64, complex128} = complex64; Tout: {float, double} = float; doc \"" + doc + "\"");
}

}  // namespace

void register_complex(tw::Plugin& p) {
  p.op<ComplexGradient, BinaryRule>(
      "Complex(real: T, imag: T) -> (out: Tout); T: {float, double} = float; Tout: {complex64, complex128} = complex64; "
      "doc \"complex numbers of these parts, which broadcast\"");
  Parts<RealGradient>(p, "Real", "input", "output", "the real part");
  Parts<ImagGradient>(p, "Imag", "input", "output", "the imaginary part");
  Parts<AngleGradient>(p, "Angle", "input", "output", "the angle with the positive axis, in [-pi, pi]");
  Parts<ComplexAbsGradient>(p, "ComplexAbs", "x", "y", "the distance from 0");
}

}  // namespace thalweg::ops
