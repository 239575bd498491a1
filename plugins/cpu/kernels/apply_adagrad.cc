// ResourceApplyAdagrad, ResourceApplyAdagradV2 and their sparse forms.
#include "kernels/apply.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
class Adagrad : protected Apply<T> {
 public:
  explicit Adagrad(const tw::Node& n)
      : Apply<T>(n, n.b("update_slots") ? &UpdateLoops<Wide<T>>::adagrad : &UpdateLoops<Wide<T>>::adagrad_kept) {}

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::In<T> lr, tw::In<T> grad) const {
    this->Dense(f, {{"var", var}, {"accum", accum}}, grad, {Factor(lr, "lr"), Wide<T>(0)});
  }
};

template <class T>
class AdagradV2 : Adagrad<T> {
 public:
  using Adagrad<T>::Adagrad;

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::In<T> lr, tw::In<T> epsilon, tw::In<T> grad) const {
    this->Dense(f, {{"var", var}, {"accum", accum}}, grad, {Factor(lr, "lr"), Factor(epsilon, "epsilon")});
  }
};

template <class T, class I>
class SparseAdagrad : Adagrad<T> {
 public:
  using Adagrad<T>::Adagrad;

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::In<T> lr, tw::In<T> grad, tw::In<I> indices) const {
    this->Sparse(f, {{"var", var}, {"accum", accum}}, grad, indices, {Factor(lr, "lr"), Wide<T>(0)});
  }
};

template <class T, class I>
class SparseAdagradV2 : Adagrad<T> {
 public:
  using Adagrad<T>::Adagrad;

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::In<T> lr, tw::In<T> epsilon, tw::In<T> grad, tw::In<I> indices) const {
    this->Sparse(f, {{"var", var}, {"accum", accum}}, grad, indices, {Factor(lr, "lr"), Factor(epsilon, "epsilon")});
  }
};

template <class T>
void Register(tw::Plugin& p) {
  p.kernel<Adagrad<T>>("ResourceApplyAdagrad @CPU; update var accum");
  p.kernel<AdagradV2<T>>("ResourceApplyAdagradV2 @CPU; update var accum");
  p.kernel<SparseAdagrad<T, int32_t>, SparseAdagrad<T, int64_t>>("ResourceSparseApplyAdagrad @CPU; update var accum");
  p.kernel<SparseAdagradV2<T, int32_t>, SparseAdagradV2<T, int64_t>>("ResourceSparseApplyAdagradV2 @CPU; update var accum");
}

}  // namespace

void register_apply_adagrad(tw::Plugin& p) {
  ForAllNumbers([&]<class T>() { Register<T>(p); });
}

}  // namespace thalweg::cpu
