// Igamma, Igammac, IgammaGradA and Betainc: the incomplete gamma and beta functions, computed in
// incomplete_functions.h for every type.
#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/incomplete_functions.h"
#include "kernels/register.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

constexpr uint32_t kIncompleteCost = 4000;

template <double (*kFunction)(double, double), class... T>
void AddIncomplete(tw::Plugin& p, const std::string& op) {
  static constexpr auto kCast = [](auto a, auto x) { return decltype(a)(kFunction(double(a), double(x))); };
  const auto add = [&](const std::string& type, const BinaryKernel& k) {
    AddKernel<RunBinary>(p, op + "(" + type + ", " + type + " -> " + type + ") @CPU; inplace z=a; inplace z=x", k);
  };
  (add(tw::dtype<T>, kZip<kCast, T, T, kIncompleteCost>), ...);
}

// Each input has the shape of the result, or is a scalar.
template <class T>
void BetaincAll(tw::Frame f, tw::In<T> a, tw::In<T> b, tw::In<T> x, tw::Out<T> z) {
  const int64_t n = int64_t(z.size());
  const tw::In<T>* inputs[] = {&a, &b, &x};
  int64_t step[3];
  for (int i = 0; i < 3; ++i) {
    const auto& in = *inputs[i];
    if (in.rank() > 0 && !SameDims(in.v, z.v()))
      Invalid("a " + DimsText(a.v) + ", b " + DimsText(b.v) + " and x " + DimsText(x.v) + " must have the same shape, or be scalars");
    step[i] = in.rank() > 0 ? 1 : 0;
  }
  ParallelFor(f.f, n, kIncompleteCost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      z.data()[i] = T(Betainc(double(a.data()[i * step[0]]), double(b.data()[i * step[1]]), double(x.data()[i * step[2]])));
  });
}

}  // namespace

void register_incomplete(tw::Plugin& p) {
  AddIncomplete<Igamma, float, double, half, bfloat16>(p, "Igamma");
  AddIncomplete<Igammac, float, double, half, bfloat16>(p, "Igammac");
  AddIncomplete<IgammaGradA, float, double>(p, "IgammaGradA");
  p.kernel<BetaincAll<float>, BetaincAll<double>>("Betainc @CPU");
}

}  // namespace thalweg::cpu
