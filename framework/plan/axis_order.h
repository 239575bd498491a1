// AxisOrder: values whose axes stand in another order than the graph says, and what goes with them. Threads: any.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

// Axis k of the turned value is axis order[k] of the value.
using AxisOrder = std::vector<int32_t>;

// From one to the other, each a letter per axis, such as "NCHW" and "NHWC". Empty: they do not have the same letters, each once.
AxisOrder OrderBetween(std::string_view from, std::string_view to);
AxisOrder Inverse(const AxisOrder& order);
// First one, then the other.
AxisOrder Composed(const AxisOrder& first, const AxisOrder& then);
bool IsInOrder(const AxisOrder& order);
// A permutation as an op has it, negative axes counted from the end. Empty: it is none.
AxisOrder OrderOf(const Tensor& perm);
StatusOr<Tensor> TensorOf(const AxisOrder& order);  // int32

// REQUIRES: as many axes as the order has.
Shape Turned(const Shape& shape, const AxisOrder& order);
// At most one axis is longer than 1, so the elements lie the same in any order of axes.
bool LiesTheSame(const Shape& shape);
// An entry, or a pair, for each axis; a list of another length stays what it is.
std::vector<int64_t> TurnedList(const std::vector<int64_t>& list, const AxisOrder& order);
// REQUIRES: a plain type, in host memory.
StatusOr<Tensor> Turned(const Tensor& value, const AxisOrder& order);
StatusOr<Tensor> TurnedRows(const Tensor& rows, const AxisOrder& order);  // the first axis has an entry for each axis
// Numbers of axes, as they are in the turned value. Errors: INVALID_ARGUMENT for what is no int32 or int64, or no axis.
StatusOr<Tensor> TurnedNumbers(const Tensor& numbers, const AxisOrder& order);

}  // namespace thalweg
