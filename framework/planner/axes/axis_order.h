// AxisOrder: values whose axes stand in another order than the graph gives, and operations on such
// orders. Threads: any.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

// Axis k of the turned value is axis order[k] of the value.
using AxisOrder = std::vector<int32_t>;

// Returns the order that leads from one layout to the other; each layout has one letter per axis,
// such as "NCHW" and "NHWC". Returns empty if the two do not have the same letters, each once.
AxisOrder OrderBetween(std::string_view from, std::string_view to);
AxisOrder Inverse(const AxisOrder& order);
// Returns the order that applies `first`, then `then`.
AxisOrder Composed(const AxisOrder& first, const AxisOrder& then);
bool IsInOrder(const AxisOrder& order);
// Reads a permutation as ops hold it, with negative axes counted from the end. Returns empty if
// `perm` is no permutation.
AxisOrder OrderOf(const Tensor& perm);
StatusOr<Tensor> TensorOf(const AxisOrder& order);  // int32

// REQUIRES: the shape has as many axes as the order.
Shape Turned(const Shape& shape, const AxisOrder& order);
// Returns true if at most one axis is longer than 1, so that the elements lie the same in any order
// of axes.
bool LiesTheSame(const Shape& shape);
// Reorders a list that has one entry, or one pair, per axis. A list of another length is returned
// unchanged.
std::vector<int64_t> TurnedList(const std::vector<int64_t>& list, const AxisOrder& order);
// REQUIRES: a plain type, in host memory.
StatusOr<Tensor> Turned(const Tensor& value, const AxisOrder& order);
StatusOr<Tensor> TurnedRows(const Tensor& rows, const AxisOrder& order);  // the first dim has one entry per axis
// Converts axis numbers of the value to axis numbers of the turned value. Errors: INVALID_ARGUMENT
// if `numbers` is not int32 or int64, or holds a number that is no axis.
StatusOr<Tensor> TurnedNumbers(const Tensor& numbers, const AxisOrder& order);

}  // namespace thalweg
