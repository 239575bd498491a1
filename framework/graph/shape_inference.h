// Runs the shape rule of an op. Graph building, planning and execution share this validation.
// Threads: any.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/graph/op_schema.h"

namespace thalweg {

struct ShapeQuery {
  const OpSchema* op = nullptr;
  std::string_view node;
  const CAttrs* attrs = nullptr;
  const uint32_t* types = nullptr;  // inputs, then outputs
  const uint32_t* in_at = nullptr;
  const uint32_t* out_at = nullptr;
  uint32_t n_in = 0, n_out = 0;
  const tw_shape* in = nullptr;
  const tw_view* const* values = nullptr;      // per input; NULL if unknown; in host memory
  const HandleInfo* const* handles = nullptr;  // per input; NULL if unknown
};

struct ShapeAnswer {
  std::vector<Shape> shapes;
  std::vector<HandleInfo> handles;
};

// Merges the shapes that the schema's dims imply with those of the callback. Errors do not name the
// node.
Status InferShapes(const ShapeQuery& query, ShapeAnswer* out);
// Infers the shapes of a node from the shapes, values (empty if unknown) and handles of its inputs,
// one each.
Status InferShapes(const Node& node, const std::vector<tw_shape>& in, const std::vector<Tensor>& values,
                   const std::vector<const HandleInfo*>& handles, ShapeAnswer* out);

// Returns true if a node's outputs can be computed without a step: every input is a known constant,
// or an argument of which only the shape is read and the shape is known.
bool CanEvaluate(const OpSchema& op, const std::vector<uint32_t>& in_at, std::span<const tw_shape> shapes, std::span<const Tensor> values);

}  // namespace thalweg
