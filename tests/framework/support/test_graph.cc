#include "tests/framework/support/test_graph.h"

#include <numeric>

#include "gtest/gtest.h"

#include "tests/framework/support/test_ops.h"

namespace thalweg::testing_support {

std::shared_ptr<Runtime> TestRuntime(uint32_t threads) {
  RuntimeOptions options;
  options.threads = threads;
  options.load_plugins = false;
  options.static_plugins = {{"test ops", QueryTestOps}};
  auto runtime = Runtime::Create(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  return *runtime;
}

Tensor Floats(const std::vector<float>& values) { return *Tensor::Vector<float>(TW_FLOAT, values); }
Tensor FloatsOf(const Shape& shape, float first) {
  Tensor t = *Tensor::Make(TW_FLOAT, shape);
  std::iota(t.as<float>(), t.as<float>() + t.count(), first);
  return t;
}
std::vector<float> Values(const Tensor& t) { return {t.as<float>(), t.as<float>() + t.count()}; }

TestGraph::TestGraph(std::shared_ptr<Runtime> runtime) : graph_(std::make_shared<Graph>(std::move(runtime))) {}

Edge TestGraph::Const(const Tensor& value, const Extras& extras) {
  Extras e = extras;
  e.attrs = {{"value", AttrValue::OfTensor(value)}, {"dtype", AttrValue::Type(value.dtype())}};
  return Op("Const", {}, e);
}
Edge TestGraph::Input(const Shape& shape, const std::string& name) {
  return Op("Placeholder", {}, {.name = name, .attrs = {{"shape", AttrValue::OfShape(shape)}, {"dtype", AttrValue::Type(TW_FLOAT)}}});
}
Edge TestGraph::Op(const std::string& op, std::vector<Edge> in, Extras extras) {
  NodeSpec spec;
  spec.op = op;
  spec.name = extras.name;
  spec.inputs = std::move(in);
  spec.controls = std::move(extras.controls);
  spec.attrs = std::move(extras.attrs);
  spec.device = extras.device;
  spec.colocate_with = std::move(extras.colocate_with);
  auto node = graph_->AddNode(std::move(spec));
  EXPECT_TRUE(node.ok()) << node.status();
  return node.ok() ? Edge{*node, 0} : Edge{};
}
const Node* TestGraph::Mark(int64_t tag, std::vector<const Node*> controls) {
  return Op("Mark", {}, {.controls = std::move(controls), .attrs = {{"tag", AttrValue::Int(tag)}}}).node;
}
std::unique_ptr<Session> TestGraph::NewSession(const std::map<std::string, std::string>& options) {
  SessionOptions o;
  for (const auto& [key, value] : options) EXPECT_TRUE(SetSessionOption(&o, key, value).ok()) << key;
  auto session = Session::Create(graph_, o);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

StatusOr<std::vector<Tensor>> Step(Session& session, const CallableSpec& spec, const std::vector<Tensor>& feeds,
                                   const RunOptions& options) {
  std::vector<Tensor> fetches(spec.fetches.size());
  RETURN_IF_ERROR(session.Run(spec, feeds.data(), options, fetches.data()));
  return fetches;
}

}  // namespace thalweg::testing_support
