// Activations.
#include "ops/library/layer.h"

using namespace thalweg::library;

namespace {

class Activation {
 public:
  Activation(tw_scope* scope, tw_output x, uint32_t dtype) : scope_(scope), x_(x), dtype_(dtype) {}

  tw_output Op(const char* type) const { return Op(type, x_); }
  // x (1 + erf(x / sqrt 2)) / 2
  tw_output Gelu() const { return Half(Op("Erf", Times(x_, 0.70710678118654752))); }
  // x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  tw_output GeluTanh() const {
    const tw_output cube = Op("Mul", Op("Mul", x_, x_), x_);
    const tw_output sum = Op("Add", x_, Times(cube, 0.044715));
    return Half(Op("Tanh", Times(sum, 0.79788456080286536)));
  }
  tw_output Silu() const { return Op("Mul", x_, Op("Sigmoid")); }
  tw_output Mish() const { return Op("Mul", x_, Op("Tanh", Op("Softplus"))); }
  // relu6(x + 3) / 6
  tw_output HardSigmoid() const { return Times(Op("Relu6", Op("Add", x_, Number(3))), 1.0 / 6); }
  tw_output HardSwish() const { return Op("Mul", x_, HardSigmoid()); }

 private:
  tw_output Op(const char* type, tw_output a) const { return tw_scope_op1(scope_, type, a); }
  tw_output Op(const char* type, tw_output a, tw_output b) const { return tw_scope_op2(scope_, type, a, b); }
  tw_output Number(double value) const { return tw_scope_scalar(scope_, dtype_, value); }
  tw_output Times(tw_output a, double by) const { return Op("Mul", a, Number(by)); }
  // x (1 + share) / 2
  tw_output Half(tw_output share) const { return Op("Mul", Times(x_, 0.5), Op("Add", share, Number(1))); }

  tw_scope* scope_;
  tw_output x_;
  uint32_t dtype_;
};

}  // namespace

tw_output tw_activation(tw_scope* scope, uint32_t kind, tw_output x) {
  return Protect(scope, [&]() -> tw_output {
    const ValueInfo info = Describe(scope, x);
    if (!Good(scope)) return 0;
    if (!IsReal(info.dtype)) {
      FailIn(scope, "tw_activation", std::string("x is ") + tw_dtype_name(info.dtype) + "; it must be half, bfloat16, float or double");
      return 0;
    }
    const Activation of(scope, x, info.dtype);
    switch (kind) {
      case TW_ACTIVATION_NONE: return x;
      case TW_ACTIVATION_RELU: return of.Op("Relu");
      case TW_ACTIVATION_RELU6: return of.Op("Relu6");
      case TW_ACTIVATION_LEAKY_RELU: return of.Op("LeakyRelu");
      case TW_ACTIVATION_ELU: return of.Op("Elu");
      case TW_ACTIVATION_SELU: return of.Op("Selu");
      case TW_ACTIVATION_GELU: return of.Gelu();
      case TW_ACTIVATION_GELU_TANH: return of.GeluTanh();
      case TW_ACTIVATION_SILU: return of.Silu();
      case TW_ACTIVATION_MISH: return of.Mish();
      case TW_ACTIVATION_SIGMOID: return of.Op("Sigmoid");
      case TW_ACTIVATION_HARD_SIGMOID: return of.HardSigmoid();
      case TW_ACTIVATION_HARD_SWISH: return of.HardSwish();
      case TW_ACTIVATION_TANH: return of.Op("Tanh");
      case TW_ACTIVATION_SOFTPLUS: return of.Op("Softplus");
      case TW_ACTIVATION_SOFTSIGN: return of.Op("Softsign");
      case TW_ACTIVATION_SOFTMAX: return of.Op("Softmax");
      case TW_ACTIVATION_LOG_SOFTMAX: return of.Op("LogSoftmax");
      default: FailIn(scope, "tw_activation", "kind is " + std::to_string(kind) + "; it must be a TW_ACTIVATION_*"); return 0;
    }
  });
}
