// Prepared: inputs and outputs of a graph, ready to run on tensors, and the gradients of these outputs.
// A gradient is a Prepared of the same graph, so it can be differentiated again in the same way.
// Threads: any number of runs at once.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/session/callable.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

struct PreparedGradient;
class Session;

// The incoming gradients that a gradient takes, and the inputs for which gradients are computed.
struct GradientForm {
  // Per output: 0 for no incoming gradient, kDense, or the element type of the rows of a sparse one.
  static constexpr uint32_t kDense = ~0u;
  std::vector<uint32_t> dy;
  std::vector<uint8_t> wanted;  // per input
  auto operator<=>(const GradientForm&) const = default;
};

class Prepared {
 public:
  // in: placeholders, or other values at which the graph is cut. targets: nodes that run for their
  // effects.
  struct Parts {
    std::vector<Edge> in, out;
    std::vector<const Node*> targets;
    const Node* op = nullptr;  // reads exactly `in` and makes exactly `out`, in order; NULL: several nodes do
  };
  // session, differentiating: must outlive it. Prepared holds the mutex while it adds nodes to the
  // session's graph.
  Prepared(Session* session, std::mutex* differentiating, Parts parts);
  ~Prepared();

  size_t n_in() const { return parts_.in.size(); }
  size_t n_out() const { return parts_.out.size(); }
  // Returns true if a second run on the same inputs gives the same outputs and has no effect.
  bool MayRepeat() const { return may_repeat_; }
  uint32_t out_type(size_t o) const { return parts_.out[o].node->out_type(parts_.out[o].port); }
  // Runs on `in` (n_in tensors) and sets `out` (n_out tensors). Values stay on the device that makes
  // them. Errors: those of Callable::Run; `out` is then empty.
  Status Run(const Tensor* in, Tensor* out);
  // Returns the gradient of this form, which the first call makes and Prepared keeps. in: the inputs
  // of the run. The gradient of a single op is fixed: it is made for the shapes of the inputs and for
  // the values of integer scalars among them (mostly axes). A fixed gradient runs fewer nodes and
  // keeps rows sparse. After kMostFixed sets of shapes and scalars, one gradient serves all others.
  // Errors: those of AddGradients.
  StatusOr<PreparedGradient*> Gradient(const GradientForm& form, const Tensor* in);

 private:
  static constexpr size_t kMostFixed = 16;
  StatusOr<PreparedGradient*> FixedGradient(const GradientForm& form, const Tensor* in);
  StatusOr<std::unique_ptr<PreparedGradient>> MakeGradient(const Parts& of, const GradientForm& form);
  // Adds another node of the op, whose inputs have these shapes and whose integer scalars are
  // constants.
  StatusOr<Parts> FixedParts(const Tensor* in);
  // Runs on one tensor for each of feeds_.
  Status RunFed(const Tensor* fed, Tensor* out);
  // Returns the callable for the devices that hold the feeds.
  Callable* CallableFor(const Tensor* fed);
  CallableSpec Spec() const;

  Session* const session_;
  std::mutex* const differentiating_;  // acquired after mu_
  const Parts parts_;
  const bool may_repeat_;
  const std::vector<size_t> feeds_;  // inputs, without those whose edge occurs at an earlier input
  Callable on_host_;
  std::mutex mu_;  // guards the members below
  // By the device of the nodes and the devices of the feeds; NULL means host.
  std::map<std::pair<Device*, std::vector<Device*>>, std::unique_ptr<Callable>> on_devices_;
  std::map<GradientForm, std::unique_ptr<PreparedGradient>> gradients_;
  std::map<std::string, Parts> fixed_;  // by shapes and scalars, as text
  std::map<std::pair<std::string, GradientForm>, std::unique_ptr<PreparedGradient>> fixed_gradients_;
};

// The gradient of a Prepared. `run` takes the inputs of that Prepared, then its outputs, then the
// incoming gradients in the order of the outputs: values, or values and rows.
struct PreparedGradient {
  // The outputs of `run` that are the gradient of one wanted input. values -1: no gradient; rows -1:
  // a dense one.
  struct Result {
    int32_t values = -1, rows = -1;
  };
  std::unique_ptr<Prepared> run;  // NULL: no wanted input has a gradient
  std::vector<Result> dx;         // per wanted input
};

// Adds nodes to an empty graph and sets the inputs, outputs and targets to run.
using EagerBuild = std::function<Status(Graph*, Prepared::Parts*)>;

}  // namespace thalweg
