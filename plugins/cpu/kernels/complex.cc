// Complex numbers from their parts and back: Complex, Real, Imag, Angle, ComplexAbs. If the two
// types differ in precision, the computation uses the longer one.
#include <cmath>

#include "kernels/map.h"
#include "kernels/register.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

constexpr auto kAngle = [](auto z) { return std::atan2(z.imag(), z.real()); };
constexpr auto kAbs = [](auto z) { return std::hypot(z.real(), z.imag()); };

template <auto kFunction, class Z, class R, uint32_t kCost>
void AddPart(tw::Plugin& p, const char* op, const char* in, const char* out) {
  using Long = std::conditional_t<sizeof(Z) < 2 * sizeof(R), std::complex<R>, Z>;
  static constexpr auto kLong = [](Z z) { return kFunction(Long(z)); };
  AddUnary(p, op, tw::dtype<Z>, tw::dtype<R>, kMap<kLong, Z, R, kCost>, in, out);
}
template <auto kFunction, uint32_t kCost>
void AddParts(tw::Plugin& p, const char* op, const char* in = "input", const char* out = "output") {
  AddPart<kFunction, complex64, float, kCost>(p, op, in, out);
  AddPart<kFunction, complex64, double, kCost>(p, op, in, out);
  AddPart<kFunction, complex128, float, kCost>(p, op, in, out);
  AddPart<kFunction, complex128, double, kCost>(p, op, in, out);
}

template <class R, class Z>
void AddComplex(tw::Plugin& p) {
  using Part = typename Z::value_type;
  static constexpr auto kJoin = [](R re, R im) { return Z(Part(re), Part(im)); };
  const std::string part = tw::dtype<R>;
  AddKernel<RunBinary>(p, "Complex(" + part + ", " + part + " -> " + tw::dtype<Z> + ") @CPU", kZip<kJoin, R, Z, 2>);
}

}  // namespace

void register_complex(tw::Plugin& p) {
  AddComplex<float, complex64>(p);
  AddComplex<float, complex128>(p);
  AddComplex<double, complex64>(p);
  AddComplex<double, complex128>(p);
  AddParts<[](auto z) { return z.real(); }, 1>(p, "Real");
  AddParts<[](auto z) { return z.imag(); }, 1>(p, "Imag");
  AddParts<kAngle, 50>(p, "Angle");
  AddParts<kAbs, 20>(p, "ComplexAbs", "x", "y");
}

}  // namespace thalweg::cpu
