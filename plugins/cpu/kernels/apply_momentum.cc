// ResourceApplyMomentum, ResourceApplyKerasMomentum and their sparse forms.
#include "kernels/apply.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// kKeras: the accumulator holds the step.
template <class T, bool kKeras>
class Momentum : protected Apply<T> {
  using Loops = UpdateLoops<Wide<T>>;

 public:
  explicit Momentum(const tw::Node& n)
      : Apply<T>(n, n.b("use_nesterov") ? (kKeras ? &Loops::keras_momentum_nesterov : &Loops::momentum_nesterov)
                                        : (kKeras ? &Loops::keras_momentum : &Loops::momentum)) {}

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::In<T> lr, tw::In<T> grad, tw::In<T> momentum) const {
    this->Dense(f, {{"var", var}, {"accum", accum}}, grad, {Factor(lr, "lr"), Factor(momentum, "momentum")});
  }
};

template <class T, class I, bool kKeras>
class SparseMomentum : Momentum<T, kKeras> {
 public:
  using Momentum<T, kKeras>::Momentum;

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::In<T> lr, tw::In<T> grad, tw::In<I> indices,
                  tw::In<T> momentum) const {
    this->Sparse(f, {{"var", var}, {"accum", accum}}, grad, indices, {Factor(lr, "lr"), Factor(momentum, "momentum")});
  }
};

template <class T>
void Register(tw::Plugin& p) {
  p.kernel<Momentum<T, false>>("ResourceApplyMomentum @CPU; update var accum");
  p.kernel<SparseMomentum<T, int32_t, false>, SparseMomentum<T, int64_t, false>>("ResourceSparseApplyMomentum @CPU; update var accum");
  p.kernel<Momentum<T, true>>("ResourceApplyKerasMomentum @CPU; update var accum");
  p.kernel<SparseMomentum<T, int32_t, true>, SparseMomentum<T, int64_t, true>>("ResourceSparseApplyKerasMomentum @CPU; update var accum");
}

}  // namespace

void register_apply_momentum(tw::Plugin& p) {
  ForAllNumbers([&]<class T>() { Register<T>(p); });
}

}  // namespace thalweg::cpu
