// Steps that translators share: axes, vectors of sizes, and moving an axis. Threads: those of Builder.
#pragma once
#include <cstdint>
#include <vector>

#include "table.h"

namespace thalweg::onnx {

// Returns the rank of `v`; fails with the name of the value if it is unknown.
int RankOf(const Node& n, const Value& v, const char* name);
// Returns an axis counted from the front. rank: of the value that has the axis. Fails for axes outside [-rank, rank).
int AxisOf(const Node& n, int64_t axis, int rank);
std::vector<int> AxesOf(const Node& n, const std::vector<int64_t>& axes, int rank);

// Elements of attribute `name` before opset `since`, of input i from then on. None if both are absent, or if the input is not constant.
std::optional<std::vector<int64_t>> IntsOf(const Node& n, const char* name, int64_t since, size_t i);
// The same as a value, an int64 vector; absent if neither is given.
Value IntsValue(Builder& b, const Node& n, const char* name, int64_t since, size_t i);

// Returns `v`, which has one element, as a scalar. ONNX gives many scalars as vectors of one element.
Value ScalarOf(Builder& b, const Value& v);
Value ScalarOf(Builder& b, const Value& v, uint32_t dtype);

// Returns the int64 vector of these scalars.
Value Join(Builder& b, const std::vector<Value>& sizes);
// A size that is known, as a scalar of int64.
Value Known(Builder& b, int64_t size);
// Reshapes to these sizes. One of them may be unknown now without an effect on the graph.
Value ReshapeTo(Builder& b, const Value& v, const std::vector<Value>& sizes);
// Sizes of the axes [begin, end) of `v`, each a scalar.
std::vector<Value> SizesOf(Builder& b, const Value& v, int begin, int end);

// Moves axis `from` to `to`; the others keep their order. rank: of v.
Value MoveAxis(Builder& b, const Value& v, int rank, int from, int to);

// Returns 0, 1, ... up to and without `end`, an int64 scalar.
Value Count(Builder& b, const Value& end);
// Returns indices with `size` (an int64 scalar, or a vector that broadcasts) added to the negative ones.
Value FromFront(Builder& b, const Value& indices, const Value& size);

}  // namespace thalweg::onnx
