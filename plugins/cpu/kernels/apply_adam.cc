// ResourceApplyAdam, ResourceApplyAdamWithAmsgrad and ResourceApplyAdaMax.
#include <cmath>

#include "kernels/apply.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Returns the learning rate, corrected for the bias of the averages, which both start at 0.
template <class T>
Wide<T> Rate(const tw::In<T>& lr, const tw::In<T>& beta1_power, const tw::In<T>& beta2_power) {
  return Factor(lr, "lr") * std::sqrt(Wide<T>(1) - Factor(beta2_power, "beta2_power")) / (Wide<T>(1) - Factor(beta1_power, "beta1_power"));
}

template <class T>
class Adam : Apply<T> {
 public:
  explicit Adam(const tw::Node& n)
      : Apply<T>(n, n.b("use_nesterov") ? &UpdateLoops<Wide<T>>::adam_nesterov : &UpdateLoops<Wide<T>>::adam) {}

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> m, tw::Var<T> v, tw::In<T> beta1_power, tw::In<T> beta2_power, tw::In<T> lr,
                  tw::In<T> beta1, tw::In<T> beta2, tw::In<T> epsilon, tw::In<T> grad) const {
    this->Dense(f, {{"var", var}, {"m", m}, {"v", v}}, grad,
                {Rate(lr, beta1_power, beta2_power), Factor(beta1, "beta1"), Factor(beta2, "beta2"), Factor(epsilon, "epsilon")});
  }
};

template <class T>
class Amsgrad : Apply<T> {
 public:
  explicit Amsgrad(const tw::Node& n) : Apply<T>(n, &UpdateLoops<Wide<T>>::amsgrad) {}

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> m, tw::Var<T> v, tw::Var<T> vhat, tw::In<T> beta1_power, tw::In<T> beta2_power,
                  tw::In<T> lr, tw::In<T> beta1, tw::In<T> beta2, tw::In<T> epsilon, tw::In<T> grad) const {
    this->Dense(f, {{"var", var}, {"m", m}, {"v", v}, {"vhat", vhat}}, grad,
                {Rate(lr, beta1_power, beta2_power), Factor(beta1, "beta1"), Factor(beta2, "beta2"), Factor(epsilon, "epsilon")});
  }
};

template <class T>
class AdaMax : Apply<T> {
 public:
  explicit AdaMax(const tw::Node& n) : Apply<T>(n, &UpdateLoops<Wide<T>>::ada_max) {}

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> m, tw::Var<T> v, tw::In<T> beta1_power, tw::In<T> lr, tw::In<T> beta1,
                  tw::In<T> beta2, tw::In<T> epsilon, tw::In<T> grad) const {
    const Wide<T> alpha = Factor(lr, "lr") / (1 - Factor(beta1_power, "beta1_power"));
    this->Dense(f, {{"var", var}, {"m", m}, {"v", v}}, grad,
                {alpha, Factor(beta1, "beta1"), Factor(beta2, "beta2"), Factor(epsilon, "epsilon")});
  }
};

constexpr const char* kAdam = "ResourceApplyAdam @CPU; update var m v";

template <class T>
void Register(tw::Plugin& p) {
  p.kernel<Adam<T>>(kAdam);
  p.kernel<Amsgrad<T>>("ResourceApplyAdamWithAmsgrad @CPU; update var m v vhat");
  p.kernel<AdaMax<T>>("ResourceApplyAdaMax @CPU; update var m v");
}

}  // namespace

void register_apply_adam(tw::Plugin& p) {
  Register<float>(p);
  Register<double>(p);
  Register<half>(p);
  Register<bfloat16>(p);
  p.kernel<Adam<complex64>, Adam<complex128>>(kAdam);
}

}  // namespace thalweg::cpu
