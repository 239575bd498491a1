#include "framework/planner/axes/axis_order.h"

#include <algorithm>
#include <cstring>

#include "framework/base/dtype.h"

namespace thalweg {
namespace {

// Returns INT64_MIN, which is outside every range, if `t` does not hold whole numbers.
int64_t NumberAt(const Tensor& t, uint64_t i) {
  return t.dtype() == TW_INT64 ? t.as<int64_t>()[i] : t.dtype() == TW_INT32 ? t.as<int32_t>()[i] : INT64_MIN;
}

}  // namespace

AxisOrder OrderBetween(std::string_view from, std::string_view to) {
  AxisOrder order;
  if (from.size() != to.size()) return {};
  for (char axis : to) {
    const size_t at = from.find(axis);
    if (at == std::string_view::npos || from.find(axis, at + 1) != std::string_view::npos) return {};
    order.push_back(int32_t(at));
  }
  return Inverse(order).empty() ? AxisOrder() : order;
}

AxisOrder Inverse(const AxisOrder& order) {
  AxisOrder inverse(order.size(), -1);
  for (size_t k = 0; k < order.size(); ++k) inverse[size_t(order[k])] = int32_t(k);
  return std::find(inverse.begin(), inverse.end(), -1) == inverse.end() ? inverse : AxisOrder();
}

AxisOrder Composed(const AxisOrder& first, const AxisOrder& then) {
  AxisOrder both;
  for (int32_t axis : then) both.push_back(first[size_t(axis)]);
  return both;
}

bool IsInOrder(const AxisOrder& order) {
  for (size_t k = 0; k < order.size(); ++k) {
    if (order[k] != int32_t(k)) return false;
  }
  return true;
}

AxisOrder OrderOf(const Tensor& perm) {
  AxisOrder order;
  if (perm.rank() != 1) return {};
  const int64_t n = perm.dim(0);
  for (int64_t k = 0; k < n; ++k) {
    int64_t axis = NumberAt(perm, uint64_t(k));
    if (axis < 0) axis += n;
    if (axis < 0 || axis >= n) return {};
    order.push_back(int32_t(axis));
  }
  return Inverse(order).empty() ? AxisOrder() : order;
}

StatusOr<Tensor> TensorOf(const AxisOrder& order) { return Tensor::Vector<int32_t>(TW_INT32, order); }

Shape Turned(const Shape& shape, const AxisOrder& order) {
  std::vector<int64_t> dims;
  for (int32_t axis : order) dims.push_back(shape.dim(axis));
  return Shape(dims);
}

bool LiesTheSame(const Shape& shape) {
  return std::count_if(shape.dims().begin(), shape.dims().end(), [](int64_t d) { return d != 1; }) <= 1;
}

std::vector<int64_t> TurnedList(const std::vector<int64_t>& list, const AxisOrder& order) {
  const size_t each = list.size() == order.size() ? 1 : list.size() == 2 * order.size() ? 2 : 0;
  std::vector<int64_t> turned;
  for (size_t k = 0; each && k < order.size(); ++k) {
    for (size_t i = 0; i < each; ++i) turned.push_back(list[size_t(order[k]) * each + i]);
  }
  return each ? turned : list;
}

StatusOr<Tensor> Turned(const Tensor& value, const AxisOrder& order) {
  const Shape shape = Turned(value.shape(), order);
  ASSIGN_OR_RETURN(Tensor turned, Tensor::Make(value.dtype(), shape));
  if (value.count() == 0) return turned;
  const size_t rank = order.size(), size = size_t(value.bytes() / value.count());
  std::vector<int64_t> stride(rank, 1), at(rank, 0);  // strides of the value, in the axis order of the turned one
  for (size_t k = 0; k < rank; ++k) {
    for (int32_t axis = order[k] + 1; axis < int32_t(rank); ++axis) stride[k] *= value.dim(axis);
  }
  const char* from = value.as<char>();
  int64_t offset = 0;
  for (uint64_t i = 0; i < value.count(); ++i) {
    std::memcpy(turned.as<char>() + i * size, from + size_t(offset) * size, size);
    for (size_t k = rank; k-- > 0;) {
      offset += stride[k];
      if (++at[k] < shape.dim(int32_t(k))) break;
      offset -= stride[k] * at[k];
      at[k] = 0;
    }
  }
  return turned;
}

StatusOr<Tensor> TurnedRows(const Tensor& rows, const AxisOrder& order) {
  ASSIGN_OR_RETURN(Tensor turned, Tensor::Make(rows.dtype(), rows.shape()));
  const size_t bytes = size_t(rows.bytes()) / order.size();
  for (size_t k = 0; k < order.size(); ++k) {
    std::memcpy(turned.as<char>() + k * bytes, rows.as<char>() + size_t(order[k]) * bytes, bytes);
  }
  return turned;
}

StatusOr<Tensor> TurnedNumbers(const Tensor& numbers, const AxisOrder& order) {
  const AxisOrder now = Inverse(order);
  const int64_t n = int64_t(order.size());
  ASSIGN_OR_RETURN(Tensor turned, Tensor::Make(numbers.dtype(), numbers.shape()));
  for (uint64_t i = 0; i < numbers.count(); ++i) {
    const int64_t axis = NumberAt(numbers, i);
    if (axis < -n || axis >= n) return InvalidArgument("no number of an axis");
    const int32_t turned_axis = now[size_t(axis < 0 ? axis + n : axis)];
    if (numbers.dtype() == TW_INT64) {
      turned.as<int64_t>()[i] = turned_axis;
    } else {
      turned.as<int32_t>()[i] = turned_axis;
    }
  }
  return turned;
}

}  // namespace thalweg
