// Shared by the tests of planning: runs a signature through the passes, and through the compiler
// without a session.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/plan/plan.h"
#include "framework/planner/compile.h"
#include "framework/planner/work_graph.h"
#include "framework/runtime/step/evaluate.h"
#include "tests/framework/support/test_ops.h"

namespace thalweg::testing_support {

// A work graph and the objects that it refers to.
struct Planning {
  Signature signature;
  PlanOptions options;
  WorkGraph w;
  Status status;

  Planning(Graph& graph, Signature s, std::vector<Shape> feed_shapes = {}, PlanOptions o = {})
      : signature(std::move(s)), options(std::move(o)) {
    feed_shapes.resize(signature.feeds.size());
    w.options = &options;
    w.feed_shapes = std::move(feed_shapes);
    status = BuildWorkGraph(&graph, signature, &w);
  }
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;
  // Runs the passes up to and including `last`, as CompilePlan does.
  Planning& Through(std::string_view last) {
    for (const Pass& pass : Passes()) {
      const auto& off = options.disabled_passes;
      const bool is_off = !options.optimize || std::find(off.begin(), off.end(), pass.name) != off.end();
      if (status.ok() && !(pass.optional && is_off)) status = pass.run(&w);
      if (pass.name == last) break;
    }
    return *this;
  }
  // Returns the work node of a graph node; NULL if it is not in the signature's part of the graph.
  const WorkNode* Find(const Node* node) const {
    for (const WorkNode& n : w.nodes) {
      if (n.node == node) return &n;
    }
    return nullptr;
  }
  const WorkNode* Find(Edge e) const { return Find(e.node); }
  // Returns true if the node is in the work graph, needed, and not a constant.
  bool Runs(const Node* node) const {
    const WorkNode* n = Find(node);
    return n && !n->dead && !n->constant;
  }
  bool Runs(Edge e) const { return Runs(e.node); }
};

// Kernel states without a session.
class TestStates final : public StateCache {
 public:
  explicit TestStates(Runtime* runtime) : runtime_(*runtime) {}
  ~TestStates() override {
    for (const NodeRun& run : made_) DestroyState(*run.kernel, run.state);
  }
  StatusOr<void*> State(const NodeRun& run, const std::vector<tw_shape>& shapes) override {
    made_.push_back(run);
    RETURN_IF_ERROR(CreateState(run, shapes, nullptr, &made_.back().state));
    return made_.back().state;
  }
  StatusOr<std::vector<Tensor>> Once(const NodeRun& run) override {
    return CallOnce(runtime_, *run.node, *run.kernel, run.device, {}, {}, "test");
  }

 private:
  Runtime& runtime_;
  std::vector<NodeRun> made_;
};

}  // namespace thalweg::testing_support
