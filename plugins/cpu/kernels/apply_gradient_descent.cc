// ResourceApplyGradientDescent.
#include "kernels/apply.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
class GradientDescent : Apply<T> {
 public:
  explicit GradientDescent(const tw::Node& n) : Apply<T>(n, &UpdateLoops<Wide<T>>::gradient_descent) {}

  void operator()(tw::Frame f, tw::Var<T> var, tw::In<T> alpha, tw::In<T> delta) const {
    this->Dense(f, {{"var", var}}, delta, {Factor(alpha, "alpha")}, "delta");
  }
};

template <class T>
void Register(tw::Plugin& p) {
  p.kernel<GradientDescent<T>>("ResourceApplyGradientDescent @CPU; update var");
}

}  // namespace

void register_apply_gradient_descent(tw::Plugin& p) {
  ForAllNumbers([&]<class T>() { Register<T>(p); });
}

}  // namespace thalweg::cpu
