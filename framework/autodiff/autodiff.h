// Reverse-mode differentiation: adds the nodes that compute gradients, using the gradient builders
// of the ops.
// Threads: one at a time per graph.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"

namespace thalweg {

// The gradient of one x. A sparse gradient: `values` are rows for the indices `rows` of axis 0,
// which may repeat (repeated rows add up). If no path leads from any y to x, both are empty.
struct Gradient {
  Edge values;
  Edge rows;
  bool sparse() const { return bool(rows); }
};

// Returns true if values of the type can have gradients; the gradient of a handle is that of its
// variable.
bool HasGradients(uint32_t dtype);

// How gradients of branches, loops and calls obtain the forward values that they read.
struct Keeping {
  bool recompute = false;  // compute them once more, if possible, instead of keeping them
  // Bytes that loops may still keep; a loop that keeps values reduces it. A loop that would keep
  // more, or an unknown amount, recomputes. NULL means no limit.
  uint64_t* budget = nullptr;
  bool inside = false;  // the gradient of the function around recomputes, so its function has the values already
};

// Computes d(sum of ys)/dxs. dys: gradients that arrive at ys, one each, or empty for ones. xs may
// be values or handles of variables; the gradient of a handle is that of the variable's value.
// Values that pass through a node in `stop` count as constants. The names of the added nodes begin
// with `prefix` and "/"; the name of the op follows, as in TensorFlow's C API. An empty prefix stands for
// the first free of "gradients", "gradients_1", ...; the name of the forward node and "/" follow it.
// Errors: INVALID_ARGUMENT for types that have no gradients; FAILED_PRECONDITION naming an op on
// the path that declares itself not differentiable, with its reason; UNIMPLEMENTED for an op with
// neither gradient nor reason.
Status AddGradients(Graph* graph, const std::vector<Edge>& ys, const std::vector<Edge>& dys, const std::vector<Edge>& xs,
                    std::vector<Gradient>* out, const std::vector<Edge>& stop = {}, const Keeping& keeping = {},
                    const std::string& prefix = "");

// As AddGradients, for incoming gradients that may be sparse. dys: one for each y, or empty for ones;
// an entry without values stands for ones.
Status AddGradientsGiven(Graph* graph, const std::vector<Edge>& ys, const std::vector<Gradient>& dys, const std::vector<Edge>& xs,
                         std::vector<Gradient>* out, const std::vector<Edge>& stop = {}, const Keeping& keeping = {},
                         const std::string& prefix = "");

// Converts a sparse gradient to a dense one.
StatusOr<Edge> Densify(Graph* graph, const Gradient& g, Edge like, const std::string& scope);

}  // namespace thalweg
