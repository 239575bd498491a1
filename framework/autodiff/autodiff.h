// Reverse-mode differentiation: adds nodes that compute gradients, by the gradient builders of the ops.
// Threads: one at a time per graph.
#pragma once
#include <cstdint>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// The gradient of one x. Sparse: `values` are rows for the indices `rows` of axis 0, which may repeat (they add up).
// No path from any y to x: both empty.
struct Gradient {
  Edge values;
  Edge rows;
  bool sparse() const { return bool(rows); }
};

// Values of the type can have gradients; a handle, that of its variable.
bool HasGradients(uint32_t dtype);

// What becomes of the values that gradients of branches, loops and calls read of them.
struct Keeping {
  bool recompute = false;  // they are computed once more, where that can be done, instead of being kept
  // Bytes that loops may yet keep, which each that keeps something uses up. One that would keep more, or of which it is not known how much,
  // recomputes. NULL: any number.
  uint64_t* budget = nullptr;
};

// d(sum of ys)/dxs. dys: gradients that arrive at ys, one each, or empty for ones. xs may be values or handles of variables; the gradient
// of a handle is that of the variable's value. Values that pass through a node in `stop` count as constants.
// Errors: INVALID_ARGUMENT for types that have no gradients; FAILED_PRECONDITION naming the op that is on the way and says that it is not
// differentiable, with its reason; UNIMPLEMENTED for one that has neither gradient nor reason.
Status AddGradients(Graph* graph, const std::vector<Edge>& ys, const std::vector<Edge>& dys, const std::vector<Edge>& xs,
                    std::vector<Gradient>* out, const std::vector<Edge>& stop = {}, const Keeping& keeping = {});

// A sparse gradient as a dense one.
StatusOr<Edge> Densify(Graph* graph, const Gradient& g, Edge like, const std::string& scope);

}  // namespace thalweg
