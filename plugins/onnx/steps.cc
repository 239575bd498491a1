// Common steps of translators. Each adds nothing if it would change nothing.
#include <algorithm>
#include <numeric>

#include "builder.h"

namespace thalweg::onnx {
namespace {

std::vector<int64_t> Normalized(std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& a : axes) {
    if (a < -rank || a >= rank)
      throw Error{TW_INVALID_ARGUMENT, "axis " + std::to_string(a) + " does not exist at rank " + std::to_string(rank)};
    if (a < 0) a += rank;
  }
  std::sort(axes.begin(), axes.end());
  for (size_t i = 1; i < axes.size(); ++i) {
    if (axes[i] == axes[i - 1]) throw Error{TW_INVALID_ARGUMENT, "axis " + std::to_string(axes[i]) + " is named twice"};
  }
  return axes;
}

}  // namespace

Value Builder::cast(const Value& v, uint32_t dtype) { return v.dtype() == dtype ? v : op("Cast", {v}, {{"DstT", Type{dtype}}}); }

Value Builder::reshape(const Value& v, const Dims& dims) {
  if (v.static_shape() && v.dims() == dims) return v;
  const bool whole = std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d >= 0; });
  if (v.constant() && v.dtype() != TW_STRING && whole) return constant(v.constant()->Reshaped(dims));
  return op("Reshape", {v, ints(dims)});
}

Value Builder::reshape(const Value& v, const Value& dims) {
  if (dims.constant()) return reshape(v, dims.constant()->integers());
  // One symbolic size follows from the others.
  if (dims.known() && dims.static_shape()) {
    Dims to;
    for (const Element& e : *dims.known()) to.push_back(e.known ? e.i : -1);
    const bool certain = std::none_of(dims.known()->begin(), dims.known()->end(), [](const Element& e) { return e.known && e.i <= 0; });
    if (certain && std::count(to.begin(), to.end(), -1) == 1) return op("Reshape", {v, ints(to)});
  }
  return op("Reshape", {v, dims});
}

Value Builder::transpose(const Value& v, const std::vector<int64_t>& perm) {
  std::vector<int64_t> same(perm.size());
  std::iota(same.begin(), same.end(), 0);
  if (perm == same) return v;
  return op("Transpose", {v, ints(perm, TW_INT32)});
}

Value Builder::unsqueeze(const Value& v, std::vector<int64_t> axes) {
  if (axes.empty()) return v;
  if (v.rank() < 0) {
    if (axes.size() == 1) return op("ExpandDims", {v, scalar(TW_INT32, static_cast<double>(axes[0]))});
    if (std::any_of(axes.begin(), axes.end(), [](int64_t a) { return a < 0; })) {
      throw Error{TW_UNIMPLEMENTED, "the rank must be known to add several axes that count from the end"};
    }
    std::sort(axes.begin(), axes.end());
    Value grown = v;
    for (const int64_t a : axes) grown = op("ExpandDims", {grown, scalar(TW_INT32, static_cast<double>(a))});
    return grown;
  }
  const int64_t rank = v.rank() + static_cast<int64_t>(axes.size());
  axes = Normalized(std::move(axes), rank);
  if (v.static_shape()) {
    Dims to = v.dims();
    for (const int64_t a : axes) to.insert(to.begin() + a, 1);
    return reshape(v, to);
  }
  Value grown = v;
  for (const int64_t a : axes) grown = op("ExpandDims", {grown, scalar(TW_INT32, static_cast<double>(a))});
  return grown;
}

Value Builder::squeeze(const Value& v, std::vector<int64_t> axes) {
  if (axes.empty()) return v;
  if (v.rank() >= 0) axes = Normalized(std::move(axes), v.rank());
  return op("Squeeze", {v}, {{"squeeze_dims", std::move(axes)}});
}

Value Builder::shape(const Value& v) { return op("Shape", {v}, {{"out_type", Type{TW_INT64}}}); }

Value Builder::size(const Value& v, int axis) {
  if (v.rank() >= 0) {
    if (axis < 0) axis += v.rank();
    if (v.dim(axis) >= 0) return constant(Tensor::Vector(TW_INT64, std::vector<int64_t>{v.dim(axis)}).Reshaped({}));
  }
  const Value begin = ints({axis}, TW_INT32), end = ints({axis + 1}, TW_INT32), one = ints({1}, TW_INT32);
  return op("StridedSlice", {shape(v), begin, axis == -1 ? ints({0}, TW_INT32) : end, one},
            {{"shrink_axis_mask", 1}, {"end_mask", axis == -1 ? 1 : 0}});
}

Value Builder::concat(const std::vector<Value>& v, int64_t axis) {
  if (v.size() == 1) return v[0];
  std::vector<Value> in = v;
  in.push_back(scalar(TW_INT32, static_cast<double>(axis)));
  return op("ConcatV2", in, {});
}

Value Builder::slice0(const Value& v, int64_t begin, int64_t end) { return op("StridedSlice", {v, ints({begin}), ints({end}), ints({1})}); }

Value Builder::broadcast(const Value& v, const Value& dims) {
  if (dims.constant() && v.static_shape() && v.dims() == dims.constant()->integers()) return v;
  return op("BroadcastTo", {v, dims});
}

}  // namespace thalweg::onnx
