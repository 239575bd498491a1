// MaxPool, AveragePool, LpPool and the global forms. Ours pool two axes; other ranks, dilations and indices are made of strided
// slices.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>

#include "window.h"

namespace thalweg::onnx {
namespace {

constexpr int64_t kMostPlaces = 4096;  // of a window that is taken apart

// With ceil_mode the last window may begin where less than its size is left: padding behind grows by that much. A window that would begin
// in the padding behind does not exist.
void GrowForCeil(Node& n, const Value& x, Window* w) {
  if (!n.i("ceil_mode", 0)) return;
  for (size_t i = 0; i < w->axes(); ++i) {
    if (w->strides[i] == 1) continue;
    const int64_t size = x.dim(static_cast<int>(i) + 2);
    if (size < 0) n.unsupported("'ceil_mode' with strides needs a known size of axis " + std::to_string(i + 2));
    const int64_t span = size + w->before[i] + w->after[i] - w->reach(i);
    int64_t windows = (span + w->strides[i] - 1) / w->strides[i] + 1;
    if ((windows - 1) * w->strides[i] >= size + w->before[i]) --windows;
    w->after[i] = std::max(w->after[i], (windows - 1) * w->strides[i] + w->reach(i) - size - w->before[i]);
  }
}

std::vector<int64_t> KernelOf(Node& n) {
  std::vector<int64_t> kernel = n.ints("kernel_shape");
  if (kernel.empty()) n.fail("attribute 'kernel_shape' is absent");
  return kernel;
}

Attrs PoolAttrs(const Window& w) { return {{"ksize", Full(w.kernel, 1)}, {"strides", Full(w.strides, 1)}, {"data_format", "NCHW"}}; }

// A value below all others of the type.
Value Lowest(Builder& b, const Value& x) {
  switch (x.dtype()) {
    case TW_INT8: return b.like(x, -128);
    case TW_INT16: return b.like(x, -32768);
    case TW_INT32: return b.constant(Tensor::Vector(TW_INT32, std::vector<int64_t>{std::numeric_limits<int32_t>::min()}).Reshaped({}));
    case TW_INT64: return b.constant(Tensor::Vector(TW_INT64, std::vector<int64_t>{std::numeric_limits<int64_t>::min()}).Reshaped({}));
    case TW_UINT8:
    case TW_UINT16:
    case TW_UINT32:
    case TW_UINT64: return b.like(x, 0);
    default: return b.like(x, -std::numeric_limits<double>::infinity());
  }
}

// Calls `each` with the slice of x that is at each place of the window, one after the other. x is padded already.
void EachPlace(Builder& b, Node& n, const Value& x, const Window& w, const std::function<void(const Value&)>& each) {
  const size_t axes = w.axes();
  int64_t places = 1;
  for (const int64_t k : w.kernel) places = std::min(places * k, kMostPlaces + 1);
  if (places > kMostPlaces)
    n.unsupported("a window of more than " + std::to_string(kMostPlaces) + " places that has dilations, three axes or indices");
  std::vector<int64_t> strides = Full(w.strides, 1);
  for (int64_t p = 0; p < places; ++p) {
    std::vector<int64_t> begin = {0, 0}, end = {0, 0};
    int64_t end_mask = 3, left = p;
    for (size_t i = axes; i-- > 0;) {
      const int64_t at = left % w.kernel[i] * w.dilations[i];
      left /= w.kernel[i];
      begin.insert(begin.begin() + 2, at);
      const int64_t behind = w.reach(i) - 1 - at;
      end.insert(end.begin() + 2, -behind);
      if (behind == 0) end_mask |= int64_t{1} << (i + 2);
    }
    each(b.op("StridedSlice", {x, b.ints(begin), b.ints(end), b.ints(strides)}, {{"end_mask", end_mask}}));
  }
}

// Combines all places of each window by an op of two values that does not depend on their order: axis by axis, so that a window of k places
// on each of n axes costs n k nodes. x is padded already.
Value Combine(Builder& b, Node& n, Value x, const Window& w, const char* op) {
  for (size_t i = 0; i < w.axes(); ++i) {
    if (w.kernel[i] > kMostPlaces) n.unsupported("a window of " + std::to_string(w.kernel[i]) + " places that has dilations or three axes");
    const auto axis = i + 2;
    std::vector<int64_t> strides(axis + 1, 1);
    strides[axis] = w.strides[i];
    Value sum;
    for (int64_t k = 0; k < w.kernel[i]; ++k) {
      std::vector<int64_t> begin(axis + 1, 0), end(axis + 1, 0);
      begin[axis] = k * w.dilations[i];
      end[axis] = begin[axis] - (w.reach(i) - 1);
      const int64_t others = (int64_t{1} << axis) - 1, end_mask = end[axis] == 0 ? others | (int64_t{1} << axis) : others;
      const Value part =
          b.op("StridedSlice", {x, b.ints(begin), b.ints(end), b.ints(strides)}, {{"begin_mask", others}, {"end_mask", end_mask}});
      sum = sum ? b.op(op, {sum, part}) : part;
    }
    x = sum;
  }
  return x;
}

// The index of each element of one image, [1, 1, spatial...] of int64, as MaxPool's second output counts them.
Value Positions(Builder& b, Node& n, const Value& x, bool column_major) {
  Dims dims(x.dims().begin() + 2, x.dims().end());
  const int64_t count = CountOf(dims);
  if (count > (1 << 22) || x.dim(0) > (1 << 20) / std::max<int64_t>(x.dim(1), 1)) n.unsupported("indices of images of " + Text(dims));
  Tensor t(TW_INT64, Full(dims, 1));
  auto* to = static_cast<int64_t*>(t.mutable_data());
  for (int64_t i = 0; i < count; ++i) {
    if (!column_major) {
      to[i] = i;
      continue;
    }
    int64_t left = i, at = 0;
    std::vector<int64_t> index(dims.size());
    for (size_t a = dims.size(); a-- > 0;) {
      index[a] = left % dims[a];
      left /= dims[a];
    }
    for (size_t a = dims.size(); a-- > 0;) at = at * dims[a] + index[a];
    to[i] = at;
  }
  return b.constant(t);
}

// Largest elements with their indices in the whole tensor.
void MaxWithIndices(Builder& b, Node& n, const Value& x, const Window& w) {
  if (!x.static_shape())
    n.unsupported("the output of indices needs an input of known sizes, not " + (x.rank() < 0 ? "unknown rank" : Text(x.dims())));
  const Value padded = PadSpatial(b, x, w.before, w.after, Lowest(b, x));
  const Value positions = PadSpatial(b, Positions(b, n, x, n.i("storage_order", 0)), w.before, w.after, b.scalar(TW_INT64, 0));
  std::vector<Value> slices, indices;
  EachPlace(b, n, padded, w, [&](const Value& v) { slices.push_back(v); });
  const Value padding =
      PadSpatial(b, b.broadcast(b.constant(Tensor::Scalar(TW_BOOL, 1)), b.ints(Full(Dims(x.dims().begin() + 2, x.dims().end()), 1))),
                 w.before, w.after, b.constant(Tensor::Scalar(TW_BOOL, 0)));
  EachPlace(b, n, positions, w, [&](const Value& v) { indices.push_back(v); });
  std::vector<Value> inside;
  EachPlace(b, n, padding, w, [&](const Value& v) { inside.push_back(v); });
  // The first place inside of the image starts; a later one wins if it is larger.
  Value best = slices[0], at = b.broadcast(indices[0], b.shape(best)), real = inside[0];
  for (size_t i = 1; i < slices.size(); ++i) {
    const Value larger =
        b.op("LogicalOr", {b.op("Greater", {slices[i], best}), b.op("LogicalAnd", {inside[i], b.op("LogicalNot", {real})})});
    best = b.op("SelectV2", {larger, slices[i], best});
    at = b.op("SelectV2", {larger, indices[i], at});
    real = b.op("LogicalOr", {real, inside[i]});
  }
  // Images are counted one after the other.
  int64_t image = 1;
  for (int i = 2; i < x.rank(); ++i) image *= x.dim(i);
  Dims images(static_cast<size_t>(x.rank()), 1);
  images[0] = x.dim(0);
  images[1] = x.dim(1);
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < x.dim(0) * x.dim(1); ++i) offsets.push_back(i * image);
  n.out(0, best);
  n.out(1, b.op("AddV2", {at, b.reshape(b.ints(offsets), images)}));
}

bool Plain(const Window& w) {
  if (w.axes() > 2 || w.dilated()) return false;
  for (size_t i = 0; i < w.axes(); ++i) {
    if (w.before[i] < 0 || w.after[i] < 0 || w.before[i] >= w.kernel[i] || w.after[i] >= w.kernel[i]) return false;
  }
  return true;
}

// One axis as two, the first of size 1.
void Flatten(Window* w) {
  for (auto* list : {&w->kernel, &w->strides, &w->dilations}) list->insert(list->begin(), 1);
  for (auto* list : {&w->before, &w->after}) list->insert(list->begin(), 0);
}

void MaxPool(Builder& b, Node& n) {
  Value x = n.in(0);
  Window w = ReadWindow(n, x, KernelOf(n));
  GrowForCeil(n, x, &w);
  if (n.wants(1)) return MaxWithIndices(b, n, x, w);
  if (!Plain(w)) {
    return n.out(Combine(b, n, PadSpatial(b, x, w.before, w.after, Lowest(b, x)), w, "Maximum"));
  }
  const bool flat = w.axes() == 1;
  if (flat) {
    Flatten(&w);
    x = b.unsqueeze(x, {2});
  }
  Attrs attrs = PoolAttrs(w);
  attrs.emplace_back("padding", w.padded() ? "EXPLICIT" : "VALID");
  if (w.padded())
    attrs.emplace_back("explicit_paddings", std::vector<int64_t>{0, 0, 0, 0, w.before[0], w.after[0], w.before[1], w.after[1]});
  const Value y = b.op("MaxPool", {x}, attrs);
  n.out(flat ? b.squeeze(y, {2}) : y);
}

// The sum over each window, of an input that is padded already.
Value SumOf(Builder& b, Node& n, Value x, Window w) {
  if (w.axes() > 2 || w.dilated()) {
    return Combine(b, n, x, w, "AddV2");
  }
  const bool flat = w.axes() == 1;
  if (flat) {
    Flatten(&w);
    x = b.unsqueeze(x, {2});
  }
  Attrs attrs = PoolAttrs(w);
  attrs.emplace_back("padding", "VALID");
  Value y = b.op("AvgPool", {x}, attrs);
  y = b.op("Mul", {y, b.like(y, static_cast<double>(w.kernel[0] * w.kernel[1]))});
  return flat ? b.squeeze(y, {2}) : y;
}

void AveragePool(Builder& b, Node& n) {
  Value x = n.in(0);
  Window w = ReadWindow(n, x, KernelOf(n));
  const Window given = w;
  GrowForCeil(n, x, &w);
  const bool counted = n.i("count_include_pad", 0);
  double places = 1;
  for (const int64_t k : w.kernel) places *= static_cast<double>(k);
  const bool grown = w.after != given.after;
  if (!w.padded() || (counted && !grown)) {
    // Every window is full.
    Value padded = PadSpatial(b, x, w.before, w.after, b.like(x, 0));
    if (w.axes() <= 2 && !w.dilated()) {
      const bool flat = w.axes() == 1;
      if (flat) {
        Flatten(&w);
        padded = b.unsqueeze(padded, {2});
      }
      Attrs attrs = PoolAttrs(w);
      attrs.emplace_back("padding", "VALID");
      const Value y = b.op("AvgPool", {padded}, attrs);
      return n.out(flat ? b.squeeze(y, {2}) : y);
    }
    return n.out(b.op("Mul", {SumOf(b, n, padded, w), b.like(x, 1 / places)}));
  }
  // The number of places that count, for each window, from an image of ones.
  std::vector<Value> sizes = {b.ints({1, 1})};
  for (size_t i = 0; i < w.axes(); ++i) sizes.push_back(b.unsqueeze(b.size(x, static_cast<int>(i) + 2), {0}));
  Value ones = b.op("Fill", {b.concat(sizes, 0), b.like(x, 1)});
  if (counted) {
    ones = PadSpatial(b, ones, given.before, given.after, b.like(x, 1));
    std::vector<int64_t> none(w.axes(), 0), more;
    for (size_t i = 0; i < w.axes(); ++i) more.push_back(w.after[i] - given.after[i]);
    ones = PadSpatial(b, ones, none, more, b.like(x, 0));
  } else {
    ones = PadSpatial(b, ones, w.before, w.after, b.like(x, 0));
  }
  const Value sum = SumOf(b, n, PadSpatial(b, x, w.before, w.after, b.like(x, 0)), w);
  n.out(b.op("RealDiv", {sum, SumOf(b, n, ones, w)}));
}

void LpPool(Builder& b, Node& n) {
  const Value& x = n.in(0);
  Window w = ReadWindow(n, x, KernelOf(n));
  GrowForCeil(n, x, &w);
  const double p = n.opset < 2 ? n.f("p", 2) : static_cast<double>(n.i("p", 2));
  const Value powers = b.op("Pow", {b.op("Abs", {x}), b.like(x, p)});
  const Value sum = SumOf(b, n, PadSpatial(b, powers, w.before, w.after, b.like(x, 0)), w);
  n.out(b.op("Pow", {sum, b.like(x, 1 / p)}));
}

// All spatial axes; the rank must be known.
Value SpatialAxes(Builder& b, Node& n) {
  const int rank = n.in(0).rank();
  if (rank < 0) n.unsupported("the rank of the input is unknown");
  std::vector<int64_t> axes;
  for (int i = 2; i < rank; ++i) axes.push_back(i);
  return b.ints(axes, TW_INT32);
}

template <const char* kOp>
void Global(Builder& b, Node& n) {
  n.out(b.op(kOp, {n.in(0), SpatialAxes(b, n)}, {{"keep_dims", true}}));
}
constexpr char kMean[] = "Mean", kMax[] = "Max";

void GlobalLpPool(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const double p = n.opset < 2 ? n.f("p", 2) : static_cast<double>(n.i("p", 2));
  const Value sum = b.op("Sum", {b.op("Pow", {b.op("Abs", {x}), b.like(x, p)}), SpatialAxes(b, n)}, {{"keep_dims", true}});
  n.out(b.op("Pow", {sum, b.like(x, 1 / p)}));
}

// Puts elements at the places that MaxPool's indices name, and zeros elsewhere.
void MaxUnpool(Builder& b, Node& n) {
  const Value &x = n.in(0), &at = n.in(1);
  const Window w = ReadWindow(n, x, KernelOf(n));
  // Indices count in the tensor that the window implies, also if `output_shape` asks for a larger one.
  std::vector<Value> sizes = {b.unsqueeze(b.size(x, 0), {0}), b.unsqueeze(b.size(x, 1), {0})};
  for (size_t i = 0; i < w.axes(); ++i) {
    const Value size = b.unsqueeze(b.size(x, static_cast<int>(i) + 2), {0});
    const Value steps = b.op("Mul", {b.op("Sub", {size, b.ints({1})}), b.ints({w.strides[i]})});
    sizes.push_back(b.op("AddV2", {steps, b.ints({w.kernel[i] - w.before[i] - w.after[i]})}));
  }
  const Value dims = b.concat(sizes, 0);
  const Value count = b.op("Prod", {dims, b.ints({0}, TW_INT32)}, {{"keep_dims", true}});
  const Value flat = b.op("ScatterNd", {b.reshape(at, Dims{-1, 1}), b.reshape(x, Dims{-1}), count});
  const Value y = b.reshape(flat, dims);
  if (!n.has(2)) return n.out(y);
  const Value more = b.op("Sub", {n.in(2), dims});
  const Value pads = b.op("Pack", {b.op("Mul", {more, b.scalar(TW_INT64, 0)}), more}, {{"axis", 1}});
  n.out(b.op("Pad", {y, pads}));
}

constexpr Entry kPool[] = {
    {"AveragePool", 1, kLatest, &AveragePool},
    {"GlobalAveragePool", 1, kLatest, &Global<kMean>},
    {"GlobalLpPool", 1, kLatest, &GlobalLpPool},
    {"GlobalMaxPool", 1, kLatest, &Global<kMax>},
    {"LpPool", 1, kLatest, &LpPool},
    {"MaxPool", 1, kLatest, &MaxPool},
    {"MaxUnpool", 9, kLatest, &MaxUnpool},
};

}  // namespace

Family PoolTranslators() { return {std::begin(kPool), std::end(kPool)}; }

}  // namespace thalweg::onnx
