// Tan, the inverse trigonometric functions, the hyperbolic ones and their inverses: the C library's, or loops of elementwise_isa.cc where
// these are much faster; NaN where there is no result. half and bfloat16 are computed in float, complex numbers with the branch cuts of C.
#include <cmath>

#include "kernels/map.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// kFunction for every type that these ops take. kCost: of a float.
template <auto kFunction, uint32_t kCost>
void AddLong(tw::Plugin& p, const char* op) {
  AddMap<kFunction, 2 * kCost, double>(p, op);
  AddMap<kFunction, 6 * kCost, complex64, complex128>(p, op);
}
template <auto kFunction, uint32_t kCost>
void Add(tw::Plugin& p, const char* op) {
  AddMap<kFunction, kCost, float, half, bfloat16>(p, op);
  AddLong<kFunction, kCost>(p, op);
}
// The same with float, half and bfloat16 from the table of the instruction set in use.
template <auto kFunction, uint32_t kCost>
void AddFast(tw::Plugin& p, const char* op, const UnaryKernel UnaryKernels::* member) {
  const Elementwise& t = TW_CPU_FOR_ISA(DetectIsa(p.h), ElementwiseTable);
  AddUnary(p, op, "float", "float", t.unary_float.*member);
  AddUnary(p, op, "half", "half", t.unary_half.*member);
  AddUnary(p, op, "bfloat16", "bfloat16", t.unary_bfloat16.*member);
  AddLong<kFunction, kCost>(p, op);
}

}  // namespace

void register_trigonometry(tw::Plugin& p) {
  Add<[](auto x) { return std::tan(x); }, 40>(p, "Tan");
  AddFast<[](auto x) { return std::asin(x); }, 25>(p, "Asin", &UnaryKernels::asin);
  AddFast<[](auto x) { return std::acos(x); }, 25>(p, "Acos", &UnaryKernels::acos);
  AddFast<[](auto x) { return std::atan(x); }, 25>(p, "Atan", &UnaryKernels::atan);
  Add<[](auto x) { return std::sinh(x); }, 40>(p, "Sinh");
  Add<[](auto x) { return std::cosh(x); }, 40>(p, "Cosh");
  Add<[](auto x) { return std::asinh(x); }, 50>(p, "Asinh");
  Add<[](auto x) { return std::acosh(x); }, 50>(p, "Acosh");
  AddFast<[](auto x) { return std::atanh(x); }, 50>(p, "Atanh", &UnaryKernels::atanh);
}

}  // namespace thalweg::cpu
