// LeakyRelu, Elu, Selu, Softplus, Softsign and their gradients. NaN stays NaN. Half and bfloat16 are computed in float.
#include "kernels/activations.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/element.h"
#include "kernels/common/kernel.h"
#include "kernels/common/parallel.h"
#include "kernels/register.h"
#include "kernels/widen.h"

namespace thalweg::cpu {
namespace {

// One activation: its loops for floats, and its formulas for double.
struct Function {
  const char* op;
  const char* of;  // the schema's name of the gradient's second argument
  ActivationLoop ActivationTable::* loop;
  ActivationGradLoop ActivationTable::* gradient_loop;
  double (*value)(double x, double alpha);
  double (*slope)(double x, double alpha);  // a function of x; of the result for Elu and Selu
  int64_t cost, gradient_cost;              // units of ParallelFor per element
};

using A = ActivationTable;
constexpr Function kFunctions[] = {
    {"LeakyRelu", "features", &A::leaky_relu, &A::leaky_relu_grad, [](double x, double alpha) { return x > 0 ? x : x * alpha; },
     [](double x, double alpha) { return x > 0 ? 1 : alpha; }, 1, 1},
    {"Elu", "outputs", &A::elu, &A::elu_grad, [](double x, double) { return x < 0 ? std::expm1(x) : x; },
     [](double y, double) { return y < 0 ? y + 1 : 1; }, 20, 1},
    {"Selu", "outputs", &A::selu, &A::selu_grad, [](double x, double) { return x < 0 ? kSeluScaleAlpha * std::expm1(x) : kSeluScale * x; },
     [](double y, double) { return y < 0 ? y + kSeluScaleAlpha : kSeluScale; }, 20, 1},
    {"Softplus", "features", &A::softplus, &A::softplus_grad,
     [](double x, double) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::fabs(x))); },
     [](double x, double) { return 1 / (1 + std::exp(-x)); }, 20, 10},
    {"Softsign", "features", &A::softsign, &A::softsign_grad, [](double x, double) { return x / (1 + std::fabs(x)); },
     [](double x, double) { return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x))); }, 2, 3},
};

constexpr int64_t kRun = 512;  // elements of half or bfloat16 widened at a time

// The constants of a node's kernel.
struct Context {
  const Function* function;
  const ActivationTable* activations;
  const VectorTable* vector;
  double alpha;
};

template <class T>
void Activate(const Context& c, const void* features, void* activations, int64_t begin, int64_t end) {
  const T* x = static_cast<const T*>(features);
  T* y = static_cast<T*>(activations);
  if constexpr (std::is_same_v<T, double>) {
    for (int64_t i = begin; i < end; ++i) y[i] = c.function->value(x[i], c.alpha);
  } else {
    const ActivationLoop loop = c.activations->*c.function->loop;
    if constexpr (std::is_same_v<T, float>) return loop(x + begin, y + begin, end - begin, float(c.alpha));
    float wide[kRun];
    for (int64_t i = begin; i < end; i += kRun) {
      const int64_t n = std::min(kRun, end - i);
      Widen(*c.vector, x + i, wide, n);
      loop(wide, wide, n, float(c.alpha));
      Narrow(*c.vector, wide, y + i, n);
    }
  }
}

template <class T>
void Differentiate(const Context& c, const void* gradients, const void* of, void* backprops, int64_t begin, int64_t end) {
  const T *dy = static_cast<const T*>(gradients), *x = static_cast<const T*>(of);
  T* dx = static_cast<T*>(backprops);
  if constexpr (std::is_same_v<T, double>) {
    for (int64_t i = begin; i < end; ++i) dx[i] = dy[i] * c.function->slope(x[i], c.alpha);
  } else {
    const ActivationGradLoop loop = c.activations->*c.function->gradient_loop;
    if constexpr (std::is_same_v<T, float>) return loop(dy + begin, x + begin, dx + begin, end - begin, float(c.alpha));
    float wide[kRun], wide_dy[kRun];
    for (int64_t i = begin; i < end; i += kRun) {
      const int64_t n = std::min(kRun, end - i);
      Widen(*c.vector, x + i, wide, n);
      Widen(*c.vector, dy + i, wide_dy, n);
      loop(wide_dy, wide, wide, n, float(c.alpha));
      Narrow(*c.vector, wide, dx + i, n);
    }
  }
}

struct Loops {
  const char* type;
  uint32_t dtype;
  void (*activate)(const Context&, const void*, void*, int64_t, int64_t);
  void (*differentiate)(const Context&, const void*, const void*, void*, int64_t, int64_t);
};
constexpr Loops kLoops[] = {
    {"float", TW_FLOAT, Activate<float>, Differentiate<float>},
    {"double", TW_DOUBLE, Activate<double>, Differentiate<double>},
    {"half", TW_HALF, Activate<half>, Differentiate<half>},
    {"bfloat16", TW_BFLOAT16, Activate<bfloat16>, Differentiate<bfloat16>},
};
const Loops& LoopsFor(uint32_t dtype) {
  for (const Loops& l : kLoops)
    if (l.dtype == dtype) return l;
  throw tw::Error{TW_INTERNAL, "no loop for " + TypeText(dtype)};
}

Context ContextOf(const tw::Node& n, const Function& f) {
  const Isa isa = DetectIsa(n.host());
  return {&f, &TW_CPU_FOR_ISA(isa, Activations), &TW_CPU_FOR_ISA(isa, Vectors), n.find("alpha") ? n.f("alpha") : 0};
}

class Activation {
 public:
  Activation(const tw::Node& n, const Function& f) : context_(ContextOf(n, f)), loop_(LoopsFor(n.type_in(0)).activate) {}

  void operator()(tw::Frame frame, tw::In<tw::Any> features, tw::Out<tw::Any> activations) const {
    ParallelFor(frame.f, int64_t(features.size()), context_.function->cost,
                [&](int64_t begin, int64_t end) { loop_(context_, features.data(), activations.data(), begin, end); });
  }

 private:
  Context context_;
  decltype(Loops::activate) loop_;
};

class Gradient {
 public:
  Gradient(const tw::Node& n, const Function& f) : context_(ContextOf(n, f)), loop_(LoopsFor(n.type_in(0)).differentiate) {}

  void operator()(tw::Frame frame, tw::In<tw::Any> gradients, tw::In<tw::Any> of, tw::Out<tw::Any> backprops) const {
    if (!SameDims(gradients.v, of.v))
      Invalid("gradients " + DimsText(gradients.v) + " and " + context_.function->of + " " + DimsText(of.v) + " must have the same shape");
    ParallelFor(frame.f, int64_t(of.size()), context_.function->gradient_cost,
                [&](int64_t begin, int64_t end) { loop_(context_, gradients.data(), of.data(), backprops.data(), begin, end); });
  }

 private:
  Context context_;
  decltype(Loops::differentiate) loop_;
};

}  // namespace

void register_activations(tw::Plugin& p) {
  for (const Function& f : kFunctions) {
    for (const Loops& l : kLoops) {
      const std::string op = f.op, t = l.type;
      AddKernelClass<Activation>(p, op + "(" + t + " -> " + t + ") @CPU; inplace activations=features", f);
      AddKernelClass<Gradient>(p, op + "Grad(" + t + ", " + t + " -> " + t + ") @CPU; inplace backprops=gradients", f);
    }
  }
}

}  // namespace thalweg::cpu
