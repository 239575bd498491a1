// Normalisations.
#include <algorithm>
#include <iterator>

#include "table.h"

namespace thalweg::onnx {
namespace {

int RankOf(Node& n, const Value& x) {
  if (x.rank() < 0) n.unsupported("the rank of the input is unknown");
  return x.rank();
}

Value Mean(Builder& b, const Value& x, const std::vector<int64_t>& axes) { return b.op("Mean", {x, b.ints(axes)}, {{"keep_dims", true}}); }

// A vector over axis 1 of a value of this rank.
Value PerChannel(Builder& b, const Value& v, int rank) {
  if (rank <= 1) return v;
  Dims dims(static_cast<size_t>(rank) - 1, 1);
  dims[0] = -1;
  return b.reshape(v, dims);
}

// 1 / sqrt(variance + epsilon).
Value Scale(Builder& b, const Value& variance, double epsilon) {
  return b.op("Rsqrt", {b.op("AddV2", {variance, b.like(variance, epsilon)})});
}

// x scaled to mean 0 and variance 1 over axes; also the mean and the inverse deviation.
struct Normal {
  Value y, mean, inverse;
};
Normal Standardise(Builder& b, const Value& x, const std::vector<int64_t>& axes, double epsilon) {
  Normal out;
  out.mean = Mean(b, x, axes);
  const Value centred = b.op("Sub", {x, out.mean});
  out.inverse = Scale(b, Mean(b, b.op("Square", {centred}), axes), epsilon);
  out.y = b.op("Mul", {centred, out.inverse});
  return out;
}

std::vector<int64_t> From(int first, int rank) {
  std::vector<int64_t> axes;
  for (int i = first; i < rank; ++i) axes.push_back(i);
  return axes;
}

// y = (x - mean) scale / sqrt(variance + epsilon) + offset, with vectors over axis 1.
Value Affine(Builder& b, const Value& x, const Value& scale, const Value& offset, const Value& mean, const Value& variance,
             double epsilon) {
  const Value factor = b.op("Mul", {scale, Scale(b, variance, epsilon)});
  const Value rest = b.op("Sub", {offset, b.op("Mul", {mean, factor})});
  return b.op("AddV2", {b.op("Mul", {x, PerChannel(b, factor, x.rank())}), PerChannel(b, rest, x.rank())});
}

void BatchNormalization(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int rank = RankOf(n, x);
  const double epsilon = n.f("epsilon", 1e-5), momentum = n.f("momentum", 0.9);
  const bool training = n.opset >= 14 ? n.i("training_mode", 0) != 0 : n.opset < 7 && n.i("is_test", 0) == 0 && n.wants(1);
  const uint32_t stored = n.in(3).dtype();
  if (n.opset < 9 && !n.i("spatial", 1)) n.unsupported("statistics for each place ('spatial' is 0)");
  if (!training) {
    const bool same = n.in(1).dtype() == TW_FLOAT && stored == TW_FLOAT;
    if (rank == 4 && x.dtype() == TW_FLOAT && same && n.in(1).rank() == 1) {
      return n.out(b.op("FusedBatchNormV3", {x, n.in(1), n.in(2), n.in(3), n.in(4)},
                        {{"epsilon", epsilon}, {"data_format", "NCHW"}, {"is_training", false}}));
    }
    const uint32_t wide = x.dtype() == TW_DOUBLE || stored == TW_DOUBLE ? TW_DOUBLE : TW_FLOAT;
    return n.out(b.cast(
        Affine(b, b.cast(x, wide), b.cast(n.in(1), wide), b.cast(n.in(2), wide), b.cast(n.in(3), wide), b.cast(n.in(4), wide), epsilon),
        x.dtype()));
  }
  std::vector<int64_t> axes = From(2, rank);
  axes.insert(axes.begin(), 0);
  const uint32_t wide = x.dtype() == TW_DOUBLE ? TW_DOUBLE : TW_FLOAT;
  const Value v = b.cast(x, wide);
  const Value mean = Mean(b, v, axes);
  const Value variance = Mean(b, b.op("Square", {b.op("Sub", {v, mean})}), axes);
  const Value flat_mean = b.reshape(mean, Dims{-1}), flat_variance = b.reshape(variance, Dims{-1});
  n.out(0, b.cast(Affine(b, v, b.cast(n.in(1), wide), b.cast(n.in(2), wide), flat_mean, flat_variance, epsilon), x.dtype()));
  const auto mixed = [&](const Value& old, const Value& now) {
    return b.op("AddV2", {b.op("Mul", {old, b.like(old, momentum)}), b.op("Mul", {b.cast(now, stored), b.like(old, 1 - momentum)})});
  };
  n.out(1, mixed(n.in(3), flat_mean));
  n.out(2, mixed(n.in(4), flat_variance));
  if (n.opset < 14) {
    n.out(3, b.cast(flat_mean, stored));
    n.out(4, b.cast(flat_variance, stored));
  }
}

void InstanceNormalization(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int rank = RankOf(n, x);
  const Normal normal = Standardise(b, x, From(2, rank), n.f("epsilon", 1e-5));
  n.out(b.op("AddV2", {b.op("Mul", {normal.y, PerChannel(b, n.in(1), rank)}), PerChannel(b, n.in(2), rank)}));
}

int AxisOf(Node& n, int rank) {
  const int64_t axis = n.i("axis", -1);
  if (axis < -rank || axis >= rank) n.fail("'axis' is " + std::to_string(axis) + ", but the input has rank " + std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// Statistics are computed in the type that `stash_type` names, float by default.
uint32_t StashType(Node& n, const Value& x) {
  if (x.dtype() == TW_DOUBLE) return TW_DOUBLE;
  return n.i("stash_type", 1) == 1 ? static_cast<uint32_t>(TW_FLOAT) : x.dtype();
}

void LayerNormalization(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int rank = RankOf(n, x);
  const Normal normal = Standardise(b, b.cast(x, StashType(n, x)), From(AxisOf(n, rank), rank), n.f("epsilon", 1e-5));
  Value y = b.op("Mul", {b.cast(normal.y, x.dtype()), n.in(1)});
  if (n.has(2)) y = b.op("AddV2", {y, n.in(2)});
  n.out(0, y);
  n.out(1, normal.mean);
  n.out(2, normal.inverse);
}

void RMSNormalization(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int rank = RankOf(n, x);
  const Value v = b.cast(x, StashType(n, x));
  const Value inverse = Scale(b, Mean(b, b.op("Square", {v}), From(AxisOf(n, rank), rank)), n.f("epsilon", 1e-5));
  n.out(b.op("Mul", {b.cast(b.op("Mul", {v, inverse}), x.dtype()), n.in(1)}));
}

void GroupNormalization(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int rank = RankOf(n, x);
  const int64_t groups = n.i("num_groups"), channels = x.dim(1);
  if (channels < 0) n.unsupported("the number of channels is unknown");
  if (groups < 1 || channels % groups)
    n.fail("'num_groups' is " + std::to_string(groups) + ", but there are " + std::to_string(channels) + " channels");
  const uint32_t wide = StashType(n, x);
  const Value shape = b.shape(x);
  const Value grouped = b.reshape(b.cast(x, wide), b.concat({b.slice0(shape, 0, 1), b.ints({groups, -1})}, 0));
  Value y = b.reshape(Standardise(b, grouped, {2}, n.f("epsilon", 1e-5)).y, shape);
  y = b.cast(y, x.dtype());
  Value scale = n.in(1), offset = n.in(2);
  if (n.opset < 21) {  // a number for each group; opset 21 has one for each channel
    const auto spread = [&](const Value& v) {
      return b.reshape(b.broadcast(b.unsqueeze(v, {1}), b.ints({groups, channels / groups})), Dims{channels});
    };
    scale = spread(scale);
    offset = spread(offset);
  }
  n.out(b.op("AddV2", {b.op("Mul", {y, PerChannel(b, scale, rank)}), PerChannel(b, offset, rank)}));
}

void LpNormalization(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int64_t axis = n.i("axis", -1), p = n.i("p", 2);
  if (p != 1 && p != 2) n.fail("'p' is " + std::to_string(p) + "; 1 and 2 are allowed");
  const Value norm = b.op(p == 1 ? "Sum" : "EuclideanNorm", {p == 1 ? b.op("Abs", {x}) : x, b.ints({axis})}, {{"keep_dims", true}});
  n.out(b.op("DivNoNan", {x, norm}));
}

void MeanVarianceNormalization(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const std::vector<int64_t> axes = n.ints("axes", {0, 2, 3});
  const Value centred = b.op("Sub", {x, Mean(b, x, axes)});
  const Value deviation = b.op("Sqrt", {Mean(b, b.op("Square", {centred}), axes)});
  n.out(b.op("RealDiv", {centred, b.op("AddV2", {deviation, b.like(x, 1e-9)})}));
}

void LRN(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int rank = RankOf(n, x);
  const int64_t size = n.i("size");
  if (size < 1 || size > 4096) n.fail("'size' is " + std::to_string(size));
  const double alpha = n.f("alpha", 0.0001), beta = n.f("beta", 0.75), bias = n.f("bias", 1);
  if (rank == 4 && size % 2 && x.dtype() != TW_DOUBLE) {
    const Value y = b.op("LRN", {b.transpose(x, {0, 2, 3, 1})},
                         {{"depth_radius", (size - 1) / 2}, {"bias", bias}, {"alpha", alpha / static_cast<double>(size)}, {"beta", beta}});
    return n.out(b.transpose(y, {0, 3, 1, 2}));
  }
  Tensor pads(TW_INT32, {rank, 2});
  static_cast<int32_t*>(pads.mutable_data())[2] = static_cast<int32_t>((size - 1) / 2);
  static_cast<int32_t*>(pads.mutable_data())[3] = static_cast<int32_t>(size / 2);
  const Value squares = b.op("Pad", {b.op("Square", {x}), b.constant(pads)});
  Value sum;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t behind = size - 1 - i;
    const Value part = b.op("StridedSlice", {squares, b.ints({0, i}), b.ints({0, -behind}), b.ints({1, 1})},
                            {{"begin_mask", 1}, {"end_mask", behind ? 1 : 3}});
    sum = sum ? b.op("AddV2", {sum, part}) : part;
  }
  const Value base = b.op("AddV2", {b.op("Mul", {sum, b.like(x, alpha / static_cast<double>(size))}), b.like(x, bias)});
  n.out(b.op("RealDiv", {x, b.op("Pow", {base, b.like(x, beta)})}));
}

constexpr Entry kNorm[] = {
    {"BatchNormalization", 1, kLatest, &BatchNormalization},
    {"GroupNormalization", 18, kLatest, &GroupNormalization},
    {"InstanceNormalization", 1, kLatest, &InstanceNormalization},
    {"LRN", 1, kLatest, &LRN},
    {"LayerNormalization", 17, kLatest, &LayerNormalization},
    {"LpNormalization", 1, kLatest, &LpNormalization},
    {"MeanVarianceNormalization", 9, kLatest, &MeanVarianceNormalization},
    {"RMSNormalization", 23, kLatest, &RMSNormalization},
};

}  // namespace

Family NormTranslators() { return {std::begin(kNorm), std::end(kNorm)}; }

}  // namespace thalweg::onnx
