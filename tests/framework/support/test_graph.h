// TestGraph: a graph and helpers for nodes, sessions, steps and tensors of floats.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/runtime_of.h"
#include "framework/session/session.h"

namespace thalweg::testing_support {

// Makes a runtime with only the plugin of test_ops.h.
std::shared_ptr<Runtime> TestRuntime(uint32_t threads);

Tensor Floats(const std::vector<float>& values);
Tensor FloatsOf(const Shape& shape, float first = 1);  // first, first + 1, ...
std::vector<float> Values(const Tensor& t);

// Any error fails the test.
class TestGraph {
 public:
  struct Extras {
    std::string name, device;
    std::vector<const Node*> controls;
    std::vector<std::string> colocate_with;
    std::map<std::string, AttrValue> attrs;
  };
  explicit TestGraph(uint32_t threads = 1) : TestGraph(TestRuntime(threads)) {}
  explicit TestGraph(std::shared_ptr<Runtime> runtime);
  Graph& graph() { return *graph_; }
  Runtime& runtime() { return RuntimeOf(*graph_); }
  Edge Const(const std::vector<float>& values, const Extras& extras = {}) { return Const(Floats(values), extras); }
  Edge Const(const Tensor& value, const Extras& extras = {});
  Edge Input(const Shape& shape, const std::string& name = "");
  Edge Op(const std::string& op, std::vector<Edge> in, Extras extras = {});
  const Node* Mark(int64_t tag, std::vector<const Node*> controls = {});
  std::unique_ptr<Session> NewSession(const std::map<std::string, std::string>& options = {});

 private:
  std::shared_ptr<Graph> graph_;
};

// One step of a session.
StatusOr<std::vector<Tensor>> Step(Session& session, const CallableSpec& spec, const std::vector<Tensor>& feeds = {},
                                   const RunOptions& options = {});

}  // namespace thalweg::testing_support
