// Upper limits of sizes that only running tells: the hints `?limits` and `?grows` of schemas (see
// plugin/op.h), and the limits of a node's outputs that follow from those of its inputs.
// Threads: any.
#pragma once
#include <cstdint>
#include <vector>

#include "framework/base/scanner.h"
#include "framework/graph/graph.h"
#include "framework/graph/op_schema.h"

namespace thalweg {

// One hint `?limits`: the size of an axis of an output is at most what an input tells.
struct SizeLimit {
  enum Kind : uint8_t {
    kElements,  // the number of elements of the input
    kAxis,      // the size of an axis of the input
    kValue      // the value of the input, a scalar integer
  } kind = kElements;
  int32_t output = 0, axis = 0;       // an argument, and its axis
  int32_t input = 0, input_axis = 0;  // an argument, and its axis if `kind` is kAxis
};

// The hints about sizes of one op.
struct SizeHints {
  bool grows = false;  // `?grows` or `?elementwise`
  std::vector<SizeLimit> limits;
};
// Reads the hints of a schema that is registered.
SizeHints SizeHintsOf(const OpSchema& op);

// Parses the words that follow `?limits`. REQUIRES: the arguments of `op` are parsed.
SizeLimit ReadSizeLimit(const OpSchema& op, Scanner* in);

// Returns the limits of a node's outputs, as shapes: a known size of `shapes`, the outputs' shapes, is
// its own limit; -1: no limit is known. in, values: the limits and values of the inputs, one each; an
// unknown value is empty.
std::vector<Shape> LimitOutputs(const Node& node, const std::vector<Shape>& shapes, const std::vector<Shape>& in,
                                const std::vector<Tensor>& values);

}  // namespace thalweg
