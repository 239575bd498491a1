// Conv and ConvTranspose over one, two and three spatial axes, with groups. Ours take filters [spatial..., channels in, channels out];
// ONNX's are [out, in, spatial...] and, transposed, [in, out, spatial...].
#include "conv.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "eight_bits.h"
#include "window.h"

namespace thalweg::onnx {
namespace {

// The kernel's sizes: those of the weights, which `kernel_shape` must agree with.
std::vector<int64_t> KernelOf(Node& n, const Value& w) {
  std::vector<int64_t> kernel = n.ints("kernel_shape");
  if (w.rank() < 0 && kernel.empty()) n.unsupported("the weights have an unknown rank");
  if (w.rank() >= 0) {
    if (w.rank() < 3) n.fail("the weights have rank " + std::to_string(w.rank()) + "; at least 3 is needed");
    if (!kernel.empty() && kernel.size() + 2 != static_cast<size_t>(w.rank()))
      n.fail("'kernel_shape' has " + std::to_string(kernel.size()) + " entries, but the weights have shape " + Text(w.dims()));
    kernel.resize(static_cast<size_t>(w.rank()) - 2, -1);
    for (size_t i = 0; i < kernel.size(); ++i) {
      const int64_t size = w.dim(static_cast<int>(i) + 2);
      if (size >= 0 && kernel[i] >= 0 && size != kernel[i]) n.fail("'kernel_shape' disagrees with the weights' shape " + Text(w.dims()));
      if (size >= 0) kernel[i] = size;
    }
  }
  for (int i = 0; i < w.rank(); ++i) {
    if (w.dim(i) > (int64_t{1} << 40)) n.fail("the weights have shape " + Text(w.dims()));
  }
  for (const int64_t k : kernel) {
    if (k < 0) n.unsupported("the size of the kernel is unknown");
  }
  return kernel;
}

// [a, b, spatial...] becomes [spatial..., first, second] of these two axes.
Value FilterOf(Builder& b, const Value& w, size_t axes, int64_t first, int64_t second) {
  std::vector<int64_t> perm;
  for (size_t i = 0; i < axes; ++i) perm.push_back(static_cast<int64_t>(i) + 2);
  perm.push_back(first);
  perm.push_back(second);
  return b.transpose(w, perm);
}

Value AddBias(Builder& b, Node& n, const Value& y, size_t axes) {
  if (!n.has(2)) return y;
  if (axes == 2) return b.op("BiasAdd", {y, n.in(2)}, {{"data_format", "NCHW"}});
  Dims dims(axes + 1, 1);
  dims[0] = -1;
  return b.op("AddV2", {y, b.reshape(n.in(2), dims)});
}

const char* Format(size_t axes) { return axes == 2 ? "NCHW" : "NCDHW"; }

Attrs ConvAttrs(const Window& w, bool explicit_padding) {
  Attrs attrs = {{"strides", Full(w.strides, 1)}, {"dilations", Full(w.dilations, 1)}, {"data_format", Format(w.axes())}};
  if (!explicit_padding) {
    attrs.emplace_back("padding", "VALID");
    return attrs;
  }
  std::vector<int64_t> pads(4, 0);
  for (size_t i = 0; i < w.axes(); ++i) {
    pads.push_back(w.before[i]);
    pads.push_back(w.after[i]);
  }
  attrs.emplace_back("padding", "EXPLICIT");
  attrs.emplace_back("explicit_paddings", pads);
  return attrs;
}

// Window of one axis as one of two, the first of size 1.
void Flatten(Window* w) {
  for (auto* list : {&w->kernel, &w->strides, &w->dilations}) list->insert(list->begin(), 1);
  for (auto* list : {&w->before, &w->after}) list->insert(list->begin(), 0);
}

bool Negative(const Window& w) {
  const auto below = [](int64_t p) { return p < 0; };
  return std::any_of(w.before.begin(), w.before.end(), below) || std::any_of(w.after.begin(), w.after.end(), below);
}

std::vector<Value> SplitAxis(Builder& b, const Value& v, int64_t axis, int64_t parts) {
  return b.ops("Split", {b.scalar(TW_INT32, static_cast<double>(axis)), v}, {{"num_split", parts}}, static_cast<size_t>(parts));
}

int64_t GroupsOf(Node& n) {
  const int64_t groups = n.i("group", 1);
  if (groups < 1 || groups > (1 << 20)) n.fail("'group' is " + std::to_string(groups));
  return groups;
}

// The convolution without bias.
Value Convolve(Builder& b, Node& n, Value x, Value w, Window window, int64_t groups) {
  if (window.axes() == 1) {
    Flatten(&window);
    x = b.unsqueeze(x, {2});
    w = b.unsqueeze(w, {2});
    return b.squeeze(Convolve(b, n, x, w, window, groups), {2});
  }
  if (window.axes() == 3 && groups > 1) {
    const std::vector<Value> parts = SplitAxis(b, x, 1, groups), filters = SplitAxis(b, w, 0, groups);
    std::vector<Value> made;
    for (size_t g = 0; g < parts.size(); ++g) made.push_back(Convolve(b, n, parts[g], filters[g], window, 1));
    return b.concat(made, 1);
  }
  const bool separate = window.axes() == 3 ? window.padded() : Negative(window);
  if (separate) {
    x = PadSpatial(b, x, window.before, window.after, b.like(x, 0));
    std::fill(window.before.begin(), window.before.end(), 0);
    std::fill(window.after.begin(), window.after.end(), 0);
  }
  // Numbers of 8 bits minus zero points, which come as int32, have products below 2^16: sums of 2^8 of them are exact in floats.
  const bool whole = x.dtype() == TW_INT32, exact = window.axes() == 2 && window.kernel[0] * window.kernel[1] <= 256;
  if (window.axes() == 2 && groups > 1 && w.dim(1) == 1 && x.dim(1) == groups && w.dim(0) >= 0 && (!whole || exact)) {
    // [out, 1, h, w] to [h, w, groups, out / groups]: results of one channel are neighbours in both.
    Value filter = b.reshape(w, {groups, w.dim(0) / groups, window.kernel[0], window.kernel[1]});
    filter = b.transpose(filter, {2, 3, 0, 1});
    if (!whole) return b.op("DepthwiseConv2dNative", {x, filter}, ConvAttrs(window, window.padded()));
    x = b.cast(x, TW_FLOAT);
    filter = b.cast(filter, TW_FLOAT);
    return b.cast(b.op("DepthwiseConv2dNative", {x, filter}, ConvAttrs(window, window.padded())), TW_INT32);
  }
  const Value filter = FilterOf(b, w, window.axes(), 1, 0);
  return b.op(window.axes() == 2 ? "Conv2D" : "Conv3D", {x, filter}, ConvAttrs(window, window.padded()));
}

}  // namespace

namespace {

// Checks the attribute `group` against the shapes of image and weights, and returns it.
int64_t CheckedGroups(Node& n, const Value& x, const Value& w) {
  const int64_t groups = GroupsOf(n);
  if (w.dim(0) >= 0 && w.dim(0) % groups) n.fail("'group' is " + std::to_string(groups) + ", but the weights have shape " + Text(w.dims()));
  if (x.dim(1) >= 0 && w.dim(1) >= 0 && x.dim(1) != w.dim(1) * groups) {
    n.fail("the input has " + std::to_string(x.dim(1)) + " channels, but the weights need " + std::to_string(w.dim(1) * groups));
  }
  return groups;
}

}  // namespace

Value ConvOf(Builder& b, Node& n, const Value& x, const Value& w) {
  const Window window = ReadWindow(n, x, KernelOf(n, w));
  return Convolve(b, n, x, w, window, CheckedGroups(n, x, w));
}

Value ConvOfEightBits(Builder& b, Node& n, const Value& x, const Value& zero_x, const Value& w, const Value& zero_w) {
  constexpr int64_t kFewResults = 16;
  if (!IsEightBits(x, zero_x) || !IsEightBits(w, zero_w) || x.rank() != 4 || w.rank() != 4) return Value();
  const Window window = ReadWindow(n, x, KernelOf(n, w));
  const int64_t groups = CheckedGroups(n, x, w);
  if (groups > 1 && (w.dim(0) < 0 || w.dim(0) / groups < kFewResults)) return Value();
  const Value padded = PadSpatial(b, x, window.before, window.after, ZeroPointOf(b, x, zero_x));
  const EightBits image = EightBitsOf(b, b.transpose(padded, {0, 2, 3, 1}), zero_x),
                  filter = EightBitsOf(b, FilterOf(b, w, 2, 1, 0), zero_w);
  const std::vector<int64_t> strides = {1, window.strides[0], window.strides[1], 1},
                             dilations = {1, window.dilations[0], window.dilations[1], 1};
  const Value sums = b.op("QuantizedConv2D", {image.number, filter.number, image.min, image.max, filter.min, filter.max},
                          {{"strides", strides}, {"dilations", dilations}, {"padding", "VALID"}});
  return b.transpose(SumsOf(b, sums), {0, 3, 1, 2});
}

namespace {

void Conv(Builder& b, Node& n) {
  const Value y = ConvOf(b, n, n.in(0), n.in(1));
  n.out(AddBias(b, n, y, KernelOf(n, n.in(1)).size()));
}

// ---- ConvTranspose ----

// A size as an int32 vector of one element: known now, or computed from x's shape.
Value SizeVector(Builder& b, const Value& x, int axis) { return b.cast(b.unsqueeze(b.size(x, axis), {0}), TW_INT32); }

// The transposed convolution without padding: sizes (n - 1) stride + reach.
Value Transposed(Builder& b, Value x, Value w, const Window& window, int64_t groups) {
  const size_t axes = window.axes();
  if (groups > 1 && axes == 3) {
    const std::vector<Value> parts = SplitAxis(b, x, 1, groups), filters = SplitAxis(b, w, 0, groups);
    std::vector<Value> made;
    for (size_t g = 0; g < parts.size(); ++g) made.push_back(Transposed(b, parts[g], filters[g], window, 1));
    return b.concat(made, 1);
  }
  std::vector<Value> sizes = {SizeVector(b, x, 0), b.cast(b.op("Mul", {b.unsqueeze(b.size(w, 1), {0}), b.ints({groups})}), TW_INT32)};
  for (size_t i = 0; i < axes; ++i) {
    const Value size = SizeVector(b, x, static_cast<int>(i) + 2);
    const Value steps = b.op("Mul", {b.op("Sub", {size, b.ints({1}, TW_INT32)}), b.ints({window.strides[i]}, TW_INT32)});
    sizes.push_back(b.op("AddV2", {steps, b.ints({window.reach(i)}, TW_INT32)}));
  }
  const Value filter = FilterOf(b, w, axes, 1, 0);
  return b.op(axes == 2 ? "Conv2DBackpropInput" : "Conv3DBackpropInputV2", {b.concat(sizes, 0), filter, x}, ConvAttrs(window, false));
}

void ConvTranspose(Builder& b, Node& n) {
  Value x = n.in(0), w = n.in(1);
  const std::vector<int64_t> kernel = KernelOf(n, w);
  const size_t axes = kernel.size();
  const int64_t groups = GroupsOf(n);
  const std::string automatic = n.s("auto_pad", "NOTSET");
  // ReadWindow computes "SAME" for convolutions; here the sizes of the result decide, below.
  Window window;
  window.kernel = kernel;
  window.strides = n.ints("strides", std::vector<int64_t>(axes, 1));
  window.dilations = n.ints("dilations", std::vector<int64_t>(axes, 1));
  const std::vector<int64_t> pads = n.ints("pads", std::vector<int64_t>(2 * axes, 0));
  const std::vector<int64_t> added = n.ints("output_padding", std::vector<int64_t>(axes, 0));
  std::vector<int64_t> sizes = n.ints("output_shape");
  if (sizes.size() == axes + 2) sizes.erase(sizes.begin(), sizes.begin() + 2);
  if (axes < 1 || axes > 3) n.unsupported(std::to_string(axes) + " spatial axes; 1 to 3 are supported");
  if (window.strides.size() != axes || window.dilations.size() != axes || pads.size() != 2 * axes || added.size() != axes ||
      (!sizes.empty() && sizes.size() != axes)) {
    n.fail("'strides', 'dilations', 'pads', 'output_padding' or 'output_shape' does not fit " + std::to_string(axes) + " spatial axes");
  }
  for (size_t i = 0; i < axes; ++i) {
    for (const int64_t v : {window.kernel[i], window.strides[i], window.dilations[i]}) {
      if (v < 1 || v > (1 << 20)) n.fail("sizes, strides and dilations must lie between 1 and 2^20, not " + std::to_string(v));
    }
    for (const int64_t v : {pads[i], pads[axes + i], added[i], sizes.empty() ? 0 : sizes[i]}) {
      if (v < 0 || v > (1 << 20)) n.fail("paddings and sizes must lie between 0 and 2^20, not " + std::to_string(v));
    }
  }
  window.before.assign(axes, 0);
  window.after.assign(axes, 0);
  // How much is cut off the full result before and behind; negative: zeros are added.
  std::vector<int64_t> before(axes), after(axes);
  for (size_t i = 0; i < axes; ++i) {
    before[i] = pads[i];
    after[i] = pads[axes + i] - added[i];
    const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
    if (!same && sizes.empty()) {
      if (automatic == "VALID") before[i] = 0, after[i] = -added[i];
      continue;
    }
    const int64_t size = x.dim(static_cast<int>(i) + 2);
    // SAME: n strides; the full result has (n - 1) strides + reach, whatever n is.
    int64_t total = window.reach(i) + added[i] - window.strides[i];
    if (!sizes.empty()) {
      if (size < 0) n.unsupported("'output_shape' needs a known size of axis " + std::to_string(i + 2));
      if (size > (int64_t{1} << 40)) n.fail("the input has shape " + Text(x.dims()));
      total = window.strides[i] * (size - 1) + added[i] + window.reach(i) - sizes[i];
    }
    const int64_t cut = std::max<int64_t>(total, 0), less = cut / 2;
    before[i] = automatic == "SAME_UPPER" ? less : cut - less;
    after[i] = total - before[i] - added[i];
  }
  if (axes == 1) {
    Flatten(&window);
    before.insert(before.begin(), 0);
    after.insert(after.begin(), 0);
    x = b.unsqueeze(x, {2});
    w = b.unsqueeze(w, {2});
  }
  for (int64_t& p : before) p = -p;
  for (int64_t& p : after) p = -p;
  Value y = Transposed(b, x, w, window, groups);
  y = PadSpatial(b, y, before, after, b.like(y, 0));
  if (axes == 1) y = b.squeeze(y, {2});
  n.out(AddBias(b, n, y, axes));
}

// A convolution of each channel on its own over the current and past positions. Positions before the first are in `past_state`.
void CausalConvWithState(Builder& b, Node& n) {
  const Value &x = n.in(0), &w = n.in(1);
  const std::string activation = n.s("activation", "none");
  if (x.rank() != 3 || w.rank() != 3) n.fail("the input and the weights need rank 3");
  if (w.dim(2) < 1 || w.dim(0) < 1) n.unsupported("the shape of the weights is unknown");
  if (activation != "none" && activation != "silu" && activation != "swish")
    n.fail("'activation' is '" + activation + "'; it must be none, silu or swish");
  const int64_t past = w.dim(2) - 1;
  const Value whole = n.has(3) ? b.concat({n.in(3), x}, 2) : b.op("Pad", {x, b.reshape(b.ints({0, 0, 0, 0, past, 0}), Dims{3, 2})});
  const Value rows = b.unsqueeze(b.transpose(whole, {0, 2, 1}), {1}), kernel = b.unsqueeze(b.transpose(w, {2, 0, 1}), {0});
  Value y = b.op("DepthwiseConv2dNative", {rows, kernel}, {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "VALID"}});
  if (n.has(2)) y = b.op("AddV2", {y, n.in(2)});
  if (activation != "none") y = b.op("Mul", {y, b.op("Sigmoid", {y})});
  n.out(0, b.transpose(b.squeeze(y, {1}), {0, 2, 1}));
  const Value begin = b.concat({b.ints({0, 0}), b.unsqueeze(b.op("Sub", {b.size(whole, 2), b.scalar(TW_INT64, double(past))}), {0})}, 0);
  n.out(1, b.op("Slice", {whole, begin, b.ints({-1, -1, past})}));
}

constexpr Entry kConv[] = {
    {"CausalConvWithState", 27, kLatest, &CausalConvWithState},
    {"Conv", 1, kLatest, &Conv},
    {"ConvTranspose", 1, kLatest, &ConvTranspose},
};

}  // namespace

Family ConvTranslators() { return {std::begin(kConv), std::end(kConv)}; }

}  // namespace thalweg::onnx
