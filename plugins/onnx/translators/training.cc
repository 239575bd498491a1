// Steps of optimizers, from ai.onnx.preview.training: R is the rate, T the number of the step, then the optimized tensors, their gradients
// and the states, a group after the other.
#include <iterator>

#include "table.h"

namespace thalweg::onnx {
namespace {

constexpr const char* kDomain = "ai.onnx.preview.training";

Value Mul(Builder& b, const Value& x, const Value& y) { return b.op("Mul", {x, y}); }
Value Mul(Builder& b, const Value& x, double y) { return y == 1 ? x : b.op("Mul", {x, b.like(x, y)}); }
Value Plus(Builder& b, const Value& x, const Value& y) { return b.op("AddV2", {x, y}); }

// How many tensors are optimized, from the number of inputs.
size_t CountOf(Node& n, size_t groups) {
  if (n.inputs() < 2 + groups || (n.inputs() - 2) % groups)
    n.fail("has " + std::to_string(n.inputs()) + " inputs, not 2 + " + std::to_string(groups) + " for each tensor");
  return (n.inputs() - 2) / groups;
}

// The gradient with that of the penalty norm_coefficient / 2 x^2.
Value Regularised(Builder& b, Node& n, const Value& gradient, const Value& x) {
  const double norm = n.f("norm_coefficient", 0);
  return norm == 0 ? gradient : Plus(b, gradient, Mul(b, x, norm));
}

void Adagrad(Builder& b, Node& n) {
  const size_t count = CountOf(n, 3);
  const Value steps = b.cast(n.in(1), n.in(0).dtype());
  const Value rate = b.op("RealDiv", {n.in(0), b.op("AddV2", {Mul(b, steps, n.f("decay_factor", 0)), b.like(n.in(0), 1)})});
  for (size_t i = 0; i < count; ++i) {
    const Value &x = n.in(2 + i), &h = n.in(2 + 2 * count + i);
    const Value gradient = Regularised(b, n, n.in(2 + count + i), x);
    const Value sum = Plus(b, h, b.op("Square", {gradient}));
    const Value adaptive = b.op("AddV2", {b.op("Sqrt", {sum}), b.like(x, n.f("epsilon", 1e-6))});
    n.out(i, b.op("Sub", {x, b.op("RealDiv", {Mul(b, b.cast(rate, x.dtype()), gradient), adaptive})}));
    n.out(count + i, sum);
  }
}

void Adam(Builder& b, Node& n) {
  const size_t count = CountOf(n, 4);
  const double alpha = n.f("alpha", 0.9), beta = n.f("beta", 0.999), post = n.f("norm_coefficient_post", 0);
  const Value one = b.like(n.in(0), 1), steps = b.cast(n.in(1), n.in(0).dtype());
  // The correction of the first steps: sqrt(1 - beta^T) / (1 - alpha^T), none at T = 0.
  const Value above = b.op("Sqrt", {b.op("Sub", {one, b.op("Pow", {b.like(one, beta), steps})})});
  const Value below = b.op("Sub", {one, b.op("Pow", {b.like(one, alpha), steps})});
  const Value corrected =
      b.op("SelectV2", {b.op("Greater", {steps, b.like(one, 0)}), b.op("RealDiv", {Mul(b, n.in(0), above), below}), n.in(0)});
  for (size_t i = 0; i < count; ++i) {
    const Value &x = n.in(2 + i), &v = n.in(2 + 2 * count + i), &h = n.in(2 + 3 * count + i);
    const Value gradient = Regularised(b, n, n.in(2 + count + i), x);
    const Value mean = Plus(b, Mul(b, v, alpha), Mul(b, gradient, 1 - alpha));
    const Value square = Plus(b, Mul(b, h, beta), Mul(b, b.op("Square", {gradient}), 1 - beta));
    const Value root = b.op("AddV2", {b.op("Sqrt", {square}), b.like(x, n.f("epsilon", 1e-6))});
    const Value next = b.op("Sub", {x, b.op("RealDiv", {Mul(b, b.cast(corrected, x.dtype()), mean), root})});
    n.out(i, Mul(b, next, 1 - post));
    n.out(count + i, mean);
    n.out(2 * count + i, square);
  }
}

void Momentum(Builder& b, Node& n) {
  const size_t count = CountOf(n, 3);
  const double alpha = n.f("alpha"), beta = n.f("beta");
  const std::string mode = n.s("mode");
  if (mode != "standard" && mode != "nesterov") n.fail("'mode' is '" + mode + "'");
  // The first step takes the whole gradient.
  const Value first = b.op("Equal", {n.in(1), b.like(n.in(1), 0)});
  for (size_t i = 0; i < count; ++i) {
    const Value &x = n.in(2 + i), &v = n.in(2 + 2 * count + i);
    const Value gradient = Regularised(b, n, n.in(2 + count + i), x);
    const Value share = b.op("SelectV2", {first, b.like(x, 1), b.like(x, beta)});
    const Value next = Plus(b, Mul(b, v, alpha), Mul(b, gradient, share));
    const Value move = mode == "standard" ? next : Plus(b, gradient, Mul(b, next, alpha));
    n.out(i, b.op("Sub", {x, Mul(b, b.cast(n.in(0), x.dtype()), move)}));
    n.out(count + i, next);
  }
}

constexpr Entry kTraining[] = {
    {"Adagrad", 1, kLatest, &Adagrad, kDomain},
    {"Adam", 1, kLatest, &Adam, kDomain},
    {"Momentum", 1, kLatest, &Momentum, kDomain},
};

}  // namespace

Family TrainingTranslators() { return {std::begin(kTraining), std::end(kTraining)}; }

}  // namespace thalweg::onnx
