// Tan, the inverse trigonometric functions, the hyperbolic functions and their inverses. Double and
// complex numbers use the C library, with C's branch cuts; float, half and bfloat16 use loops of
// the instruction set. The result is NaN where none exists.
#include <cmath>

#include "kernels/map.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Adds kFunction for double and complex numbers; float, half and bfloat16 come from the table of
// the instruction set in use.
template <auto kFunction, uint32_t kCost>
void Add(tw::Plugin& p, const char* op, const UnaryKernel UnaryKernels::* member) {
  const Elementwise& t = TW_CPU_FOR_ISA(DetectIsa(p.h), ElementwiseTable);
  AddUnary(p, op, "float", "float", t.unary_float.*member);
  AddUnary(p, op, "half", "half", t.unary_half.*member);
  AddUnary(p, op, "bfloat16", "bfloat16", t.unary_bfloat16.*member);
  AddMap<kFunction, 2 * kCost, double>(p, op);
  AddMap<kFunction, 6 * kCost, complex64, complex128>(p, op);
}

}  // namespace

void register_trigonometry(tw::Plugin& p) {
  Add<[](auto x) { return std::tan(x); }, 40>(p, "Tan", &UnaryKernels::tan);
  Add<[](auto x) { return std::asin(x); }, 25>(p, "Asin", &UnaryKernels::asin);
  Add<[](auto x) { return std::acos(x); }, 25>(p, "Acos", &UnaryKernels::acos);
  Add<[](auto x) { return std::atan(x); }, 25>(p, "Atan", &UnaryKernels::atan);
  Add<[](auto x) { return std::sinh(x); }, 40>(p, "Sinh", &UnaryKernels::sinh);
  Add<[](auto x) { return std::cosh(x); }, 40>(p, "Cosh", &UnaryKernels::cosh);
  Add<[](auto x) { return std::asinh(x); }, 50>(p, "Asinh", &UnaryKernels::asinh);
  Add<[](auto x) { return std::acosh(x); }, 50>(p, "Acosh", &UnaryKernels::acosh);
  Add<[](auto x) { return std::atanh(x); }, 50>(p, "Atanh", &UnaryKernels::atanh);
}

}  // namespace thalweg::cpu
