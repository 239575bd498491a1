// The importer of ONNX files without a plugin: damaged and hostile files, the errors that list everything, folding, dynamic batches.
#include <random>

#include <gtest/gtest.h>

#include "plugins/onnx/model.h"
#include "plugins/onnx/recognise.h"
#include "tests/plugins/importer/graph_sink.h"

namespace thalweg::onnx {
namespace {

using importer::Check;
using importer::GraphSink;
using proto::AttributeProto;
using proto::GraphProto;
using proto::ModelProto;
using proto::NodeProto;
using proto::TensorProto;

ModelProto Empty(int64_t opset = 17) {
  ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(opset);
  m.mutable_graph()->set_name("g");
  return m;
}

void AddInput(GraphProto* g, const std::string& name, int32_t type, const std::vector<int64_t>& dims) {
  auto* in = g->add_input();
  in->set_name(name);
  auto* tensor = in->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  for (const int64_t d : dims) {
    auto* dim = tensor->mutable_shape()->add_dim();
    if (d >= 0)
      dim->set_dim_value(d);
    else
      dim->set_dim_param("n");
  }
}

NodeProto* AddNode(GraphProto* g, const std::string& op, const std::vector<std::string>& in, const std::vector<std::string>& out) {
  NodeProto* node = g->add_node();
  node->set_op_type(op);
  node->set_name("the_" + op);
  for (const std::string& name : in) node->add_input(name);
  for (const std::string& name : out) node->add_output(name);
  return node;
}

TensorProto* AddInts(GraphProto* g, const std::string& name, const std::vector<int64_t>& values) {
  TensorProto* t = g->add_initializer();
  t->set_name(name);
  t->set_data_type(TensorProto::INT64);
  t->add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t v : values) t->add_int64_data(v);
  return t;
}

struct Loaded {
  tw_graph* graph = nullptr;
  Ports ports;
  Loaded() { Check(tw_graph_create(nullptr, &graph)); }
  ~Loaded() { tw_graph_destroy(graph); }
};

// The error of an import of this model; "" if it succeeds.
std::string ErrorOf(const ModelProto& m, uint32_t* code = nullptr, OpenExternal external = nullptr) {
  Loaded l;
  GraphSink sink(l.graph);
  try {
    l.ports = Import(ParseModel(m.SerializeAsString()), std::move(external), sink);
  } catch (const Error& e) {
    if (code) *code = e.code;
    return e.text;
  }
  return "";
}

TEST(OnnxImport, RefusesEveryTruncation) {
  ModelProto m = Empty();
  AddInput(m.mutable_graph(), "x", TensorProto::FLOAT, {2, 3});
  AddInts(m.mutable_graph(), "shape", {3, 2});
  AddNode(m.mutable_graph(), "Reshape", {"x", "shape"}, {"y"});
  m.mutable_graph()->add_output()->set_name("y");
  const std::string bytes = m.SerializeAsString();
  int refused = 0;
  for (size_t n = 0; n < bytes.size(); ++n) {
    try {
      Loaded l;
      GraphSink sink(l.graph);
      Import(ParseModel(std::string_view(bytes).substr(0, n)), nullptr, sink);
    } catch (const Error& e) {
      EXPECT_FALSE(e.text.empty());
      ++refused;
    }
  }
  // The opset behind the graph may be cut off: version 1 has another Reshape, which fails, too.
  EXPECT_EQ(refused, static_cast<int>(bytes.size()));
}

// Changed bytes lead to an import or to an error with a text.
TEST(OnnxImport, SurvivesChangedBytes) {
  ModelProto m = Empty();
  GraphProto* g = m.mutable_graph();
  AddInput(g, "x", TensorProto::FLOAT, {-1, 3, 4, 4});
  TensorProto* w = g->add_initializer();
  w->set_name("w");
  w->set_data_type(TensorProto::FLOAT);
  for (const int64_t d : {2, 3, 1, 1}) w->add_dims(d);
  w->set_raw_data(std::string(24, 'a'));
  AddInts(g, "axes", {2, 3});
  AddNode(g, "Conv", {"x", "w"}, {"a"});
  AddNode(g, "MaxPool", {"a"}, {"b"});
  AttributeProto* kernel = g->mutable_node(1)->add_attribute();
  kernel->set_name("kernel_shape");
  kernel->set_type(AttributeProto::INTS);
  kernel->add_ints(2);
  kernel->add_ints(2);
  AddNode(g, "Squeeze", {"b", "axes"}, {"c"});
  AddNode(g, "Shape", {"b"}, {"d"});
  AddNode(g, "Softmax", {"b"}, {"e"});
  for (const char* out : {"b", "d", "e"}) g->add_output()->set_name(out);
  const std::string bytes = m.SerializeAsString();
  std::mt19937 random(28);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = bytes;
    for (auto n = 1 + random() % 3; n > 0; --n) changed[random() % changed.size()] = static_cast<char>(random());
    Loaded l;
    GraphSink sink(l.graph);
    try {
      l.ports = Import(ParseModel(changed, i % 2 == 0), nullptr, sink);
    } catch (const Error& e) {
      EXPECT_FALSE(e.text.empty());
    }
  }
}

