// FlowGraph: a graph of the standard ops with branches and loops made of Switch, Merge, Enter,
// NextIteration and Exit, for tests.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "tests/framework/support/test_ops.h"

namespace thalweg::testing_support {

inline Tensor Bool(bool value) {
  Tensor t = *Tensor::Make(TW_BOOL, nullptr, 0);
  *t.as<bool>() = value;
  return t;
}
inline Tensor Scalar(float value) {
  Tensor t = *Tensor::Make(TW_FLOAT, nullptr, 0);
  *t.as<float>() = value;
  return t;
}

class FlowGraph {
 public:
  explicit FlowGraph(std::shared_ptr<Runtime> runtime) : g_(std::move(runtime)) {}

  Edge Op(const std::string& op, std::vector<Edge> in, std::map<std::string, AttrValue> attrs = {}, std::vector<const Node*> after = {}) {
    TestGraph::Extras extras;
    extras.attrs = std::move(attrs);
    extras.controls = std::move(after);
    return g_.Op(op, std::move(in), extras);
  }
  static Edge Port(const Edge& e, int32_t port) { return {e.node, port}; }
  Edge Enter(const Edge& x, const std::string& frame, bool constant = false, int64_t parallel = 10) {
    return Op("Enter", {x},
              {{"frame_name", AttrValue::String(frame)},
               {"is_constant", AttrValue::Bool(constant)},
               {"parallel_iterations", AttrValue::Int(parallel)}});
  }
  // Adds a constant inside the frame of `like`.
  Edge Inside(float value, const Edge& like) { return g_.Const(Scalar(value), {.controls = {like.node}}); }

  // while (cond(variables)) variables = body(variables).
  template <class Cond, class Body>
  std::vector<Edge> While(const std::string& frame, const std::vector<Edge>& start, Cond cond, Body body, int64_t parallel = 10) {
    std::vector<Edge> merges, bodies, exits;
    for (const Edge& x : start) {
      const Edge e = Enter(x, frame, false, parallel);
      merges.push_back(Op("Merge", {e, e}));
    }
    const Edge goes_on = Op("LoopCond", {cond(merges)});
    for (const Edge& m : merges) {
      const Edge s = Op("Switch", {m, goes_on});
      exits.push_back(Op("Exit", {Port(s, 0)}));
      bodies.push_back(Op("Identity", {Port(s, 1)}));
    }
    const std::vector<Edge> next = body(bodies);
    for (size_t k = 0; k < next.size(); ++k) {
      const Edge n = Op("NextIteration", {next[k]});
      Status s = g_.graph().CloseLoop(merges[k].node, 1, n.node);
      EXPECT_TRUE(s.ok()) << s;
    }
    return exits;
  }

 protected:
  TestGraph g_;
};

}  // namespace thalweg::testing_support
