// Loops and conditions over bodies of functions: captured values become arguments, and shapes that change from one iteration to the next
// become unknown. Threads: those of Builder.
#pragma once
#include <functional>
#include <vector>

#include "table.h"

namespace thalweg::onnx {

// The condition or the step of a loop: adds nodes to `body`, given the loop variables.
using LoopPart = std::function<std::vector<Value>(Builder& body, const std::vector<Value>& variables)>;

// Runs `step` as long as `go`, which returns one bool scalar, is true. Returns the loop variables at the end. first: tensors and lists.
// `step` may be called several times, until the shapes of the variables agree with its results.
std::vector<Value> RunWhile(Builder& b, const std::vector<Value>& first, const LoopPart& go, const LoopPart& step);

// Runs one of two bodies. Both must return values of the same types.
std::vector<Value> RunIf(Builder& b, const Value& condition, const std::function<std::vector<Value>(Builder&)>& then,
                         const std::function<std::vector<Value>(Builder&)>& otherwise);

// A value of one element as a scalar.
Value Scalar(Builder& b, const Value& v);
// An empty list for tensors like `item`, for scan outputs; and all of its elements along a new first axis.
Value NewList(Builder& b, uint32_t dtype);
Value Stacked(Builder& b, const Value& list, uint32_t dtype, const ShapeAttr& item);

}  // namespace thalweg::onnx
