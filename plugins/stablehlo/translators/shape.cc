// Ops on shapes: constants, counts, broadcasts, reshapes, transposes, reversal, concatenation, padding, and sizes as values.
#include "shape.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "common.h"

namespace thalweg::stablehlo {
namespace {

constexpr int64_t kMostPadding = int64_t{1} << 40;

void Constant(Translation&, Op& op) { op.out(op.tensor("value")); }

// The declared sizes; those that are unknown come from `dims`, a vector of integers.
std::vector<Value> Wanted(Translation& t, const Op& op, const Value& dims) {
  const ShapeAttr declared = op.out_shape();
  if (!declared.known_rank) op.unsupported("the rank of the result is unknown; export the program with ranked tensors");
  std::vector<Value> sizes;
  if (dims) sizes = Parts(t, dims, static_cast<int64_t>(declared.dims.size()));
  for (size_t i = 0; i < declared.dims.size(); ++i) {
    if (!dims && declared.dims[i] < 0) op.unsupported("size " + std::to_string(i) + " of the result is unknown and no operand gives it");
    if (declared.dims[i] >= 0 && i >= sizes.size()) {
      sizes.push_back(Known(t, declared.dims[i]));
    } else if (declared.dims[i] >= 0) {
      sizes[i] = Known(t, declared.dims[i]);
    }
  }
  return sizes;
}

void IotaOf(Translation& t, Op& op, const Value& dims) {
  const std::vector<Value> sizes = Wanted(t, op, dims);
  const int axis = AxisOf(op, op.i("iota_dimension"), static_cast<int>(sizes.size()));
  const Value numbers = CountAlong(t, sizes[static_cast<size_t>(axis)], static_cast<int>(sizes.size()), axis);
  op.out(BroadcastTo(t, t.cast(numbers, op.out_dtype()), sizes));
}

void Iota(Translation& t, Op& op) { IotaOf(t, op, Value()); }
void DynamicIota(Translation& t, Op& op) { IotaOf(t, op, op.in(0)); }

void BroadcastInDim(Translation& t, Op& op) {
  const ShapeAttr declared = op.out_shape();
  // Within a body whose scalars stand for many values, a broadcast of a scalar to a scalar changes nothing.
  if (!declared.known_rank) return op.out(op.in(0));
  op.out(Broadcast(t, op, op.in(0), op.ints("broadcast_dimensions"), Wanted(t, op, Value())));
}

// New axes in front of the operand's.
void BroadcastOp(Translation& t, Op& op) {
  const int rank = RankOf(op, op.in(0));
  std::vector<Value> sizes;
  for (const int64_t size : op.ints("broadcast_sizes")) sizes.push_back(Known(t, size));
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(sizes.size()));
  const std::vector<Value> own = SizesOf(t, op.in(0));
  sizes.insert(sizes.end(), own.begin(), own.end());
  op.out(Broadcast(t, op, op.in(0), axes, sizes));
}

void DynamicBroadcastInDim(Translation& t, Op& op) {
  op.out(Broadcast(t, op, op.in(0), op.ints("broadcast_dimensions"), Wanted(t, op, op.in(1))));
}

void Reshape(Translation& t, Op& op) {
  const ShapeAttr declared = op.out_shape();
  op.out(declared.known_rank ? t.reshape_to(op.in(0), declared, Value()) : op.in(0));
}

void DynamicReshape(Translation& t, Op& op) { op.out(t.reshape_to(op.in(0), op.out_shape(), op.in(1))); }

void Transpose(Translation& t, Op& op) { op.out(t.transpose(op.in(0), op.ints("permutation"))); }

void Reverse(Translation& t, Op& op) {
  const std::vector<int64_t> axes = op.ints("dimensions");
  op.out(axes.empty() ? op.in(0) : t.op("ReverseV2", {op.in(0), t.ints(axes)}));
}

void Concatenate(Translation& t, Op& op) {
  const std::vector<Value> all = op.all();
  op.out(all.size() == 1 ? all[0] : t.concat(all, op.i("dimension")));
}

void PadOp(Translation& t, Op& op) {
  op.out(Pad(t, op.in(0), op.in(1), op.ints("edge_padding_low"), op.ints("edge_padding_high"), op.ints("interior_padding")));
}

// Paddings that are computed: they must not be negative unless they are constant.
void DynamicPad(Translation& t, Op& op) {
  const Value &x = op.in(0), &fill = op.in(1), &low = op.in(2), &high = op.in(3), &interior = op.in(4);
  const int rank = RankOf(op, x);
  if (low.known() && high.known() && interior.known()) {
    return op.out(Pad(t, x, fill, low.integers(), high.integers(), interior.integers()));
  }
  if (!interior.known()) op.unsupported("interior_padding must be constant");
  Value padded = Pad(t, x, fill, std::vector<int64_t>(static_cast<size_t>(rank), 0), std::vector<int64_t>(static_cast<size_t>(rank), 0),
                     interior.integers());
  const Value before = t.cast(low, TW_INT64), after = t.cast(high, TW_INT64), none = t.scalar(TW_INT64, 0);
  const Value paddings = t.op("Pack", {t.op("Maximum", {before, none}), t.op("Maximum", {after, none})}, {{"axis", 1}});
  padded = t.op("PadV2", {padded, paddings, fill});
  const Value begin = t.op("Neg", {t.op("Minimum", {before, none})}), cut = t.op("Neg", {t.op("Minimum", {after, none})});
  const Value size = t.op("Sub", {t.op("Sub", {t.shape(padded), begin}), cut});
  op.out(t.shaped(t.op("Slice", {padded, begin, size}), op.out_shape()));
}

void GetDimensionSize(Translation& t, Op& op) {
  const Value& x = op.in(0);
  op.out(t.cast(t.size(x, AxisOf(op, op.i("dimension"), RankOf(op, x))), TW_INT32));
}

// The size of an axis of a bounded value. Thalweg's values have the sizes that they have, so the elements behind are cut off.
void SetDimensionSize(Translation& t, Op& op) {
  const Value& x = op.in(0);
  const int rank = RankOf(op, x), axis = AxisOf(op, op.i("dimension"), rank);
  std::vector<Value> sizes = SizesOf(t, x);
  sizes[static_cast<size_t>(axis)] = op.in(1).known() ? Known(t, op.in(1).integers().at(0)) : t.reshape(t.cast(op.in(1), TW_INT64), Dims{});
  op.out(t.op("Slice", {x, t.ints(std::vector<int64_t>(static_cast<size_t>(rank), 0)), Vector(t, sizes)}));
}

constexpr Entry kShape[] = {
    {"stablehlo.broadcast", &BroadcastOp},
    {"stablehlo.broadcast_in_dim", &BroadcastInDim},
    {"stablehlo.concatenate", &Concatenate},
    {"stablehlo.constant", &Constant},
    {"stablehlo.dynamic_broadcast_in_dim", &DynamicBroadcastInDim},
    {"stablehlo.dynamic_iota", &DynamicIota},
    {"stablehlo.dynamic_pad", &DynamicPad},
    {"stablehlo.dynamic_reshape", &DynamicReshape},
    {"stablehlo.get_dimension_size", &GetDimensionSize},
    {"stablehlo.iota", &Iota},
    {"stablehlo.pad", &PadOp},
    {"stablehlo.reshape", &Reshape},
    {"stablehlo.reverse", &Reverse},
    {"stablehlo.set_dimension_size", &SetDimensionSize},
    {"stablehlo.transpose", &Transpose},
};

}  // namespace

