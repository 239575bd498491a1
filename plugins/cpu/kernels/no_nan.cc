// MulNoNan, Xdivy, Xlogy, Xlog1py: products and quotients that are 0 if one argument is 0, even if
// the other is infinite, NaN or 0.
#include <cmath>

#include "kernels/common/complex.h"
#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

template <auto kFunction, uint32_t kCost>
void Add(tw::Plugin& p, const char* op) {
  AddFloatZip<kFunction, kCost>(p, op);
  AddZip<kFunction, 4 * kCost, complex64, complex128>(p, op);
}
// Adds the same ops, with float, half and bfloat16 from the table of the instruction set in use.
template <auto kFunction, uint32_t kCost>
void AddFast(tw::Plugin& p, const char* op, const BinaryKernel BinaryKernels::* member) {
  AddSmallFloats(p, op, TW_CPU_FOR_ISA(DetectIsa(p.h), ElementwiseTable), member);
  AddZip<kFunction, kCost, double>(p, op);
  AddZip<kFunction, 4 * kCost, complex64, complex128>(p, op);
}

constexpr auto kLog1p = [](auto y) {
  if constexpr (kIsComplex<decltype(y)>)
    return Log1p(y);
  else
    return std::log1p(y);
};

}  // namespace

void register_no_nan(tw::Plugin& p) {
  Add<[](auto x, auto y) { return y == decltype(y)(0) ? decltype(x)(0) : x * y; }, 2>(p, "MulNoNan");
  Add<[](auto x, auto y) { return x == decltype(x)(0) ? decltype(x)(0) : x / y; }, 3>(p, "Xdivy");
  AddFast<[](auto x, auto y) { return x == decltype(x)(0) ? decltype(x)(0) : x * std::log(y); }, 40>(p, "Xlogy", &BinaryKernels::xlogy);
  AddFast<[](auto x, auto y) { return x == decltype(x)(0) ? decltype(x)(0) : x * kLog1p(y); }, 60>(p, "Xlog1py", &BinaryKernels::xlog1py);
}

}  // namespace thalweg::cpu
