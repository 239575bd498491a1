#include "common.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace thalweg::onnx {

int RankOf(const Node& n, const Value& v, const char* name) {
  if (v.rank() < 0) n.unsupported("the rank of '" + std::string(name) + "' is unknown here; give the model's inputs shapes");
  return v.rank();
}

int AxisOf(const Node& n, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    n.fail("axis " + std::to_string(axis) + " is outside of a value of rank " + std::to_string(rank) + "; it must be in [-" +
           std::to_string(rank) + ", " + std::to_string(rank) + ")");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> AxesOf(const Node& n, const std::vector<int64_t>& axes, int rank) {
  std::vector<int> found;
  for (const int64_t axis : axes) {
    found.push_back(AxisOf(n, axis, rank));
    if (std::count(found.begin(), found.end(), found.back()) > 1) n.fail("axis " + std::to_string(axis) + " is listed twice");
  }
  return found;
}

std::optional<std::vector<int64_t>> IntsOf(const Node& n, const char* name, int64_t since, size_t i) {
  if (n.opset >= since) return n.maybe_ints(i);
  if (!n.has_attr(name)) return std::nullopt;
  return n.ints(name);
}

Value IntsValue(Builder& b, const Node& n, const char* name, int64_t since, size_t i) {
  if (n.opset >= since) return n.has(i) ? b.cast(n.in(i), TW_INT64) : Value();
  return n.has_attr(name) ? b.ints(n.ints(name)) : Value();
}

Value ScalarOf(Builder& b, const Value& v) { return v.rank() == 0 ? v : b.reshape(v, Dims{}); }

Value ScalarOf(Builder& b, const Value& v, uint32_t dtype) { return b.cast(ScalarOf(b, v), dtype); }

Value Join(Builder& b, const std::vector<Value>& sizes) {
  std::vector<Value> parts;
  for (const Value& size : sizes) parts.push_back(b.unsqueeze(size, {0}));
  return parts.empty() ? b.ints({}) : b.concat(parts, 0);
}

Value Known(Builder& b, int64_t size) { return b.scalar(TW_INT64, static_cast<double>(size)); }

Value ReshapeTo(Builder& b, const Value& v, const std::vector<Value>& sizes) {
  Dims dims;
  bool zero = false;
  for (const Value& size : sizes) {
    const Tensor* known = size.constant();
    dims.push_back(known ? known->integer(0) : -1);
    zero |= dims.back() == 0;
  }
  // A size that is unknown now follows from the others, unless one of those is 0.
  const auto unknown = std::count(dims.begin(), dims.end(), -1);
  return unknown == 0 || (unknown == 1 && !zero) ? b.reshape(v, dims) : b.reshape(v, Join(b, sizes));
}

std::vector<Value> SizesOf(Builder& b, const Value& v, int begin, int end) {
  std::vector<Value> sizes;
  for (int axis = begin; axis < end; ++axis) sizes.push_back(b.size(v, axis));
  return sizes;
}

Value MoveAxis(Builder& b, const Value& v, int rank, int from, int to) {
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + from);
  perm.insert(perm.begin() + to, from);
  return b.transpose(v, perm);
}

Value Count(Builder& b, const Value& end) { return b.op("Range", {Known(b, 0), end, Known(b, 1)}); }

Value FromFront(Builder& b, const Value& indices, const Value& size) {
  if (const Tensor* known = indices.constant(); known && known->count() > 0) {
    const std::vector<int64_t> all = known->integers();
    if (*std::min_element(all.begin(), all.end()) >= 0) return indices;
  }
  const Value length = b.cast(size, indices.dtype());
  return b.op("SelectV2", {b.op("Less", {indices, b.like(indices, 0)}), b.op("AddV2", {indices, length}), indices});
}

}  // namespace thalweg::onnx
