// Helpers to build and import GraphDefs, inspect the resulting graph, and define ops for them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/graph_def.h"
#include "framework/proto/graph.pb.h"
#include "framework/proto/wire.h"
#include "framework/runtime/runtime.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg::testing_support {

inline constexpr const char* kSchemas[] = {
    "Const() -> (output: dtype); value: tensor; dtype: type; role const",
    "Placeholder() -> (output: dtype); dtype: type; shape: shape = unknown; stateful; role placeholder",
    "Add(x: T, y: T) -> (z: T); T: {float, int32}; commutative",
    "Split(x: T) -> (y: T * N); N: int >= 1; T: type",
    "NoOp() -> (); role no_op",
    "All() -> (); i: int = 3; f: float = 0.5; b: bool = true; s: string = \"x\"; t: type = float; sh: shape = unknown; te: tensor; fn: "
    "func; "
    "li: list(int) = [1, 2]; lf: list(float); lb: list(bool); ls: list(string); lt: list(type); lsh: list(shape); lte: list(tensor); "
    "lfn: list(func); stateful",
};

inline tw_status* Init(const tw_host*, tw_registrar* r, void**) {
  for (const char* schema : kSchemas) {
    tw_op_def d = {TW_SIZED(tw_op_def), schema, std::char_traits<char>::length(schema), nullptr, nullptr, nullptr};
    TW_TRY(tw_add_op(r, &d));
  }
  return nullptr;
}

inline const tw_plugin* Query(const tw_host_info*) {
  static const tw_plugin plugin = {TW_SIZED(tw_plugin), TW_EPOCH,       0,    0,      TW_MINOR, TW_S("test.ops"), TW_S("1"),
                                   TW_S("nothing"),     TW_S(TW_BUILD), Init, nullptr};
  return &plugin;
}

class GraphDefTest : public testing::Test {
 protected:
  void SetUp() override {
    RuntimeOptions options;
    options.threads = 1;
    options.load_plugins = false;
    options.static_plugins.push_back({"test", Query});
    auto runtime = Runtime::Create(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status();
    runtime_ = *runtime;
    graph_ = std::make_unique<Graph>(runtime_);
  }
  Status Import(const proto::GraphDef& g, const ImportOptions& options = {}) { return ImportBytes(g.SerializeAsString(), options); }
  Status ImportBytes(const std::string& bytes, const ImportOptions& options = {}) {
    return ImportGraphDef(bytes.data(), bytes.size(), options, graph_.get());
  }
  // Checks that the import is refused with this code and this text, and leaves the graph unchanged.
  void Refuses(const proto::GraphDef& g, absl::StatusCode code, const std::string& words, const ImportOptions& options = {}) {
    const std::string before = Export();
    Status s = Import(g, options);
    EXPECT_EQ(s.code(), code) << s;
    EXPECT_THAT(std::string(Message(s)), testing::HasSubstr(words));
    EXPECT_EQ(Export(), before);
  }
  std::string Export() {
    auto bytes = ExportGraphDef(*graph_);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? *bytes : "";
  }
  proto::GraphDef Exported() {
    proto::GraphDef g;
    EXPECT_TRUE(g.ParseFromString(Export()));
    return g;
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (int32_t i = 0; i < graph_->size(); ++i) names.push_back(graph_->node(i)->name());
    return names;
  }

  std::shared_ptr<Runtime> runtime_;
  std::unique_ptr<Graph> graph_;
};

inline constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
inline constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

inline proto::NodeDef* AddTo(proto::GraphDef* g, const std::string& op, const std::string& name,
                             const std::vector<std::string>& inputs = {}) {
  proto::NodeDef* n = g->add_node();
  n->set_op(op);
  n->set_name(name);
  for (const std::string& i : inputs) n->add_input(i);
  return n;
}
inline proto::NodeDef* AddPlaceholder(proto::GraphDef* g, const std::string& name, proto::DataType type = proto::DT_FLOAT) {
  proto::NodeDef* n = AddTo(g, "Placeholder", name);
  (*n->mutable_attr())["dtype"].set_type(type);
  return n;
}
inline proto::NodeDef* AddAdd(proto::GraphDef* g, const std::string& name, const std::vector<std::string>& inputs,
                              proto::DataType type = proto::DT_FLOAT) {
  proto::NodeDef* n = AddTo(g, "Add", name, inputs);
  (*n->mutable_attr())["T"].set_type(type);
  return n;
}
inline proto::NodeDef* AddSplit(proto::GraphDef* g, const std::string& name, const std::string& input, int64_t n_out) {
  proto::NodeDef* n = AddTo(g, "Split", name, {input});
  (*n->mutable_attr())["T"].set_type(proto::DT_FLOAT);
  (*n->mutable_attr())["N"].set_i(n_out);
  return n;
}
inline proto::NodeDef* AddScalar(proto::GraphDef* g, const std::string& name, float value) {
  proto::NodeDef* n = AddTo(g, "Const", name);
  (*n->mutable_attr())["dtype"].set_type(proto::DT_FLOAT);
  auto* t = (*n->mutable_attr())["value"].mutable_tensor();
  t->set_dtype(proto::DT_FLOAT);
  t->mutable_tensor_shape();
  t->add_float_val(value);
  return n;
}

// Serialises a GraphDef with one node that has this attribute value; the value's bytes need not be
// valid.
inline std::string WithRawAttr(const std::string& op, const std::string& key, const std::string& value) {
  std::string entry, node, graph;
  PutBytesField(1, key, &entry);
  PutBytesField(2, value, &entry);
  PutBytesField(1, "n", &node);
  PutBytesField(2, op, &node);
  PutBytesField(5, entry, &node);
  PutBytesField(1, node, &graph);
  return graph;
}

}  // namespace thalweg::testing_support
