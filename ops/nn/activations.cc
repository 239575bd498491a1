// LeakyRelu, Elu, Selu, Softplus, Softsign and their backward ops. Each backward op takes the
// incoming gradient first, then the input of the forward op or, for Elu and Selu, its result.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

tw_edge Mul(const tw::Grad& g, tw_edge a, tw_edge b) { return g.op("Mul", {a, b}); }

tw_edge LeakyGrad(const tw::Grad& g, tw_edge features) { return g.op("LeakyReluGrad", {g.dy(), features}, {{"alpha", g.f("alpha")}}); }
void LeakyReluGradient(const tw::Grad& g) { g.dx(0, LeakyGrad(g, g.x(0))); }
// The point where the slope changes does not depend on the features, so they get no gradient.
void LeakyReluGradGradient(const tw::Grad& g) { g.dx(0, LeakyGrad(g, g.x(1))); }

void EluGradient(const tw::Grad& g) { g.dx(0, g.op("EluGrad", {g.dy(), g.y()})); }
void SeluGradient(const tw::Grad& g) { g.dx(0, g.op("SeluGrad", {g.dy(), g.y()})); }
void SoftplusGradient(const tw::Grad& g) { g.dx(0, g.op("SoftplusGrad", {g.dy(), g.x(0)})); }
void SoftsignGradient(const tw::Grad& g) { g.dx(0, g.op("SoftsignGrad", {g.dy(), g.x(0)})); }

// Below 0 the slope is the result plus a constant; above 0 it is a constant.
void FromResultGradient(const tw::Grad& g, const char* op) {
  const tw_edge y = g.x(1), product = Mul(g, g.dy(), g.x(0));
  g.dx(0, g.op(op, {g.dy(), y}));
  g.dx(1, g.op("SelectV2", {g.op("Less", {y, Number(g, 0, y)}), product, Number(g, 0, y)}));
}
void EluGradGradient(const tw::Grad& g) { FromResultGradient(g, "EluGrad"); }
void SeluGradGradient(const tw::Grad& g) { FromResultGradient(g, "SeluGrad"); }

// backprops = gradients * sigmoid(x)
void SoftplusGradGradient(const tw::Grad& g) {
  const tw_edge x = g.x(1);
  g.dx(0, g.op("SoftplusGrad", {g.dy(), x}));
  g.dx(1, g.op("SigmoidGrad", {g.op("Sigmoid", {x}), Mul(g, g.dy(), g.x(0))}));
}

// backprops = gradients / (1 + |x|)^2
void SoftsignGradGradient(const tw::Grad& g) {
  const tw_edge x = g.x(1), distance = g.op("AddV2", {Number(g, 1, x), g.op("Abs", {x})});
  const tw_edge slope = g.op("RealDiv", {Mul(g, Number(g, -2, x), g.op("Sign", {x})), distance});
  g.dx(0, g.op("SoftsignGrad", {g.dy(), x}));
  g.dx(1, Mul(g, slope, g.op("SoftsignGrad", {Mul(g, g.dy(), g.x(0)), x})));
}

template <void (*Gradient)(const tw::Grad&)>
void Forward(tw::Plugin& p, const std::string& name, const std::string& doc, const std::string& attrs = "", const std::string& type = "") {
  p.op<Gradient>(name + "(features: T[*s]) -> (activations: T[*s]); " + attrs + "T: " OPS_FLOATS + type + "; ?elementwise; doc \"" + doc +
                 "\"");
}
template <void (*Gradient)(const tw::Grad&)>
void Backward(tw::Plugin& p, const std::string& name, const std::string& of, const std::string& doc, const std::string& attrs = "",
              const std::string& type = "") {
  p.op<Gradient>(name + "(gradients: T[*s], " + of + ": T[*s]) -> (backprops: T[*s]); " + attrs + "T: " OPS_FLOATS + type +
                 "; ?elementwise; doc \"" + doc + "\"");
}

}  // namespace

void register_activations(tw::Plugin& p) {
  Forward<LeakyReluGradient>(p, "LeakyRelu", "features where they are above 0, else alpha * features", "alpha: float = 0.2; ", " = float");
  Backward<LeakyReluGradGradient>(p, "LeakyReluGrad", "features", "gradients where features > 0, else alpha * gradients",
                                  "alpha: float = 0.2; ", " = float");
  Forward<EluGradient>(p, "Elu", "features where they are 0 or above, else exp(features) - 1");
  Backward<EluGradGradient>(p, "EluGrad", "outputs", "gradient of Elu from its result: gradients, times outputs + 1 where outputs < 0");
  Forward<SeluGradient>(p, "Selu", "1.0507 * features where they are 0 or above, else 1.75810 * (exp(features) - 1)");
  Backward<SeluGradGradient>(
      p, "SeluGrad", "outputs",
      "gradient of Selu from its result: gradients times 1.0507 where outputs are 0 or above, else times outputs + 1.75810");
  Forward<SoftplusGradient>(p, "Softplus", "log(1 + exp(features)), exact at both ends");
  Backward<SoftplusGradGradient>(p, "SoftplusGrad", "features", "gradient of Softplus: gradients / (1 + exp(-features))");
  Forward<SoftsignGradient>(p, "Softsign", "features / (1 + |features|)");
  Backward<SoftsignGradGradient>(p, "SoftsignGrad", "features", "gradient of Softsign: gradients / (1 + |features|)^2");
}

}  // namespace thalweg::ops
