// ResourceApplyAdadelta and its sparse form.
#include "kernels/apply.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
class Adadelta : protected Apply<T> {
 public:
  explicit Adadelta(const tw::Node& n) : Apply<T>(n, &UpdateLoops<Wide<T>>::adadelta) {}

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::Var<T> accum_update, tw::In<T> lr, tw::In<T> rho, tw::In<T> epsilon,
                  tw::In<T> grad) const {
    this->Dense(f, {{"var", var}, {"accum", accum}, {"accum_update", accum_update}}, grad,
                {Factor(lr, "lr"), Factor(rho, "rho"), Factor(epsilon, "epsilon")});
  }
};

template <class T, class I>
class SparseAdadelta : Adadelta<T> {
 public:
  using Adadelta<T>::Adadelta;

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::Var<T> accum_update, tw::In<T> lr, tw::In<T> rho, tw::In<T> epsilon,
                  tw::In<T> grad, tw::In<I> indices) const {
    this->Sparse(f, {{"var", var}, {"accum", accum}, {"accum_update", accum_update}}, grad, indices,
                 {Factor(lr, "lr"), Factor(rho, "rho"), Factor(epsilon, "epsilon")});
  }
};

template <class T>
void Register(tw::Plugin& p) {
  p.kernel<Adadelta<T>>("ResourceApplyAdadelta @CPU; update var accum accum_update");
  p.kernel<SparseAdadelta<T, int32_t>, SparseAdadelta<T, int64_t>>("ResourceSparseApplyAdadelta @CPU; update var accum accum_update");
}

}  // namespace

void register_apply_adadelta(tw::Plugin& p) {
  ForAllNumbers([&]<class T>() { Register<T>(p); });
}

}  // namespace thalweg::cpu
