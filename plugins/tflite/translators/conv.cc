// Convolutions and poolings. Filters are [out, height, width, in] in the file and [height, width, in, out] here.
#include <iterator>

#include "../graph.h"

namespace thalweg::tflite {
namespace {

const char* PaddingOf(const Node& n) {
  const int64_t padding = n.byte(0);
  if (padding != 0 && padding != 1) n.fail("padding " + std::to_string(padding) + " is unknown; 0 is SAME, 1 is VALID");
  return padding == 0 ? "SAME" : "VALID";
}

Value WithBias(Graph& g, Node& n, size_t i, const Value& y) {
  if (!n.has(i)) return y;
  return g.op("AddV2", {y, n.bias(i)});
}

std::vector<int64_t> Full(int64_t h, int64_t w) { return {1, h, w, 1}; }
std::vector<int64_t> Full(int64_t d, int64_t h, int64_t w) { return {1, d, h, w, 1}; }

void Conv2D(Graph& g, Node& n) {
  enum { kPadding, kStrideW, kStrideH, kActivation, kDilationW, kDilationH };
  const Value y = g.op("Conv2D", {n.in(0), g.transpose(n.in(1), {1, 2, 3, 0})},
                       {{"strides", Full(n.i(kStrideH), n.i(kStrideW))},
                        {"padding", PaddingOf(n)},
                        {"dilations", Full(n.i(kDilationH, 1), n.i(kDilationW, 1))}});
  n.out(g.activated(n, WithBias(g, n, 2, y), n.byte(kActivation)));
}

// The filter is [1, height, width, channels times results for each].
void Depthwise(Graph& g, Node& n) {
  enum { kPadding, kStrideW, kStrideH, kMultiplier, kActivation, kDilationW, kDilationH };
  const Value x = n.in(0), filter = n.in(1);
  const int64_t out = filter.dim(3);
  if (filter.rank() != 4 || filter.dim(0) != 1 || out < 1 || filter.dim(1) < 1 || filter.dim(2) < 1)
    n.fail("the filter's shape is not [1, height, width, channels]");
  const int64_t given = n.i(kMultiplier), channels = x.dim(3) > 0 ? x.dim(3) : given > 0 ? out / given : -1;
  if (channels < 1 || out % channels)
    n.fail("a filter for " + std::to_string(out) + " channels does not fit images of " + std::to_string(channels));
  const Value y = g.op("DepthwiseConv2dNative", {x, g.reshape(filter, {filter.dim(1), filter.dim(2), channels, out / channels})},
                       {{"strides", Full(n.i(kStrideH), n.i(kStrideW))},
                        {"padding", PaddingOf(n)},
                        {"dilations", Full(n.i(kDilationH, 1), n.i(kDilationW, 1))}});
  n.out(g.activated(n, WithBias(g, n, 2, y), n.byte(kActivation)));
}

void Transposed(Graph& g, Node& n) {
  enum { kPadding, kStrideW, kStrideH, kActivation };
  const Value y = g.op("Conv2DBackpropInput", {n.in(0), g.transpose(n.in(1), {1, 2, 0, 3}), n.in(2)},
                       {{"strides", Full(n.i(kStrideH), n.i(kStrideW))}, {"padding", PaddingOf(n)}});
  n.out(g.activated(n, WithBias(g, n, 3, y), n.byte(kActivation)));
}

enum Volume { kVolumePadding, kStrideD, kVolumeStrideW, kVolumeStrideH, kVolumeActivation, kDilationD, kVolumeDilationW, kVolumeDilationH };

Attrs VolumeAttrs(const Node& n) {
  return {{"strides", Full(n.i(kStrideD), n.i(kVolumeStrideH), n.i(kVolumeStrideW))},
          {"padding", PaddingOf(n)},
          {"dilations", Full(n.i(kDilationD, 1), n.i(kVolumeDilationH, 1), n.i(kVolumeDilationW, 1))}};
}

// The filters of volumes are stored as ours.
void Conv3D(Graph& g, Node& n) {
  const Value y = g.op("Conv3D", {n.in(0), n.in(1)}, VolumeAttrs(n));
  n.out(g.activated(n, WithBias(g, n, 2, y), n.byte(kVolumeActivation)));
}

void Transposed3D(Graph& g, Node& n) {
  const Value y = g.op("Conv3DBackpropInputV2", {n.in(0), n.in(1), n.in(2)}, VolumeAttrs(n));
  n.out(g.activated(n, WithBias(g, n, 3, y), n.byte(kVolumeActivation)));
}

enum Pool { kPoolPadding, kPoolStrideW, kPoolStrideH, kWidth, kHeight, kPoolActivation };

Value Pooled(Graph& g, Node& n, const char* op, const Value& x) {
  return g.op(
      op, {x},
      {{"ksize", Full(n.i(kHeight), n.i(kWidth))}, {"strides", Full(n.i(kPoolStrideH), n.i(kPoolStrideW))}, {"padding", PaddingOf(n)}});
}

void AveragePool(Graph& g, Node& n) { n.out(g.activated(n, Pooled(g, n, "AvgPool", n.in(0)), n.byte(kPoolActivation))); }
void MaxPool(Graph& g, Node& n) { n.out(g.activated(n, Pooled(g, n, "MaxPool", n.in(0)), n.byte(kPoolActivation))); }
void L2Pool(Graph& g, Node& n) {
  const Value mean = Pooled(g, n, "AvgPool", g.op("Square", {n.in(0)}));
  n.out(g.activated(n, g.op("Sqrt", {mean}), n.byte(kPoolActivation)));
}

constexpr Entry kTable[] = {
    {1, "AVERAGE_POOL_2D", &AveragePool},
    {3, "CONV_2D", &Conv2D},
    {4, "DEPTHWISE_CONV_2D", &Depthwise},
    {12, "L2_POOL_2D", &L2Pool},
    {17, "MAX_POOL_2D", &MaxPool},
    {67, "TRANSPOSE_CONV", &Transposed},
    {132, "CONV_3D", &Conv3D},
    {141, "CONV_3D_TRANSPOSE", &Transposed3D},
};

}  // namespace

Family conv_translators() { return {std::begin(kTable), std::end(kTable)}; }

}  // namespace thalweg::tflite
