// ResourceApplyRMSProp, ResourceApplyCenteredRMSProp and their sparse forms.
#include "kernels/apply.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
class RmsProp : protected Apply<T> {
 public:
  explicit RmsProp(const tw::Node& n) : Apply<T>(n, &UpdateLoops<Wide<T>>::rmsprop) {}

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> ms, tw::Var<T> mom, tw::In<T> lr, tw::In<T> rho, tw::In<T> momentum,
                  tw::In<T> epsilon, tw::In<T> grad) const {
    this->Dense(f, {{"var", var}, {"ms", ms}, {"mom", mom}}, grad,
                {Factor(lr, "lr"), Factor(rho, "rho"), Factor(momentum, "momentum"), Factor(epsilon, "epsilon")});
  }
};

template <class T, class I>
class SparseRmsProp : RmsProp<T> {
 public:
  using RmsProp<T>::RmsProp;

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> ms, tw::Var<T> mom, tw::In<T> lr, tw::In<T> rho, tw::In<T> momentum,
                  tw::In<T> epsilon, tw::In<T> grad, tw::In<I> indices) const {
    this->Sparse(f, {{"var", var}, {"ms", ms}, {"mom", mom}}, grad, indices,
                 {Factor(lr, "lr"), Factor(rho, "rho"), Factor(momentum, "momentum"), Factor(epsilon, "epsilon")});
  }
};

template <class T>
class CenteredRmsProp : protected Apply<T> {
 public:
  explicit CenteredRmsProp(const tw::Node& n) : Apply<T>(n, &UpdateLoops<Wide<T>>::centered_rmsprop) {}

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> mg, tw::Var<T> ms, tw::Var<T> mom, tw::In<T> lr, tw::In<T> rho,
                  tw::In<T> momentum, tw::In<T> epsilon, tw::In<T> grad) const {
    this->Dense(f, {{"var", var}, {"mg", mg}, {"ms", ms}, {"mom", mom}}, grad,
                {Factor(lr, "lr"), Factor(rho, "rho"), Factor(momentum, "momentum"), Factor(epsilon, "epsilon")});
  }
};

template <class T, class I>
class SparseCenteredRmsProp : CenteredRmsProp<T> {
 public:
  using CenteredRmsProp<T>::CenteredRmsProp;

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> mg, tw::Var<T> ms, tw::Var<T> mom, tw::In<T> lr, tw::In<T> rho,
                  tw::In<T> momentum, tw::In<T> epsilon, tw::In<T> grad, tw::In<I> indices) const {
    this->Sparse(f, {{"var", var}, {"mg", mg}, {"ms", ms}, {"mom", mom}}, grad, indices,
                 {Factor(lr, "lr"), Factor(rho, "rho"), Factor(momentum, "momentum"), Factor(epsilon, "epsilon")});
  }
};

template <class T>
void Register(tw::Plugin& p) {
  p.kernel<RmsProp<T>>("ResourceApplyRMSProp @CPU; update var ms mom");
  p.kernel<SparseRmsProp<T, int32_t>, SparseRmsProp<T, int64_t>>("ResourceSparseApplyRMSProp @CPU; update var ms mom");
  p.kernel<CenteredRmsProp<T>>("ResourceApplyCenteredRMSProp @CPU; update var mg ms mom");
  p.kernel<SparseCenteredRmsProp<T, int32_t>, SparseCenteredRmsProp<T, int64_t>>(
      "ResourceSparseApplyCenteredRMSProp @CPU; update var mg ms mom");
}

}  // namespace

void register_apply_rmsprop(tw::Plugin& p) {
  ForAllNumbers([&]<class T>() { Register<T>(p); });
}

}  // namespace thalweg::cpu