TEST(OnnxImport, RefusesACycle) {
  ModelProto m = Empty();
  AddNode(m.mutable_graph(), "Relu", {"b"}, {"a"});
  AddNode(m.mutable_graph(), "Relu", {"a"}, {"b"});
  m.mutable_graph()->add_output()->set_name("b");
  EXPECT_NE(ErrorOf(m).find("value 'b' is made by no node before"), std::string::npos) << ErrorOf(m);
}

TEST(OnnxImport, ComparesHugeSizesWithTheBytesThatAreThere) {
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{1 << 30, 1 << 30, 1 << 30}, {int64_t{1} << 40}, {-5}, {3}}) {
    ModelProto m = Empty();
    TensorProto* t = m.mutable_graph()->add_initializer();
    t->set_name("w");
    t->set_data_type(TensorProto::FLOAT);
    for (const int64_t d : dims) t->add_dims(d);
    t->set_raw_data("12345678");
    AddNode(m.mutable_graph(), "Relu", {"w"}, {"y"});
    m.mutable_graph()->add_output()->set_name("y");
    const std::string error = ErrorOf(m);
    EXPECT_NE(error, "");
  }
}

TEST(OnnxImport, KeepsExternalDataInItsFolder) {
  for (const char* location : {"../secret", "/etc/passwd", "a/../../b", "file:///etc/passwd", ""}) {
    ModelProto m = Empty();
    TensorProto* t = m.mutable_graph()->add_initializer();
    t->set_name("w");
    t->set_data_type(TensorProto::FLOAT);
    t->add_dims(2);
    t->set_data_location(TensorProto::EXTERNAL);
    auto* entry = t->add_external_data();
    entry->set_key("location");
    entry->set_value(location);
    m.mutable_graph()->add_output()->set_name("w");
    bool opened = false;
    const std::string error = ErrorOf(m, nullptr, [&](const std::string&) -> Bytes {
      opened = true;
      return {};
    });
    EXPECT_FALSE(opened) << location;
    EXPECT_NE(error.find("tensor 'w'"), std::string::npos) << error;
  }
}

