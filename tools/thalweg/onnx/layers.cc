// Products, convolutions, pools, normalisation, attention, resizing.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "table.h"

namespace thalweg::cli::onnx {
namespace {

// ---- Products ----

// x with its last two axes swapped.
Name Swapped(Op& o, uint32_t i) {
  Sizes order(size_t(o.known_rank(i)));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return o.net.Transpose(o.in(i), order);
}

void Product(Op& o, const char* a, const char* b) {
  o.out(0, o.net.Add("MatMul", {o.b(a) ? Swapped(o, 0) : o.in(0), o.b(b) ? Swapped(o, 1) : o.in(1)}));
}
void MatMul(Op& o, const char*) { Product(o, "transpose_a", "transpose_b"); }
void BatchMatMul(Op& o, const char*) { Product(o, "adj_x", "adj_y"); }

void Einsum(Op& o, const char*) { o.out(0, o.net.Add("Einsum", o.all(), {{"equation", o.s("equation")}})); }

void ResourceGather(Op& o, const char*) {
  if (o.i("batch_dims") != 0) Op::Unsupported("batch_dims is not 0");
  o.out(0, o.net.Add("Gather", {o.in(0), o.in(1)}, {{"axis", int64_t{0}}}));
}

// ---- Images ----

// The order of axes of an image operation and what follows from it.
struct Image {
  explicit Image(Op& o) : op(o), channels_first(o.has("data_format") && o.s("data_format").substr(0, 2) == "NC") {}
  Name in(uint32_t i = 0) const { return channels_first ? op.in(i) : op.first(i); }
  void out(uint32_t i, const Name& y) const { channels_first ? op.out(i, y) : op.out_first(i, y); }
  // The entries for the positions, of a list that has one for each axis.
  Sizes positions(const Sizes& all) const {
    return channels_first ? Sizes(all.begin() + 2, all.end()) : Sizes(all.begin() + 1, all.end() - 1);
  }
  int64_t channels(const Sizes& all) const { return channels_first ? all.at(1) : all.back(); }
  Op& op;
  bool channels_first;
};

// Adds the attributes for the padding. window: sizes of the window, dilations included.
void AddPadding(const Image& image, const Sizes& window, const Sizes& strides, std::vector<Attr>* attrs) {
  Op& o = image.op;
  const std::string padding = o.s("padding");
  const size_t n = window.size();
  if (padding == "EXPLICIT") {
    const Sizes all = o.list("explicit_paddings");
    Sizes pads;
    for (const size_t side : {0, 1}) {
      for (size_t k = 0; k < n; ++k) pads.push_back(all.at(2 * (k + (image.channels_first ? 2 : 1)) + side));
    }
    attrs->push_back({"pads", pads});
  } else if (padding == "SAME") {
    const Sizes sizes = image.positions(o.dims(0));
    if (std::find(sizes.begin(), sizes.end(), -1) != sizes.end()) {
      attrs->push_back({"auto_pad", std::string("SAME_UPPER")});
      return;
    }
    Sizes begins, ends;
    for (size_t k = 0; k < n; ++k) {
      const int64_t count = (sizes[k] + strides[k] - 1) / strides[k];
      const int64_t total = std::max<int64_t>((count - 1) * strides[k] + window[k] - sizes[k], 0);
      begins.push_back(total / 2);
      ends.push_back(total - total / 2);
    }
    begins.insert(begins.end(), ends.begin(), ends.end());
    attrs->push_back({"pads", begins});
  }
}

Sizes Dilated(const Sizes& window, const Sizes& dilations) {
  Sizes all;
  for (size_t k = 0; k < window.size(); ++k) all.push_back((window[k] - 1) * dilations[k] + 1);
  return all;
}

Sizes KernelSizes(Op& o, uint32_t i) {
  const Sizes kernel = o.dims(i);
  if (std::find(kernel.begin(), kernel.end(), -1) != kernel.end()) Op::Unsupported("the shape of the kernel is unknown");
  return kernel;
}

// [height, width, in, out] becomes [out, in, height, width].
Name KernelFirst(Op& o, const Name& kernel, size_t rank) {
  Sizes order = {int64_t(rank) - 1, int64_t(rank) - 2};
  for (size_t k = 0; k + 2 < rank; ++k) order.push_back(int64_t(k));
  return o.net.Transpose(kernel, order);
}

void Conv(Op& o, const char*) {
  const Image image(o);
  const Sizes kernel = KernelSizes(o, 1), strides = image.positions(o.list("strides")), dilations = image.positions(o.list("dilations"));
  const Sizes window(kernel.begin(), kernel.end() - 2);
  const int64_t channels = image.channels(o.dims(0)), own = kernel[kernel.size() - 2];
  if (channels < 0) Op::Unsupported("the number of channels is unknown");
  std::vector<Attr> attrs = {{"kernel_shape", window}, {"strides", strides}, {"dilations", dilations}, {"group", channels / own}};
  AddPadding(image, Dilated(window, dilations), strides, &attrs);
  image.out(0, o.net.Add("Conv", {image.in(), KernelFirst(o, o.in(1), kernel.size())}, attrs));
}

void DepthwiseConv(Op& o, const char*) {
  const Image image(o);
  const Sizes kernel = KernelSizes(o, 1), strides = image.positions(o.list("strides")), dilations = image.positions(o.list("dilations"));
  const Sizes window(kernel.begin(), kernel.end() - 2);
  const Name joined = o.net.Add("Reshape", {o.in(1), o.net.Ints({kernel[0], kernel[1], 1, kernel[2] * kernel[3]})});
  std::vector<Attr> attrs = {{"kernel_shape", window}, {"strides", strides}, {"dilations", dilations}, {"group", kernel[2]}};
  AddPadding(image, Dilated(window, dilations), strides, &attrs);
  image.out(0, o.net.Add("Conv", {image.in(), KernelFirst(o, joined, 4)}, attrs));
}

// Cuts or fills up a transposed convolution without padding to the sizes that input 0 has, which the run computes.
Name ToSizes(const Image& image, const Name& full, size_t n, bool same) {
  Op& o = image.op;
  Sizes axes(n);
  std::iota(axes.begin(), axes.end(), 2);
  const int64_t first = image.channels_first ? 2 : 1, last = first + int64_t(n);
  const Name wanted = o.net.Add("Slice", {o.longs(0), o.net.Ints({first}), o.net.Ints({last})});
  const Name has = o.net.Add("Slice", {o.net.Add("Shape", {full}), o.net.Ints({2}), o.net.Ints({2 + int64_t(n)})});
  const Name zero = o.net.Scalar(TW_INT64, 0);
  const Name missing = o.net.Add("Max", {o.net.Add("Sub", {wanted, has}), zero}),
             over = o.net.Add("Max", {o.net.Add("Sub", {has, wanted}), zero});
  const Name pads = o.net.Add("Concat", {o.net.Ints(Sizes(n + 4, 0)), missing}, {{"axis", int64_t{0}}});
  const Name begin = same ? o.net.Add("Div", {over, o.net.Scalar(TW_INT64, 2)}) : o.net.Ints(Sizes(n, 0));
  return o.net.Add("Slice", {o.net.Add("Pad", {full, pads}), begin, o.net.Add("Add", {begin, wanted}), o.net.Ints(axes)});
}

// The gradient of a convolution, which transposed convolutions are. Its result has the sizes that input 0 says.
void ConvBackprop(Op& o, const char*) {
  const Image image(o);
  const Sizes kernel = KernelSizes(o, 1), strides = image.positions(o.list("strides")), dilations = image.positions(o.list("dilations"));
  const Sizes window(kernel.begin(), kernel.end() - 2), whole = Dilated(window, dilations), result = o.out_dims(0);
  if (o.s("padding") == "EXPLICIT") Op::Unsupported("the padding is EXPLICIT");
  const bool same = o.s("padding") == "SAME";
  const int64_t own = kernel[kernel.size() - 2], channels = result.empty() ? -1 : image.channels(result);
  std::vector<Attr> attrs = {
      {"kernel_shape", window}, {"strides", strides}, {"dilations", dilations}, {"group", channels < 0 ? int64_t{1} : channels / own}};
  const auto transposed = [&] { return o.net.Add("ConvTranspose", {image.in(2), KernelFirst(o, o.in(1), kernel.size())}, attrs); };
  const Sizes from = image.positions(o.dims(2)), to = result.empty() ? Sizes(window.size(), -1) : image.positions(result);
  Sizes pads(2 * window.size()), more;
  for (size_t k = 0; k < window.size(); ++k) {
    if (from[k] < 0 || to[k] < 0) return image.out(0, ToSizes(image, transposed(), window.size(), same));
    const int64_t reach = (from[k] - 1) * strides[k] + whole[k], cut = same ? std::max<int64_t>(reach - to[k], 0) : 0;
    pads[k] = cut / 2;
    pads[k + window.size()] = cut - cut / 2;
    more.push_back(to[k] - (reach - cut));
  }
  attrs.push_back({"pads", pads});
  attrs.push_back({"output_padding", more});
  image.out(0, transposed());
}

void Pool(Op& o, const char* twin) {
  const Image image(o);
  const Sizes all = o.list("ksize"), steps = o.list("strides");
  const Sizes window = image.positions(all), strides = image.positions(steps);
  if (all[0] != 1 || image.channels(all) != 1 || steps[0] != 1 || image.channels(steps) != 1)
    Op::Unsupported("the window spans the batch or the channels");
  std::vector<Attr> attrs = {{"kernel_shape", window}, {"strides", strides}};
  AddPadding(image, window, strides, &attrs);
  image.out(0, o.net.Add(twin, {image.in()}, attrs));
}

void BiasAdd(Op& o, const char*) {
  const Image image(o);
  const int32_t rank = o.known_rank(0);
  if (!image.channels_first && !o.prefers_first(0)) {
    o.out(0, o.net.Add("Add", {o.in(0), o.in(1)}));
    return;
  }
  Sizes shape(size_t(rank) - 1, 1);
  shape[0] = -1;
  image.out(0, o.net.Add("Add", {image.in(), o.net.Add("Reshape", {o.in(1), o.net.Ints(shape)})}));
}

void BatchNorm(Op& o, const char*) {
  if (o.b("is_training")) Op::Unsupported("it computes statistics of the batch (is_training)");
  const Image image(o);
  image.out(0, o.net.Add("BatchNormalization", {image.in(), o.in(1), o.in(2), o.in(3), o.in(4)}, {{"epsilon", o.f("epsilon")}}));
  o.out(1, o.in(3));
  o.out(2, o.in(4));
}

void Lrn(Op& o, const char*) {
  const int64_t size = 2 * o.i("depth_radius") + 1;
  const std::vector<Attr> attrs = {{"size", size}, {"alpha", o.f("alpha") * double(size)}, {"beta", o.f("beta")}, {"bias", o.f("bias")}};
  Image(o).out(0, o.net.Add("LRN", {Image(o).in()}, attrs));
}

void DepthToSpace(Op& o, const char* twin) {
  std::vector<Attr> attrs = {{"blocksize", o.i("block_size")}};
  if (std::string(twin) == "DepthToSpace") attrs.push_back({"mode", std::string("DCR")});
  Image(o).out(0, o.net.Add(twin, {Image(o).in()}, attrs));
}

void Resize(Op& o, const char* twin) {
  const bool nearest = std::string(twin) == "nearest";
  const bool corners = o.b("align_corners"), half = o.b("half_pixel_centers");
  const Name sizes =
      o.net.Add("Concat", {o.net.Add("Slice", {o.net.Add("Shape", {o.first(0)}), o.net.Ints({0}), o.net.Ints({2})}), o.vector(1)},
                {{"axis", int64_t{0}}});
  std::vector<Attr> attrs = {{"mode", std::string(twin)},
                             {"coordinate_transformation_mode", std::string(corners ? "align_corners"
                                                                            : half  ? "half_pixel"
                                                                                    : "asymmetric")}};
  if (nearest) attrs.push_back({"nearest_mode", std::string(corners || half ? "round_prefer_ceil" : "floor")});
  if (!nearest && o.dtype(0) != TW_FLOAT) Op::Unsupported("the image is not of floats");
  o.out_first(0, o.net.Add("Resize", {o.first(0), "", "", sizes}, attrs));
}

// ---- Attention ----

// 0 where a query sees a key, else -infinity: [queries, keys]. Query i sees the keys up to i.
Name CausalMask(Op& o) {
  const auto places = [&](uint32_t i, int64_t axis) {
    const Name count =
        o.net.Add("Squeeze", {o.net.Add("Slice", {o.net.Add("Shape", {o.in(i)}), o.net.Ints({-2}), o.net.Ints({-1})}), o.net.Ints({0})});
    const Name range = o.net.Add("Range", {o.net.Scalar(TW_INT64, 0), count, o.net.Scalar(TW_INT64, 1)});
    return o.net.Add("Unsqueeze", {range, o.net.Ints({axis})});
  };
  const Name hidden = o.net.Add("Greater", {places(1, 0), places(0, 1)});
  return o.net.Add("Where", {hidden, o.net.Scalar(o.dtype(0), -INFINITY), o.net.Scalar(o.dtype(0), 0)});
}

void Attention(Op& o, const char*) {
  const Sizes dims = o.dims(0);
  double scale = o.f("scale");
  if (scale == 0) {
    if (dims.back() < 1) Op::Unsupported("the size of a head is unknown");
    scale = 1 / std::sqrt(double(dims.back()));
  }
  const Name scaled = o.net.Add("Mul", {o.in(0), o.net.Scalar(o.dtype(0), scale)});
  Name scores = o.net.Add("MatMul", {scaled, Swapped(o, 1)});
  if (o.inputs() > 3) scores = o.net.Add("Add", {scores, o.in(3)});
  if (o.b("is_causal")) scores = o.net.Add("Add", {scores, CausalMask(o)});
  o.out(0, o.net.Add("MatMul", {o.net.Add("Softmax", {scores}, {{"axis", int64_t{-1}}}), o.in(2)}));
}

constexpr Translator kTable[] = {
    {"AvgPool", Pool, "AveragePool"},
    {"AvgPool3D", Pool, "AveragePool"},
    {"BatchMatMul", BatchMatMul},
    {"BatchMatMulV2", BatchMatMul},
    {"BatchMatMulV3", BatchMatMul},
    {"BiasAdd", BiasAdd},
    {"Conv2D", Conv},
    {"Conv2DBackpropInput", ConvBackprop},
    {"Conv3D", Conv},
    {"Conv3DBackpropInputV2", ConvBackprop},
    {"DepthToSpace", DepthToSpace, "DepthToSpace"},
    {"DepthwiseConv2dNative", DepthwiseConv},
    {"Einsum", Einsum},
    {"FusedBatchNorm", BatchNorm},
    {"FusedBatchNormV2", BatchNorm},
    {"FusedBatchNormV3", BatchNorm},
    {"LRN", Lrn},
    {"MatMul", MatMul},
    {"MaxPool", Pool, "MaxPool"},
    {"MaxPool3D", Pool, "MaxPool"},
    {"ResizeBilinear", Resize, "linear"},
    {"ResizeNearestNeighbor", Resize, "nearest"},
    {"ResourceGather", ResourceGather},
    {"ScaledDotProductAttention", Attention},
    {"SpaceToDepth", DepthToSpace, "SpaceToDepth"},
};

}  // namespace

std::span<const Translator> LayerTranslators() { return kTable; }

}  // namespace thalweg::cli::onnx
