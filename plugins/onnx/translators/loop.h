// A loop that a translator needs for itself: a function of ours that the step calls once for each number of a range.
#pragma once
#include <functional>
#include <vector>

#include "table.h"

namespace thalweg::onnx {

// The body: given its own builder, the number (a scalar of int32) and the states, it returns the new states. States keep their types; what
// is known of their shapes is not kept. It may use values of the graph around.
using LoopBody = std::function<std::vector<Value>(Builder& body, const Value& number, const std::vector<Value>& states)>;

// Runs the body for begin, begin + 1, ... up to and without `end`, and returns the last states. begin, end: scalars of any integer type.
std::vector<Value> Repeat(Builder& b, const Value& begin, const Value& end, const std::vector<Value>& states, const LoopBody& body);

}  // namespace thalweg::onnx
