// Lgamma, Digamma, Polygamma, Zeta: the logarithm of |gamma(x)|, its derivatives, and the Hurwitz
// zeta function. All are computed in double for every type.
#include <math.h>

#include "kernels/map.h"
#include "kernels/polygamma.h"
#include "kernels/register.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

// Uses lgamma_r, because the C library's lgamma stores the sign in a variable that all threads
// share.
double LogGamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

template <double (*kFunction)(double), uint32_t kCost>
void Add(tw::Plugin& p, const char* op) {
  AddMap<[](auto x) { return decltype(x)(kFunction(double(x))); }, kCost, float, double, half, bfloat16>(p, op);
}
template <double (*kFunction)(double, double), uint32_t kCost>
void AddPairs(tw::Plugin& p, const char* op, const char* inplace) {
  static constexpr auto kCast = [](auto x, auto y) { return decltype(x)(kFunction(double(x), double(y))); };
  AddKernel<RunBinary>(p, std::string(op) + "(float, float -> float) @CPU" + inplace, kZip<kCast, float, float, kCost>);
  AddKernel<RunBinary>(p, std::string(op) + "(double, double -> double) @CPU" + inplace, kZip<kCast, double, double, kCost>);
}

}  // namespace

void register_gamma(tw::Plugin& p) {
  Add<LogGamma, 80>(p, "Lgamma");
  Add<Digamma, 80>(p, "Digamma");
  AddPairs<Polygamma, 600>(p, "Polygamma", "; inplace z=a; inplace z=x");
  AddPairs<Zeta, 600>(p, "Zeta", "; inplace z=x; inplace z=q");
}

}  // namespace thalweg::cpu
