// ResourceApplyMomentum and its sparse form.
#include "kernels/apply.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
class Momentum : protected Apply<T> {
 public:
  explicit Momentum(const tw::Node& n)
      : Apply<T>(n, n.b("use_nesterov") ? &UpdateLoops<Wide<T>>::momentum_nesterov : &UpdateLoops<Wide<T>>::momentum) {}

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::In<T> lr, tw::In<T> grad, tw::In<T> momentum) const {
    this->Dense(f, {{"var", var}, {"accum", accum}}, grad, {Factor(lr, "lr"), Factor(momentum, "momentum")});
  }
};

template <class T, class I>
class SparseMomentum : Momentum<T> {
 public:
  using Momentum<T>::Momentum;

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::In<T> lr, tw::In<T> grad, tw::In<I> indices,
                  tw::In<T> momentum) const {
    this->Sparse(f, {{"var", var}, {"accum", accum}}, grad, indices, {Factor(lr, "lr"), Factor(momentum, "momentum")});
  }
};

template <class T>
void Register(tw::Plugin& p) {
  p.kernel<Momentum<T>>("ResourceApplyMomentum @CPU; update var accum");
  p.kernel<SparseMomentum<T, int32_t>, SparseMomentum<T, int64_t>>("ResourceSparseApplyMomentum @CPU; update var accum");
}

}  // namespace

void register_apply_momentum(tw::Plugin& p) {
  Register<float>(p);
  Register<double>(p);
  Register<half>(p);
  Register<bfloat16>(p);
}

}  // namespace thalweg::cpu