Value Broadcast(Translation& t, const Op& op, const Value& x, const std::vector<int64_t>& axes, const std::vector<Value>& sizes) {
  const int rank = static_cast<int>(sizes.size());
  if (RankOf(op, x) != static_cast<int>(axes.size())) {
    op.fail("broadcast_dimensions names " + std::to_string(axes.size()) + " axes, but the operand has " + std::to_string(x.rank()));
  }
  Dims all;
  for (const Value& size : sizes) all.push_back(NumberOf(size));
  if (const Tensor* same = x.splat(); same && std::count(all.begin(), all.end(), -1) == 0) return t.fill(*same, all);
  if (x.rank() == 0 && x.constant() && std::count(all.begin(), all.end(), -1) == 0) return t.fill(*x.constant(), all);
  // The axes of the operand in the order of those of the result.
  std::vector<int64_t> order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return axes[static_cast<size_t>(a)] < axes[static_cast<size_t>(b)]; });
  const Value sorted = t.transpose(x, order);
  std::vector<Value> aligned(sizes.size(), Known(t, 1));
  for (size_t i = 0; i < order.size(); ++i) {
    const int axis = AxisOf(op, axes[static_cast<size_t>(order[i])], rank);
    aligned[static_cast<size_t>(axis)] =
        sorted.dim(static_cast<int>(i)) >= 0 ? Known(t, sorted.dim(static_cast<int>(i))) : t.size(sorted, static_cast<int>(i));
  }
  return BroadcastTo(t, ReshapeTo(t, sorted, aligned), sizes);
}

