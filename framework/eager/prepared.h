// Prepared: values of a graph that go in and values that come out, ready to run on tensors; and its gradients, which are Prepared too, of
// the same graph, so that they are differentiated again in the same way.
// Threads: any number of runs at once.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/session/session.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

struct PreparedGradient;

// What arrives at an output, and what is asked for.
struct GradientForm {
  // Per output: 0: nothing; kDense; or the element type of the rows of a sparse gradient.
  static constexpr uint32_t kDense = ~0u;
  std::vector<uint32_t> dy;
  std::vector<uint8_t> wanted;  // per input
  auto operator<=>(const GradientForm&) const = default;
};

class Prepared {
 public:
  // in: placeholders, or other values where the graph is cut. targets: nodes that run for what they do.
  struct Parts {
    std::vector<Edge> in, out;
    std::vector<const Node*> targets;
    const Node* op = nullptr;  // that reads `in` and makes `out`, all of them in order; NULL: they belong to several nodes
  };
  // session, differentiating: outlive it; the mutex is held while nodes are added to the session's graph.
  Prepared(Session* session, std::mutex* differentiating, Parts parts);
  ~Prepared();

  size_t n_in() const { return parts_.in.size(); }
  size_t n_out() const { return parts_.out.size(); }
  uint32_t out_type(size_t o) const { return parts_.out[o].node->out_type(parts_.out[o].port); }
  // in, out: n_in and n_out tensors. Values stay on the device that makes them. Errors: those of Callable::Run; out is then empty.
  Status Run(const Tensor* in, Tensor* out);
  // Made at the first call of its form and kept. Of an op, gradients are made for the shapes of its inputs and the values of whole-number
  // scalars among them (axes, as a rule), of which gradients of other ops know nothing: they run fewer nodes, and rows stay sparse. After
  // the first kMostFixed of these, one gradient serves all others. in: what it ran on. Errors: those of AddGradients.
  StatusOr<PreparedGradient*> Gradient(const GradientForm& form, const Tensor* in);

 private:
  static constexpr size_t kMostFixed = 16;
  StatusOr<PreparedGradient*> FixedGradient(const GradientForm& form, const Tensor* in);
  StatusOr<std::unique_ptr<PreparedGradient>> MakeGradient(const Parts& of, const GradientForm& form);
  // Another node of the op, whose inputs have these shapes, scalars being constants.
  StatusOr<Parts> FixedParts(const Tensor* in);
  // Run with each value of the graph once: feeds_ says which of the inputs.
  Status RunFed(const Tensor* fed, Tensor* out);
  // Of feeds some of which lie on devices.
  Callable* CallableFor(const Tensor* fed);
  CallableSpec Spec() const;

  Session* const session_;
  std::mutex* const differentiating_;  // taken after mu_
  const Parts parts_;
  const std::vector<size_t> feeds_;  // inputs without those whose value of the graph stands further to the front
  Callable on_host_;
  std::mutex mu_;                                                         // all below
  std::map<std::vector<Device*>, std::unique_ptr<Callable>> on_devices_;  // by where the feeds lie
  std::map<GradientForm, std::unique_ptr<PreparedGradient>> gradients_;
  std::map<std::string, Parts> fixed_;  // by shapes and scalars, as text
  std::map<std::pair<std::string, GradientForm>, std::unique_ptr<PreparedGradient>> fixed_gradients_;
};

// Takes the inputs of what it is the gradient of, then its outputs, then, for each output at which something arrives, that: values, or
// values and rows.
struct PreparedGradient {
  // Of one wanted input: which outputs of `run` are its gradient; -1: none. rows -1: it is dense.
  struct Result {
    int32_t values = -1, rows = -1;
  };
  std::unique_ptr<Prepared> run;  // NULL: no wanted input gets anything
  std::vector<Result> dx;         // per wanted input
};

}  // namespace thalweg
