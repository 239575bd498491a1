// Activations, element by element, and Softmax with its relatives.
#include <cmath>
#include <iterator>

#include "table.h"

namespace thalweg::onnx {
namespace {

Value Mul(Builder& b, const Value& x, double factor) { return factor == 1 ? x : b.op("Mul", {x, b.like(x, factor)}); }
Value Plus(Builder& b, const Value& x, double term) { return term == 0 ? x : b.op("AddV2", {x, b.like(x, term)}); }
// max(low, min(high, x)), NaN for NaN.
Value Between(Builder& b, const Value& x, double low, double high) {
  return b.op("Maximum", {b.op("Minimum", {x, b.like(x, high)}), b.like(x, low)});
}

template <const char* kOp>
void Same(Builder& b, Node& n) {
  n.out(b.op(kOp, {n.in(0)}));
}
constexpr char kSigmoid[] = "Sigmoid", kSoftplus[] = "Softplus", kSoftsign[] = "Softsign";

void Relu(Builder& b, Node& n) {
  const Value& x = n.in(0);
  n.out(IsFloating(x.dtype()) ? b.op("Relu", {x}) : b.op("Maximum", {x, b.like(x, 0)}));
}

void LeakyRelu(Builder& b, Node& n) {
  const Value& x = n.in(0);
  n.out(b.op("LeakyRelu", {x}, {{"alpha", n.f("alpha", 0.01)}}));
}

// x where x > 0, else alpha (exp(x / scale) - 1).
Value Exponential(Builder& b, const Value& x, double alpha, double scale) {
  const Value below = Mul(b, b.op("Expm1", {Mul(b, b.op("Minimum", {x, b.like(x, 0)}), 1 / scale)}), alpha);
  return b.op("SelectV2", {b.op("Greater", {x, b.like(x, 0)}), x, below});
}

void Elu(Builder& b, Node& n) {
  const double alpha = n.f("alpha", 1);
  n.out(alpha == 1 ? b.op("Elu", {n.in(0)}) : Exponential(b, n.in(0), alpha, 1));
}

void Celu(Builder& b, Node& n) {
  const double alpha = n.f("alpha", 1);
  if (alpha == 0) n.fail("'alpha' is 0");
  n.out(alpha == 1 ? b.op("Elu", {n.in(0)}) : Exponential(b, n.in(0), alpha, alpha));
}

void Selu(Builder& b, Node& n) {
  const double alpha = n.f("alpha", n.opset < 6 ? 1.6732 : 1.67326319217681884765625);
  const double gamma = n.f("gamma", n.opset < 6 ? 1.0507 : 1.05070102214813232421875);
  n.out(Mul(b, Exponential(b, n.in(0), alpha, 1), gamma));
}

void HardSigmoid(Builder& b, Node& n) { n.out(Between(b, Plus(b, Mul(b, n.in(0), n.f("alpha", 0.2)), n.f("beta", 0.5)), 0, 1)); }

void HardSwish(Builder& b, Node& n) { n.out(b.op("Mul", {n.in(0), Between(b, Plus(b, Mul(b, n.in(0), 1.0 / 6), 0.5), 0, 1)})); }

void PRelu(Builder& b, Node& n) {
  const Value& x = n.in(0);
  Value slope = n.in(1);
  // Before opset 7, a vector of slopes belonged to axis 1.
  if (n.opset < 7 && slope.rank() == 1 && slope.dim(0) != 1 && x.rank() > 2) {
    std::vector<int64_t> axes;
    for (int i = 1; i + 1 < x.rank(); ++i) axes.push_back(i);
    slope = b.unsqueeze(slope, axes);
  }
  n.out(b.op("SelectV2", {b.op("Less", {x, b.like(x, 0)}), b.op("Mul", {slope, x}), x}));
}

void ThresholdedRelu(Builder& b, Node& n) {
  const Value& x = n.in(0);
  n.out(b.op("SelectV2", {b.op("Greater", {x, b.like(x, n.f("alpha", 1))}), x, b.like(x, 0)}));
}

void Shrink(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const double bias = n.f("bias", 0), lambd = n.f("lambd", 0.5);
  const uint32_t wide = IsFloating(x.dtype()) ? x.dtype() : static_cast<uint32_t>(TW_DOUBLE);
  const Value v = b.cast(x, wide);
  const Value upper = b.op("SelectV2", {b.op("Greater", {v, b.like(v, lambd)}), Plus(b, v, -bias), b.like(v, 0)});
  n.out(b.cast(b.op("SelectV2", {b.op("Less", {v, b.like(v, -lambd)}), Plus(b, v, bias), upper}), x.dtype()));
}

void Mish(Builder& b, Node& n) { n.out(b.op("Mul", {n.in(0), b.op("Tanh", {b.op("Softplus", {n.in(0)})})})); }

Value Swished(Builder& b, Node& n) { return b.op("Mul", {n.in(0), b.op("Sigmoid", {Mul(b, n.in(0), n.f("alpha", 1))})}); }
void Swish(Builder& b, Node& n) { n.out(Swished(b, n)); }
void SwiGlu(Builder& b, Node& n) { n.out(b.op("Mul", {Swished(b, n), n.in(1)})); }

void Gelu(Builder& b, Node& n) {
  const Value& x = n.in(0);
  Value gate;
  if (n.s("approximate", "none") == "tanh") {
    const Value cube = b.op("Mul", {b.op("Mul", {x, x}), x});
    gate = b.op("Tanh", {Mul(b, b.op("AddV2", {x, Mul(b, cube, 0.044715)}), std::sqrt(2 / M_PI))});
  } else {
    gate = b.op("Erf", {Mul(b, x, std::sqrt(0.5))});
  }
  n.out(b.op("Mul", {Mul(b, x, 0.5), Plus(b, gate, 1)}));
}

// ---- Along an axis ----

int64_t AxisOf(Node& n, const Value& x, int64_t otherwise) {
  int64_t axis = n.i("axis", otherwise);
  if (x.rank() < 0) {
    if (axis != -1) n.unsupported("the rank of the input is unknown");
    return axis;
  }
  if (axis < -x.rank() || axis >= std::max(x.rank(), 1))
    n.fail("'axis' is " + std::to_string(axis) + ", but the input has rank " + std::to_string(x.rank()));
  return axis < 0 ? axis + x.rank() : axis;
}

// Applies `rows`, which works along the last axis.
template <class Rows>
Value AlongAxis(Builder& b, Node& n, const Value& x, Rows rows) {
  if (n.opset >= 13) {
    const int64_t axis = AxisOf(n, x, -1);
    if (axis == -1 || axis == x.rank() - 1) return rows(x);
    std::vector<int64_t> perm;
    for (int64_t i = 0; i < x.rank(); ++i) perm.push_back(i);
    std::swap(perm[static_cast<size_t>(axis)], perm.back());
    return b.transpose(rows(b.transpose(x, perm)), perm);
  }
  // Before opset 13, all axes from `axis` on were one.
  const int64_t axis = AxisOf(n, x, 1);
  if (axis == x.rank() - 1) return rows(x);
  int64_t known = 1;
  bool all = true;
  for (int64_t i = axis; i < x.rank(); ++i) {
    all &= x.dim(static_cast<int>(i)) >= 0;
    known *= x.dim(static_cast<int>(i));
  }
  const Value shape = b.shape(x);
  if (all && known > 0) return b.reshape(rows(b.reshape(x, Dims{-1, known})), shape);
  const Value width = b.op("Prod", {b.slice0(shape, axis, x.rank()), b.ints({0}, TW_INT32)}, {{"keep_dims", true}});
  return b.reshape(rows(b.reshape(x, b.concat({b.ints({-1}), width}, 0))), shape);
}

void Softmax(Builder& b, Node& n) {
  n.out(AlongAxis(b, n, n.in(0), [&](const Value& v) { return b.op("Softmax", {v}); }));
}

void LogSoftmax(Builder& b, Node& n) {
  n.out(AlongAxis(b, n, n.in(0), [&](const Value& v) { return b.op("LogSoftmax", {v}); }));
}

// 1 at the first of the largest elements, 0 elsewhere.
void Hardmax(Builder& b, Node& n) {
  n.out(AlongAxis(b, n, n.in(0), [&](const Value& v) {
    const Value first = b.op("ArgMax", {v, b.scalar(TW_INT32, -1)}, {{"output_type", Type{TW_INT64}}});
    return b.op("OneHot", {first, b.cast(b.size(v, -1), TW_INT32), b.like(v, 1), b.like(v, 0)});
  }));
}

constexpr Entry kActivation[] = {
    {"Celu", 12, kLatest, &Celu},
    {"Elu", 1, kLatest, &Elu},
    {"Gelu", 20, kLatest, &Gelu},
    {"HardSigmoid", 1, kLatest, &HardSigmoid},
    {"HardSwish", 14, kLatest, &HardSwish},
    {"Hardmax", 1, kLatest, &Hardmax},
    {"LeakyRelu", 1, kLatest, &LeakyRelu},
    {"LogSoftmax", 1, kLatest, &LogSoftmax},
    {"Mish", 18, kLatest, &Mish},
    {"PRelu", 1, kLatest, &PRelu},
    {"Relu", 1, kLatest, &Relu},
    {"Selu", 1, kLatest, &Selu},
    {"Shrink", 9, kLatest, &Shrink},
    {"Sigmoid", 1, kLatest, &Same<kSigmoid>},
    {"Softmax", 1, kLatest, &Softmax},
    {"Softplus", 1, kLatest, &Same<kSoftplus>},
    {"Softsign", 1, kLatest, &Same<kSoftsign>},
    {"SwiGLU", 28, kLatest, &SwiGlu},
    {"Swish", 24, kLatest, &Swish},
    {"ThresholdedRelu", 1, kLatest, &ThresholdedRelu},
};

}  // namespace

Family ActivationTranslators() { return {std::begin(kActivation), std::end(kActivation)}; }

}  // namespace thalweg::onnx
