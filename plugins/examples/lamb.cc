// A plugin's own optimizer in C++: LAMB (You et al., 2019). Needs only the public headers:
//
//     c++ -std=c++17 -shared -fPIC -I<prefix>/include -Wl,--version-script=<prefix>/include/thalweg/plugin.map lamb.cc -o liblamb.so
//
// One step, t counting from 1:
//     m += (1 - beta1) (grad - m);  v += (1 - beta2) (grad^2 - v)
//     r = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay var
//     var -= lr |var| / |r| r       with |var| / |r| = 1 where either is 0
#include <cmath>

#include "thalweg/cpp/plugin.hpp"

namespace {

template <class T>
void WantLike(const tw::Var<T>& v, const char* name, const tw::In<T>& grad) {
  bool same = v.rank() == grad.rank();
  for (int32_t i = 0; same && i < v.rank(); ++i) same = v.dim(i) == grad.dim(i);
  if (same) return;
  throw tw::Error{TW_INVALID_ARGUMENT, std::string(name) + " has shape " + tw::text(v.dims(), v.rank()) + ", grad " +
                                           tw::text(grad.dims(), grad.rank()) + "; they must be equal"};
}

template <class T>
struct Lamb {
  double beta1, beta2, epsilon, decay;
  explicit Lamb(const tw::Node& n) : beta1(n.f("beta1")), beta2(n.f("beta2")), epsilon(n.f("epsilon")), decay(n.f("weight_decay")) {}

  double Direction(double m, double v, double x, double t) const {
    return m / (1 - std::pow(beta1, t)) / (std::sqrt(v / (1 - std::pow(beta2, t))) + epsilon) + decay * x;
  }
  void operator()(tw::Var<T> var, tw::Var<T> m, tw::Var<T> v, tw::Var<int64_t> step, tw::In<T> lr, tw::In<T> grad) const {
    WantLike(var, "var", grad), WantLike(m, "m", grad), WantLike(v, "v", grad);
    if (step.size() != 1) throw tw::Error{TW_INVALID_ARGUMENT, "step must be a scalar but is " + tw::text(step.dims(), step.rank())};
    const double t = double(++step[0]);
    double of_var = 0, of_r = 0;
    for (uint64_t i = 0; i < grad.size(); ++i) {
      m[i] += T((1 - beta1) * (grad[i] - m[i]));
      v[i] += T((1 - beta2) * (grad[i] * grad[i] - v[i]));
      const double r = Direction(m[i], v[i], var[i], t);
      of_var += double(var[i]) * var[i], of_r += r * r;
    }
    const double trust = of_var > 0 && of_r > 0 ? std::sqrt(of_var / of_r) : 1;
    for (uint64_t i = 0; i < grad.size(); ++i) var[i] -= T(lr[0] * trust * Direction(m[i], v[i], var[i], t));
  }
};

}  // namespace

TW_CPP_PLUGIN("org.example.lamb", "1.0", p) {
  p.op(R"(Lamb(var: resource, m: resource, v: resource, step: resource, lr: T[], grad: T) -> (); T: {float, double};
          beta1: float = 0.9; beta2: float = 0.999; epsilon: float = 1e-6; weight_decay: float = 0.01; stateful;
          no_gradient "it has no outputs"; doc "one step of LAMB; m and v are the moments' variables, step counts in int64")");
  p.kernel<Lamb<float>, Lamb<double>>("Lamb @CPU; update var m v step");
}
