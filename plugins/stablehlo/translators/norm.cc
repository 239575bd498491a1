// Batch normalization over all axes but one: for inference, for training, and its gradient.
#include <iterator>

#include "common.h"

namespace thalweg::stablehlo {
namespace {

struct Norm {
  std::vector<int64_t> axes;  // all but the feature axis
  std::vector<Value> along;   // sizes of a value with one element for each feature
  double epsilon = 0;
  Value count;  // elements of a feature, in the operand's type
};

Norm NormOf(Translation& t, const Op& op, const Value& x) {
  Norm n;
  const int rank = RankOf(op, x), feature = AxisOf(op, op.i("feature_index"), rank);
  const std::vector<Value> sizes = SizesOf(t, x);
  Value count = Known(t, 1);
  for (int axis = 0; axis < rank; ++axis) {
    n.along.push_back(axis == feature ? sizes[static_cast<size_t>(axis)] : Known(t, 1));
    if (axis == feature) continue;
    n.axes.push_back(axis);
    count = Times(t, count, sizes[static_cast<size_t>(axis)]);
  }
  n.epsilon = op.f("epsilon");
  n.count = t.cast(count, x.dtype());
  return n;
}

Value Sum(Translation& t, const Norm& n, const Value& v) { return n.axes.empty() ? v : t.op("Sum", {v, t.ints(n.axes)}); }
Value Mean(Translation& t, const Norm& n, const Value& v) { return t.op("RealDiv", {Sum(t, n, v), n.count}); }
Value Spread(Translation& t, const Norm& n, const Value& v) { return ReshapeTo(t, v, n.along); }

Value Scaled(Translation& t, const Norm& n, const Value& x, const Value& scale, const Value& offset, const Value& mean,
             const Value& variance) {
  const Value deviation = t.op("Sqrt", {t.op("AddV2", {Spread(t, n, variance), Like(t, x, n.epsilon)})});
  const Value centred = t.op("RealDiv", {t.op("Sub", {x, Spread(t, n, mean)}), deviation});
  return t.op("AddV2", {t.op("Mul", {centred, Spread(t, n, scale)}), Spread(t, n, offset)});
}

void Inference(Translation& t, Op& op) {
  const Norm n = NormOf(t, op, op.in(0));
  op.out(Scaled(t, n, op.in(0), op.in(1), op.in(2), op.in(3), op.in(4)));
}

void Training(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const Norm n = NormOf(t, op, x);
  const Value mean = Mean(t, n, x);
  const Value centred = t.op("Sub", {x, Spread(t, n, mean)});
  const Value variance = Mean(t, n, t.op("Mul", {centred, centred}));
  op.out(0, Scaled(t, n, x, op.in(1), op.in(2), mean, variance));
  op.out(1, mean);
  op.out(2, variance);
}

void Gradient(Translation& t, Op& op) {
  const Value &x = op.in(0), &scale = op.in(1), &mean = op.in(2), &variance = op.in(3), &dy = op.in(4);
  const Norm n = NormOf(t, op, x);
  const Value inverse = t.op("Rsqrt", {t.op("AddV2", {variance, Like(t, x, n.epsilon)})});
  const Value normed = t.op("Mul", {t.op("Sub", {x, Spread(t, n, mean)}), Spread(t, n, inverse)});
  const Value offset_gradient = Sum(t, n, dy), scale_gradient = Sum(t, n, t.op("Mul", {dy, normed}));
  const Value slope = t.op("RealDiv", {t.op("Mul", {scale, inverse}), n.count});
  const Value inner = t.op("Sub", {t.op("Sub", {t.op("Mul", {dy, n.count}), Spread(t, n, offset_gradient)}),
                                   t.op("Mul", {normed, Spread(t, n, scale_gradient)})});
  op.out(0, t.op("Mul", {Spread(t, n, slope), inner}));
  op.out(1, scale_gradient);
  op.out(2, offset_gradient);
}

constexpr Entry kNorm[] = {
    {"stablehlo.batch_norm_grad", &Gradient},
    {"stablehlo.batch_norm_inference", &Inference},
    {"stablehlo.batch_norm_training", &Training},
};

}  // namespace

Family norm_translators() { return {std::begin(kNorm), std::end(kNorm)}; }

}  // namespace thalweg::stablehlo