TEST(OnnxImport, ReadsExternalDataFromAnOffset) {
  ModelProto m = Empty();
  TensorProto* t = m.mutable_graph()->add_initializer();
  t->set_name("w");
  t->set_data_type(TensorProto::FLOAT);
  t->add_dims(1);
  t->set_data_location(TensorProto::EXTERNAL);
  for (const auto& [key, value] : std::map<std::string, std::string>{{"location", "w.bin"}, {"offset", "4"}, {"length", "4"}}) {
    auto* entry = t->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  m.mutable_graph()->add_output()->set_name("w");
  static const float kFile[2] = {1, 7};
  const auto open = [](uint64_t size) {
    return [size](const std::string&) { return Bytes{reinterpret_cast<const char*>(kFile), size, std::make_shared<int>(0)}; };
  };
  EXPECT_EQ(ErrorOf(m, nullptr, open(8)), "");
  EXPECT_NE(ErrorOf(m, nullptr, open(7)).find("which has 7"), std::string::npos);
}

// Large constants stay in the memory of the file.
TEST(OnnxImport, SharesWeights) {
  ModelProto m = Empty();
  TensorProto* t = m.mutable_graph()->add_initializer();
  t->set_name("w");
  t->set_data_type(TensorProto::UINT8);
  t->add_dims(5000);
  std::string elements(5000, 'x');
  elements[4999] = 'y';
  t->set_raw_data(elements);
  m.mutable_graph()->add_output()->set_name("w");
  const auto file = std::make_shared<const std::string>(m.SerializeAsString());
  Loaded l;
  GraphSink sink(l.graph);
  const auto parsed = ParseModel(*file, true);
  EXPECT_LT(parsed->ByteSizeLong(), 500u);
  l.ports = Import(
      parsed,
      [&](const std::string& location) {
        EXPECT_EQ(location, "");
        return Bytes{file->data(), file->size(), file};
      },
      sink);
  const Tensor* w = l.ports.outputs[0].value.constant();
  ASSERT_NE(w, nullptr);
  EXPECT_GE(w->as<char>(), file->data());
  EXPECT_LE(w->as<char>() + 5000, file->data() + file->size());
  EXPECT_EQ(w->as<char>()[4999], 'y');
}

// The importer's own fields in a file of somebody else name nothing outside of the file.
TEST(OnnxImport, RefusesForgedPlacesOfWeights) {
  ModelProto m = Empty();
  TensorProto* t = m.mutable_graph()->add_initializer();
  t->set_name("w");
  t->set_data_type(TensorProto::UINT8);
  t->add_dims(16);
  t->set_mapped_offset(uint64_t{1} << 63);
  t->set_mapped_bytes(16);
  m.mutable_graph()->add_output()->set_name("w");
  const std::string file = m.SerializeAsString();
  const auto open = [&](const std::string&) { return Bytes{file.data(), file.size(), std::make_shared<int>(0)}; };
  EXPECT_NE(ErrorOf(m, nullptr, open).find("outside of the file"), std::string::npos);
  EXPECT_NE(ErrorOf(m).find("outside of the file"), std::string::npos);
}

TEST(OnnxImport, ListsAllUnknownOps) {
  ModelProto m = Empty();
  AddInput(m.mutable_graph(), "x", TensorProto::FLOAT, {2});
  AddNode(m.mutable_graph(), "Frobnicate", {"x"}, {"y"});
  NodeProto* other = AddNode(m.mutable_graph(), "Thing", {"y"}, {"z"});
  other->set_domain("com.example");
  m.mutable_graph()->add_output()->set_name("z");
  uint32_t code = 0;
  const std::string error = ErrorOf(m, &code);
  EXPECT_EQ(code, static_cast<uint32_t>(TW_UNIMPLEMENTED));
  EXPECT_NE(error.find("Frobnicate (opset 17)"), std::string::npos) << error;
  EXPECT_NE(error.find("com.example.Thing"), std::string::npos) << error;
}

TEST(OnnxImport, NamesAllNodesThatFail) {
  ModelProto m = Empty();
  AddInput(m.mutable_graph(), "x", TensorProto::FLOAT, {2, 3});
  AddNode(m.mutable_graph(), "MatMul", {"x", "x"}, {"y"});
  AddNode(m.mutable_graph(), "Relu", {"y"}, {"z"});  // waits for a node that failed: no error of its own
  AddNode(m.mutable_graph(), "LeakyRelu", {""}, {"w"});
  m.mutable_graph()->add_output()->set_name("z");
  const std::string error = ErrorOf(m);
  EXPECT_NE(error.find("node 'the_MatMul' (MatMul, opset 17)"), std::string::npos) << error;
  EXPECT_NE(error.find("node 'the_LeakyRelu' (LeakyRelu, opset 17): input 0 is absent"), std::string::npos) << error;
  EXPECT_EQ(error.find("the_Relu'"), std::string::npos) << error;
}

TEST(OnnxImport, RefusesANewerOpset) {
  ModelProto m = Empty(1000);
  m.mutable_graph()->add_output()->set_name("z");
  EXPECT_NE(ErrorOf(m).find("opset 1000"), std::string::npos);
}

TEST(OnnxImport, BoundsFunctionsThatCallThemselves) {
  ModelProto m = Empty();
  auto* f = m.add_functions();
  f->set_name("F");
  f->set_domain("own");
  f->add_input("a");
  f->add_output("b");
  NodeProto* inner = f->add_node();
  inner->set_op_type("F");
  inner->set_domain("own");
  inner->add_input("a");
  inner->add_output("b");
  m.add_opset_import()->set_domain("own");
  m.mutable_opset_import(1)->set_version(1);
  AddInput(m.mutable_graph(), "x", TensorProto::FLOAT, {2});
  AddNode(m.mutable_graph(), "F", {"x"}, {"y"})->set_domain("own");
  m.mutable_graph()->add_output()->set_name("y");
  EXPECT_NE(ErrorOf(m).find("nested more than"), std::string::npos) << ErrorOf(m);
}

// 60 functions, each of which calls the next one twice, would be 2^60 nodes.
TEST(OnnxImport, BoundsFunctionsThatMultiply) {
  ModelProto m = Empty();
  for (int i = 0; i < 60; ++i) {
    auto* f = m.add_functions();
    f->set_name("F" + std::to_string(i));
    f->set_domain("own");
    f->add_input("a");
    f->add_output("c");
    for (const auto& [in, out] : {std::pair{"a", "b"}, std::pair{"b", "c"}}) {
      NodeProto* inner = f->add_node();
      inner->set_op_type(i == 59 ? "Identity" : "F" + std::to_string(i + 1));
      if (i < 59) inner->set_domain("own");
      inner->add_input(in);
      inner->add_output(out);
    }
  }
  m.add_opset_import()->set_domain("own");
  m.mutable_opset_import(1)->set_version(1);
  m.mutable_functions(59)->add_opset_import()->set_version(17);
  AddInput(m.mutable_graph(), "x", TensorProto::FLOAT, {2});
  AddNode(m.mutable_graph(), "F0", {"x"}, {"y"})->set_domain("own");
  m.mutable_graph()->add_output()->set_name("y");
  uint32_t code = 0;
  EXPECT_NE(ErrorOf(m, &code).find("more than 262144 nodes"), std::string::npos) << ErrorOf(m);
  EXPECT_EQ(code, static_cast<uint32_t>(TW_RESOURCE_EXHAUSTED));
}

TEST(OnnxImport, InlinesFunctionsWithAttributes) {
  ModelProto m = Empty();
  auto* f = m.add_functions();
  f->set_name("Leaky");
  f->set_domain("own");
  f->add_input("a");
  f->add_output("b");
  f->add_attribute("slope");
  NodeProto* inner = f->add_node();
  inner->set_op_type("LeakyRelu");
  inner->add_input("a");
  inner->add_output("b");
  AttributeProto* a = inner->add_attribute();
  a->set_name("alpha");
  a->set_ref_attr_name("slope");
  a->set_type(AttributeProto::FLOAT);
  m.add_opset_import()->set_domain("own");
  m.mutable_opset_import(1)->set_version(1);
  AddInput(m.mutable_graph(), "x", TensorProto::FLOAT, {2});
  NodeProto* call = AddNode(m.mutable_graph(), "Leaky", {"x"}, {"y"});
  call->set_domain("own");
  AttributeProto* slope = call->add_attribute();
  slope->set_name("slope");
  slope->set_f(0.5);
  slope->set_type(AttributeProto::FLOAT);
  m.mutable_graph()->add_output()->set_name("y");
  Loaded l;
  GraphSink sink(l.graph);
  l.ports = Import(ParseModel(m.SerializeAsString()), nullptr, sink);
  const tw_operation* made = nullptr;
  Check(tw_graph_producer(l.graph, l.ports.outputs[0].edge, &made, nullptr));
  const void* values = nullptr;
  uint32_t kind, list, count;
  Check(tw_operation_attr(made, "alpha", &kind, &list, &count, &values));
  EXPECT_EQ(*static_cast<const double*>(values), 0.5);
}

// Reshape(x, [Shape(x)[0], -1]) of [n, 2, 3]: the arithmetic on shapes disappears, and the batch stays dynamic.
TEST(OnnxImport, FoldsShapesAndKeepsTheBatch) {
  ModelProto m = Empty();
  GraphProto* g = m.mutable_graph();
  AddInput(g, "x", TensorProto::FLOAT, {-1, 2, 3});
  AddInts(g, "zero", {0});
  AddInts(g, "two_three", {2, 3});
  AddNode(g, "Shape", {"x"}, {"shape"});
  AddNode(g, "Gather", {"shape", "zero"}, {"batch"});
  AddNode(g, "ReduceProd", {"two_three"}, {"rest"});
  AddNode(g, "Concat", {"batch", "rest"}, {"to"});
  AttributeProto* axis = g->mutable_node(3)->add_attribute();
  axis->set_name("axis");
  axis->set_i(0);
  axis->set_type(AttributeProto::INT);
  AddNode(g, "Reshape", {"x", "to"}, {"y"});
  g->add_output()->set_name("y");
  Loaded l;
  GraphSink sink(l.graph);
  l.ports = Import(ParseModel(m.SerializeAsString()), nullptr, sink);
  const Value& y = l.ports.outputs[0].value;
  EXPECT_EQ(y.dims(), (Dims{-1, 6}));
  const tw_operation* made = nullptr;
  Check(tw_graph_producer(l.graph, l.ports.outputs[0].edge, &made, nullptr));
  EXPECT_STREQ(tw_operation_type(made), "Reshape");
  const tw_operation* shape = nullptr;
  Check(tw_graph_producer(l.graph, tw_operation_input(made, 1), &shape, nullptr));
  EXPECT_STREQ(tw_operation_type(shape), "Const");
}

TEST(OnnxImport, TellsOnnxFromOtherFiles) {
  ModelProto m = Empty();
  AddNode(m.mutable_graph(), "Relu", {"x"}, {"y"});
  EXPECT_GE(Recognise(m.SerializeAsString(), true), 90u);
  EXPECT_EQ(Recognise("PK\x03\x04", false), 0u);
  EXPECT_EQ(Recognise("", true), 0u);
  EXPECT_EQ(Recognise(std::string("\x08\x01\x12\x04\x0a\x02\x0a\x00", 8), true), 0u);  // as a SavedModel begins
  EXPECT_EQ(Recognise("{\"format\": \"json\"}", true), 0u);
}

}  // namespace
}  // namespace thalweg::onnx
