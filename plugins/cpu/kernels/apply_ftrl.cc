// ResourceApplyFtrl, ResourceApplyFtrlV2 (which has l2_shrinkage) and their sparse forms.
#include "kernels/apply.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
class Ftrl : protected Apply<T> {
 public:
  explicit Ftrl(const tw::Node& n)
      : Apply<T>(n, n.b("multiply_linear_by_lr") ? &UpdateLoops<Wide<T>>::ftrl_scaled : &UpdateLoops<Wide<T>>::ftrl),
        scaled_(n.b("multiply_linear_by_lr")) {}

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::Var<T> linear, tw::In<T> grad, tw::In<T> lr, tw::In<T> l1,
                  tw::In<T> l2, tw::In<T> lr_power) const {
    this->Dense(f, {{"var", var}, {"accum", accum}, {"linear", linear}}, grad,
                {Rate(lr), NotBelow0(l1, "l1"), NotBelow0(l2, "l2"), Wide<T>(0), Power(lr_power)});
  }

 protected:
  Wide<T> Rate(const tw::In<T>& lr) const {
    const Wide<T> value = Factor(lr, "lr");
    if (!(value > 0 || (scaled_ && value == 0))) Invalid("lr is " + std::to_string(value) + "; it must be above 0");
    return value;
  }
  static Wide<T> NotBelow0(const tw::In<T>& v, const char* name) {
    const Wide<T> value = Factor(v, name);
    if (!(value >= 0)) Invalid(std::string(name) + " is " + std::to_string(value) + "; it must not be below 0");
    return value;
  }
  static Wide<T> Power(const tw::In<T>& lr_power) {
    const Wide<T> value = Factor(lr_power, "lr_power");
    if (!(value <= 0)) Invalid("lr_power is " + std::to_string(value) + "; it must not be above 0");
    return value;
  }

 private:
  bool scaled_;
};

template <class T>
class FtrlV2 : Ftrl<T> {
 public:
  using Ftrl<T>::Ftrl;

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::Var<T> linear, tw::In<T> grad, tw::In<T> lr, tw::In<T> l1,
                  tw::In<T> l2, tw::In<T> l2_shrinkage, tw::In<T> lr_power) const {
    this->Dense(f, {{"var", var}, {"accum", accum}, {"linear", linear}}, grad,
                {this->Rate(lr), this->NotBelow0(l1, "l1"), this->NotBelow0(l2, "l2"), this->NotBelow0(l2_shrinkage, "l2_shrinkage"),
                 this->Power(lr_power)});
  }
};

template <class T, class I>
class SparseFtrl : Ftrl<T> {
 public:
  using Ftrl<T>::Ftrl;

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::Var<T> linear, tw::In<T> grad, tw::In<I> indices, tw::In<T> lr,
                  tw::In<T> l1, tw::In<T> l2, tw::In<T> lr_power) const {
    this->Sparse(f, {{"var", var}, {"accum", accum}, {"linear", linear}}, grad, indices,
                 {this->Rate(lr), this->NotBelow0(l1, "l1"), this->NotBelow0(l2, "l2"), Wide<T>(0), this->Power(lr_power)});
  }
};

template <class T, class I>
class SparseFtrlV2 : Ftrl<T> {
 public:
  using Ftrl<T>::Ftrl;

  void operator()(tw::Frame f, tw::Var<T> var, tw::Var<T> accum, tw::Var<T> linear, tw::In<T> grad, tw::In<I> indices, tw::In<T> lr,
                  tw::In<T> l1, tw::In<T> l2, tw::In<T> l2_shrinkage, tw::In<T> lr_power) const {
    this->Sparse(f, {{"var", var}, {"accum", accum}, {"linear", linear}}, grad, indices,
                 {this->Rate(lr), this->NotBelow0(l1, "l1"), this->NotBelow0(l2, "l2"), this->NotBelow0(l2_shrinkage, "l2_shrinkage"),
                  this->Power(lr_power)});
  }
};

template <class T>
void Register(tw::Plugin& p) {
  p.kernel<Ftrl<T>>("ResourceApplyFtrl @CPU; update var accum linear");
  p.kernel<FtrlV2<T>>("ResourceApplyFtrlV2 @CPU; update var accum linear");
  p.kernel<SparseFtrl<T, int32_t>, SparseFtrl<T, int64_t>>("ResourceSparseApplyFtrl @CPU; update var accum linear");
  p.kernel<SparseFtrlV2<T, int32_t>, SparseFtrlV2<T, int64_t>>("ResourceSparseApplyFtrlV2 @CPU; update var accum linear");
}

}  // namespace

void register_apply_ftrl(tw::Plugin& p) {
  Register<float>(p);
  Register<double>(p);
  Register<half>(p);
  Register<bfloat16>(p);
}

}  // namespace thalweg::cpu