Value Pad(Translation& t, const Value& x, const Value& fill, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
          const std::vector<int64_t>& interior) {
  const size_t rank = static_cast<size_t>(x.rank());
  if (low.size() != rank || high.size() != rank || interior.size() != rank) {
    throw Error{TW_INVALID_ARGUMENT, "the paddings have " + std::to_string(low.size()) + ", " + std::to_string(high.size()) + " and " +
                                         std::to_string(interior.size()) + " entries; there must be one for each of " +
                                         std::to_string(rank) + " axes"};
  }
  Value padded = x;
  // Between elements: a new axis behind each such axis is padded, both are merged, and what stands behind the last element is cut off.
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto huge = [](int64_t padding) { return padding > kMostPadding || padding < -kMostPadding; };
    if (huge(low[axis]) || huge(high[axis]) || huge(interior[axis])) {
      throw Error{TW_INVALID_ARGUMENT, "a padding of axis " + std::to_string(axis) + " is larger than " + std::to_string(kMostPadding)};
    }
    if (interior[axis] < 0) throw Error{TW_INVALID_ARGUMENT, "interior padding is " + std::to_string(interior[axis]) + "; it must be >= 0"};
    if (interior[axis] == 0 || x.dim(static_cast<int>(axis)) == 0 || x.dim(static_cast<int>(axis)) == 1) continue;
    std::vector<Value> sizes = SizesOf(t, padded);
    const Value wide = Times(t, sizes[axis], Known(t, interior[axis] + 1));
    const Value apart = t.expand(padded, {static_cast<int64_t>(axis) + 1});
    std::vector<int64_t> paddings(2 * (rank + 1), 0);
    paddings[2 * (axis + 1) + 1] = interior[axis];
    const Value spread = t.op("PadV2", {apart, t.reshape(t.ints(paddings), Dims{static_cast<int64_t>(rank) + 1, 2}), fill});
    sizes[axis] = wide;
    const Value merged = ReshapeTo(t, spread, sizes);
    sizes[axis] = Sized(t, "Maximum", Minus(t, wide, Known(t, interior[axis])), Known(t, 0));
    padded = t.op("Slice", {merged, t.ints(std::vector<int64_t>(rank, 0)), Vector(t, sizes)});
  }
  std::vector<int64_t> around, begin;
  bool any = false, cut = false;
  for (size_t axis = 0; axis < rank; ++axis) {
    around.push_back(std::max<int64_t>(low[axis], 0));
    around.push_back(std::max<int64_t>(high[axis], 0));
    any |= low[axis] > 0 || high[axis] > 0;
    cut |= low[axis] < 0 || high[axis] < 0;
  }
  if (any) padded = t.op("PadV2", {padded, t.reshape(t.ints(around), Dims{static_cast<int64_t>(rank), 2}), fill});
  if (!cut) return padded;
  std::vector<Value> sizes = SizesOf(t, padded);
  for (size_t axis = 0; axis < rank; ++axis) {
    begin.push_back(std::max<int64_t>(-low[axis], 0));
    const int64_t lost = begin.back() + std::max<int64_t>(-high[axis], 0);
    sizes[axis] = Sized(t, "Maximum", Minus(t, sizes[axis], Known(t, lost)), Known(t, 0));
  }
  return t.op("Slice", {padded, t.ints(begin), Vector(t, sizes)});
}

Family shape_translators() { return {std::begin(kShape), std::end(kShape)}; }

}  // namespace thalweg::stablehlo
