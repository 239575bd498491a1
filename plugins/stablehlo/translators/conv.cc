// Convolutions with general axes: by Conv2D for one or two spatial axes of floats, else as products over gathered windows.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "common.h"
#include "place.h"
#include "product.h"
#include "shape.h"

namespace thalweg::stablehlo {
namespace {

constexpr int64_t kMostReach = int64_t{1} << 30;  // of a stride or dilation

struct Form {
  int64_t batch, feature;
  std::vector<int64_t> space;
};

struct Geometry {
  std::vector<int64_t> stride, low, high, lhs_dilation, rhs_dilation;
  std::vector<bool> turned;
  int64_t groups = 1, batch_groups = 1;
};

std::vector<int64_t> Order(const Form& f) {  // batch, space, feature
  std::vector<int64_t> order = {f.batch};
  order.insert(order.end(), f.space.begin(), f.space.end());
  order.push_back(f.feature);
  return order;
}

// Images [batch, space..., features], filters [space..., in, out]; padded and dilated already. Result: as the images.
Value ByConv2D(Translation& t, Value x, Value filter, const Geometry& g) {
  const size_t space = g.stride.size();
  std::vector<int64_t> strides = {1}, dilations = {1};
  if (space == 1) {
    x = t.expand(x, {1});
    filter = t.expand(filter, {0});
    strides.push_back(1);
    dilations.push_back(1);
  }
  strides.insert(strides.end(), g.stride.begin(), g.stride.end());
  dilations.insert(dilations.end(), g.rhs_dilation.begin(), g.rhs_dilation.end());
  strides.push_back(1);
  dilations.push_back(1);
  const Value y = t.op("Conv2D", {x, filter}, {{"strides", strides}, {"padding", "VALID"}, {"dilations", dilations}});
  return space == 1 ? t.squeeze(y, {1}) : y;
}

// The same by any type and any number of axes: windows [batch, out space..., window, features] times filters, group by group.
Value ByWindows(Translation& t, const Op& op, const Value& x, const Value& filter, const Geometry& g, uint32_t dtype) {
  const size_t space = g.stride.size();
  const std::vector<Value> sizes = SizesOf(t, x), filters = SizesOf(t, filter);
  std::vector<Value> out, taps;
  for (size_t i = 0; i < space; ++i) {
    const Value reach = Plus(t, Times(t, Minus(t, filters[i], Known(t, 1)), Known(t, g.rhs_dilation[i])), Known(t, 1));
    const Value room = Plus(t, Minus(t, sizes[i + 1], reach), Known(t, g.stride[i]));
    out.push_back(Sized(t, "Maximum", Sized(t, "TruncateDiv", room, Known(t, g.stride[i])), Known(t, 0)));
    taps.push_back(filters[i]);
  }
  const Value features = sizes.back(), in = filters[space], channels = filters[space + 1];
  Value windows = x;
  std::vector<Value> wide = {sizes[0]};
  wide.insert(wide.end(), out.begin(), out.end());
  if (space > 0) {
    std::vector<Value> at;
    const int rank = static_cast<int>(2 * space);
    for (size_t i = 0; i < space; ++i) {
      const Value begin = t.op("Mul", {CountAlong(t, out[i], rank, static_cast<int>(i)), Known(t, g.stride[i])});
      const Value tap = t.op("Mul", {CountAlong(t, taps[i], rank, static_cast<int>(space + i)), Known(t, g.rhs_dilation[i])});
      at.push_back(t.op("AddV2", {begin, tap}));
    }
    std::vector<Value> both = out;
    both.insert(both.end(), taps.begin(), taps.end());
    const std::vector<Value> inner(sizes.begin() + 1, sizes.begin() + 1 + static_cast<int64_t>(space));
    const Value places = BroadcastTo(t, Place(t, at, inner), both);
    const Value rows = ReshapeTo(t, x, {sizes[0], Product(t, inner, 0, inner.size()), features});
    windows = t.op("GatherV2", {rows, places, t.scalar(TW_INT32, 1)});
  }
  // windows: [batch, out..., taps..., features]; each group has features / groups of them.
  const Value positions = Product(t, wide, 0, wide.size()), window = Product(t, taps, 0, taps.size());
  const Value per_group = Sized(t, "TruncateDiv", channels, Known(t, g.groups));
  Value a = ReshapeTo(t, windows, {positions, window, Known(t, g.groups), in});
  Value b = ReshapeTo(t, filter, {window, in, Known(t, g.groups), per_group});
  // [groups, positions, channels of a group]
  Value y = Product(t, op, a, b, {{2}, {2}, {1, 3}, {0, 1}}, dtype);
  y = t.transpose(y, {1, 0, 2});
  wide.push_back(channels);
  return ReshapeTo(t, y, wide);
}

Value ConvolutionOf(Translation& t, const Op& op, const Value& lhs, const Value& rhs, Geometry g) {
  const Form input{op.i("input_batch_dimension"), op.i("input_feature_dimension"), op.ints("input_spatial_dimensions")};
  const Form kernel{op.i("kernel_input_feature_dimension"), op.i("kernel_output_feature_dimension"), op.ints("kernel_spatial_dimensions")};
  const Form output{op.i("output_batch_dimension"), op.i("output_feature_dimension"), op.ints("output_spatial_dimensions")};
  const size_t space = input.space.size();
  const int rank = static_cast<int>(space) + 2;
  if (RankOf(op, lhs) != rank || RankOf(op, rhs) != rank || kernel.space.size() != space || output.space.size() != space) {
    op.fail("operands of " + std::to_string(space) + " spatial axes must have rank " + std::to_string(rank));
  }
  for (const Form* f : {&input, &kernel, &output}) {
    std::vector<int64_t> sorted = Order(*f);
    std::sort(sorted.begin(), sorted.end());
    for (int axis = 0; axis < rank; ++axis) {
      if (sorted[static_cast<size_t>(axis)] != axis) op.fail("the dimension numbers do not name each axis once");
    }
  }
  const int64_t given = lhs.dim(static_cast<int>(input.feature)), in = rhs.dim(static_cast<int>(kernel.batch));
  if (given >= 0 && in >= 0 && (given / g.groups != in || given % g.groups)) {
    op.fail("the images have " + std::to_string(given) + " features, but filters of " + std::to_string(in) + " in " +
            std::to_string(g.groups) + " groups are given");
  }
  const uint32_t dtype = op.out_dtype();
  const bool image = (space == 1 || space == 2) && (dtype == TW_HALF || dtype == TW_BFLOAT16 || dtype == TW_FLOAT || dtype == TW_DOUBLE);
  const uint32_t type = WorkingType(dtype);
  Value x = t.transpose(t.cast(lhs, type), Order(input));
  std::vector<int64_t> filter_order = kernel.space;
  filter_order.push_back(kernel.batch);    // features in
  filter_order.push_back(kernel.feature);  // features out
  Value filter = t.transpose(t.cast(rhs, type), filter_order);
  std::vector<int64_t> turned;
  for (size_t i = 0; i < space; ++i) {
    if (g.turned[i]) turned.push_back(static_cast<int64_t>(i));
  }
  if (!turned.empty()) filter = t.op("ReverseV2", {filter, t.ints(turned)});
  std::vector<int64_t> low = {0}, high = {0}, between = {0};
  low.insert(low.end(), g.low.begin(), g.low.end());
  high.insert(high.end(), g.high.begin(), g.high.end());
  for (const int64_t d : g.lhs_dilation) between.push_back(d - 1);
  for (std::vector<int64_t>* v : {&low, &high, &between}) v->push_back(0);
  x = Pad(t, x, Like(t, x, 0), low, high, between);
  if (g.batch_groups > 1) {
    // Group k of the results sees group k of the images: the groups become groups of features.
    std::vector<Value> sizes = SizesOf(t, x);
    const Value each = Sized(t, "TruncateDiv", sizes[0], Known(t, g.batch_groups)), features = sizes.back();
    std::vector<Value> apart = {Known(t, g.batch_groups), each};
    apart.insert(apart.end(), sizes.begin() + 1, sizes.end());
    std::vector<int64_t> perm;
    for (int axis = 1; axis < rank; ++axis) perm.push_back(axis);
    perm.push_back(0);
    perm.push_back(rank);
    sizes[0] = each;
    sizes.back() = Times(t, features, Known(t, g.batch_groups));
    x = ReshapeTo(t, t.transpose(ReshapeTo(t, x, apart), perm), sizes);
    g.groups = g.batch_groups;
  }
  // Conv2D refuses what leaves no place for the filter by much, and filters without elements.
  const bool plain = x.static_shape() && filter.static_shape() && x.count() > 0 && filter.count() > 0 && op.out_type().static_shape() &&
                     importer::CountOf(op.out_shape().dims) > 0;
  Value y = image && (plain || !x.static_shape()) ? ByConv2D(t, x, filter, g) : ByWindows(t, op, x, filter, g, type);
  y = t.transpose(y, Inverse(Order(output)));
  return dtype == TW_BOOL ? t.op("NotEqual", {y, t.like(y, 0)}) : t.cast(y, dtype);
}

Geometry GeometryOf(const Op& op, const std::vector<int64_t>& padding) {
  Geometry g;
  const size_t space = op.ints("input_spatial_dimensions").size();
  const auto entries = [&](const char* name, int64_t otherwise) {
    std::vector<int64_t> v = op.ints(name, std::vector<int64_t>(space, otherwise));
    if (v.size() == 1 && space > 1) v.resize(space, v[0]);
    if (v.size() != space) op.fail(std::string(name) + " must have " + std::to_string(space) + " entries");
    return v;
  };
  g.stride = entries("window_strides", 1);
  g.lhs_dilation = entries("lhs_dilation", 1);
  g.rhs_dilation = entries("rhs_dilation", 1);
  for (const std::vector<int64_t>* v : {&g.stride, &g.lhs_dilation, &g.rhs_dilation}) {
    for (const int64_t one : *v) {
      if (one < 1 || one > kMostReach) {
        op.fail("a stride or dilation is " + std::to_string(one) + "; it must be between 1 and " + std::to_string(kMostReach));
      }
    }
  }
  for (const int64_t one : entries("window_reversal", 0)) g.turned.push_back(one != 0);
  const bool same = padding.size() == 1;
  if (!same && padding.size() != 2 * space) op.fail("padding must have two entries for each of " + std::to_string(space) + " spatial axes");
  for (size_t i = 0; i < space; ++i) {
    g.low.push_back(same ? padding[0] : padding[2 * i]);
    g.high.push_back(same ? padding[0] : padding[2 * i + 1]);
  }
  g.groups = op.i("feature_group_count", 1);
  g.batch_groups = op.i("batch_group_count", 1);
  if (g.groups < 1 || g.batch_groups < 1) op.fail("feature_group_count and batch_group_count must be at least 1");
  if (g.groups > 1 && g.batch_groups > 1) op.fail("feature_group_count and batch_group_count are both larger than 1");
  return g;
}

void Convolution(Translation& t, Op& op) {
  const size_t space = op.ints("input_spatial_dimensions").size();
  op.out(ConvolutionOf(t, op, op.in(0), op.in(1), GeometryOf(op, op.ints("padding", std::vector<int64_t>(2 * space, 0)))));
}

// The padding is computed; it must not be negative unless it is constant.
void DynamicConv(Translation& t, Op& op) {
  const Value& padding = op.in(2);
  if (padding.known()) return op.out(ConvolutionOf(t, op, op.in(0), op.in(1), GeometryOf(op, padding.integers())));
  const std::vector<int64_t> space = op.ints("input_spatial_dimensions");
  Geometry g = GeometryOf(op, std::vector<int64_t>(2 * space.size(), 0));
  const Value& x = op.in(0);
  const std::vector<int64_t> zeros(static_cast<size_t>(RankOf(op, x)), 0);
  std::vector<int64_t> between = zeros;
  for (size_t i = 0; i < space.size(); ++i) {
    between[static_cast<size_t>(AxisOf(op, space[i], x.rank()))] = g.lhs_dilation[i] - 1;
    g.lhs_dilation[i] = 1;
  }
  Value padded = Pad(t, x, Like(t, x, 0), zeros, zeros, between);
  std::vector<Value> entries(2 * zeros.size(), Known(t, 0));
  const Value flat = t.reshape(t.cast(padding, TW_INT64), Dims{-1});
  const std::vector<Value> given = Parts(t, flat, static_cast<int64_t>(2 * space.size()));
  for (size_t i = 0; i < space.size(); ++i) {
    entries[2 * static_cast<size_t>(space[i])] = given[2 * i];
    entries[2 * static_cast<size_t>(space[i]) + 1] = given[2 * i + 1];
  }
  padded = t.op("PadV2", {padded, t.reshape(Vector(t, entries), Dims{static_cast<int64_t>(zeros.size()), 2}), Like(t, x, 0)});
  op.out(t.shaped(ConvolutionOf(t, op, padded, op.in(1), g), op.out_shape()));
}

constexpr Entry kConv[] = {
    {"stablehlo.convolution", &Convolution},
    {"stablehlo.dynamic_conv", &DynamicConv},
};

}  // namespace

Family conv_translators() { return {std::begin(kConv), std::end(kConv)}; }

}  // namespace thalweg::stablehlo
