#include "framework/graph/graph_def.h"

#include <memory>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "framework/graph/attr_proto.h"
#include "framework/io/wire.h"
#include "framework/proto/graph.pb.h"
#include "framework/runtime/runtime.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg {
namespace {

using proto::GraphDef;
using proto::NodeDef;
using testing::ElementsAre;
using testing::HasSubstr;
using std::string_literals::operator""s;

constexpr const char* kSchemas[] = {
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

tw_status* Init(const tw_host*, tw_registrar* r, void**) {
  for (const char* schema : kSchemas) {
    tw_op_def d = {TW_SIZED(tw_op_def), schema, std::char_traits<char>::length(schema), nullptr, nullptr, nullptr};
    TW_TRY(r->op(r, &d));
  }
  return nullptr;
}

const tw_plugin* Query(const tw_host_info*) {
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
  Status Import(const GraphDef& g, const ImportOptions& options = {}) { return ImportBytes(g.SerializeAsString(), options); }
  Status ImportBytes(const std::string& bytes, const ImportOptions& options = {}) {
    return ImportGraphDef(bytes.data(), bytes.size(), options, graph_.get());
  }
  // The import is refused with this code and these words, and leaves the graph as it was.
  void Refuses(const GraphDef& g, absl::StatusCode code, const std::string& words, const ImportOptions& options = {}) {
    const std::string before = Export();
    Status s = Import(g, options);
    EXPECT_EQ(s.code(), code) << s;
    EXPECT_THAT(std::string(Message(s)), HasSubstr(words));
    EXPECT_EQ(Export(), before);
  }
  std::string Export() {
    auto bytes = ExportGraphDef(*graph_);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? *bytes : "";
  }
  GraphDef Exported() {
    GraphDef g;
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

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

NodeDef* AddTo(GraphDef* g, const std::string& op, const std::string& name, const std::vector<std::string>& inputs = {}) {
  NodeDef* n = g->add_node();
  n->set_op(op);
  n->set_name(name);
  for (const std::string& i : inputs) n->add_input(i);
  return n;
}
NodeDef* AddPlaceholder(GraphDef* g, const std::string& name, proto::DataType type = proto::DT_FLOAT) {
  NodeDef* n = AddTo(g, "Placeholder", name);
  (*n->mutable_attr())["dtype"].set_type(type);
  return n;
}
NodeDef* AddAdd(GraphDef* g, const std::string& name, const std::vector<std::string>& inputs, proto::DataType type = proto::DT_FLOAT) {
  NodeDef* n = AddTo(g, "Add", name, inputs);
  (*n->mutable_attr())["T"].set_type(type);
  return n;
}
NodeDef* AddSplit(GraphDef* g, const std::string& name, const std::string& input, int64_t n_out) {
  NodeDef* n = AddTo(g, "Split", name, {input});
  (*n->mutable_attr())["T"].set_type(proto::DT_FLOAT);
  (*n->mutable_attr())["N"].set_i(n_out);
  return n;
}
NodeDef* AddScalar(GraphDef* g, const std::string& name, float value) {
  NodeDef* n = AddTo(g, "Const", name);
  (*n->mutable_attr())["dtype"].set_type(proto::DT_FLOAT);
  auto* t = (*n->mutable_attr())["value"].mutable_tensor();
  t->set_dtype(proto::DT_FLOAT);
  t->mutable_tensor_shape();
  t->add_float_val(value);
  return n;
}

// A serialised GraphDef with one node that has this attribute value, whatever its bytes.
std::string WithRawAttr(const std::string& op, const std::string& key, const std::string& value) {
  std::string entry, node, graph;
  PutBytesField(1, key, &entry);
  PutBytesField(2, value, &entry);
  PutBytesField(1, "n", &node);
  PutBytesField(2, op, &node);
  PutBytesField(5, entry, &node);
  PutBytesField(1, node, &graph);
  return graph;
}

// ---- What is right ----

TEST_F(GraphDefTest, RoundTripsAGraph) {
  GraphDef g;
  AddPlaceholder(&g, "x")->set_device("/device:CPU:0");
  AddScalar(&g, "scope/two", 2);
  AddSplit(&g, "parts", "x", 3);
  AddAdd(&g, "sum", {"parts:2", "scope/two", "^x", "^parts"});
  g.mutable_versions()->set_producer(2000);
  g.mutable_versions()->set_min_consumer(12);
  g.mutable_versions()->add_bad_consumers(3);
  ASSERT_TRUE(Import(g).ok());
  const Node* sum = graph_->Find("sum");
  ASSERT_NE(sum, nullptr);
  EXPECT_EQ(sum->inputs()[0], (Edge{graph_->Find("parts"), 2}));
  EXPECT_THAT(sum->controls(), ElementsAre(graph_->Find("x"), graph_->Find("parts")));
  EXPECT_EQ(graph_->Find("x")->device(), "/device:CPU:0");
  EXPECT_EQ(graph_->Find("scope/two")->value(0).as<float>()[0], 2.f);

  const std::string bytes = Export();
  GraphDef out = Exported();
  ASSERT_EQ(out.node_size(), 4);
  EXPECT_THAT(out.node(3).input(), ElementsAre("parts:2", "scope/two", "^x", "^parts"));
  EXPECT_EQ(out.node(0).device(), "/device:CPU:0");
  EXPECT_EQ(out.versions().producer(), 2000);
  EXPECT_EQ(out.versions().min_consumer(), 12);
  EXPECT_THAT(out.versions().bad_consumers(), ElementsAre(3));
  // And once more: the same bytes.
  graph_ = std::make_unique<Graph>(runtime_);
  ASSERT_TRUE(ImportBytes(bytes).ok());
  EXPECT_EQ(Export(), bytes);
}

TEST_F(GraphDefTest, NodesMayStandInAnyOrder) {
  GraphDef g;
  AddAdd(&g, "c", {"b", "a"});
  AddAdd(&g, "b", {"a", "a"});
  AddTo(&g, "NoOp", "n", {"^c"});
  AddPlaceholder(&g, "a");
  AddPlaceholder(&g, "d");
  ASSERT_TRUE(Import(g).ok());
  EXPECT_THAT(Names(), ElementsAre("a", "b", "c", "n", "d"));
}

TEST_F(GraphDefTest, AnEmptyGraphDefIsAGraph) {
  EXPECT_TRUE(ImportGraphDef(nullptr, 0, {}, graph_.get()).ok());
  EXPECT_EQ(graph_->size(), 0);
  EXPECT_FALSE(ImportGraphDef(nullptr, 5, {}, graph_.get()).ok());
}

TEST_F(GraphDefTest, KeepsEveryKindOfAttribute) {
  GraphDef g;
  auto& a = *AddTo(&g, "All", "all")->mutable_attr();
  a["i"].set_i(INT64_MIN);
  a["f"].set_f(1.25f);
  a["b"].set_b(false);
  a["s"].set_s("\0\xff"s);
  a["t"].set_type(proto::DT_HALF);
  a["sh"].mutable_shape()->add_dim()->set_size(-1);
  a["te"].mutable_tensor()->set_dtype(proto::DT_STRING);
  a["te"].mutable_tensor()->mutable_tensor_shape();
  a["te"].mutable_tensor()->add_string_val("t");
  a["fn"].mutable_func()->set_name("f");
  for (const char* name : {"li", "lb", "ls", "lt", "lsh", "lte", "lfn"}) a[name].mutable_list();  // empty
  for (float f : {1.5f, -0.f}) a["lf"].mutable_list()->add_f(f);
  ASSERT_TRUE(Import(g).ok());
  const Node* n = graph_->Find("all");
  EXPECT_EQ(*n->FindAttr("i"), AttrValue::Int(INT64_MIN));
  EXPECT_EQ(*n->FindAttr("s"), AttrValue::String("\0\xff"s));
  EXPECT_EQ(*n->FindAttr("li"), AttrValue::Ints({}));
  EXPECT_EQ(*n->FindAttr("lfn"), AttrValue::Funcs({}));
  EXPECT_EQ(*n->FindAttr("sh"), AttrValue::OfShape(Shape({-1})));
  const NodeDef out = Exported().node(0);
  EXPECT_EQ(out.attr().size(), a.size());
  for (auto& [name, value] : a) {
    EXPECT_EQ(out.attr().at(name).SerializeAsString(), value.SerializeAsString()) << name;
  }
}

// A field that nobody knows makes the parser read what is else read off the wire.
TEST_F(GraphDefTest, ReadsUsualAttributesAsTheParserDoes) {
  std::vector<proto::AttrValue> all;
  const auto add = [&]() -> proto::AttrValue& { return all.emplace_back(); };
  add().set_i(-1);
  add().set_f(0.5f);
  add().set_b(true);
  add().set_s("text");
  add().set_type(proto::DT_HALF);
  add().mutable_list();
  add().mutable_shape();
  add().mutable_shape()->set_unknown_rank(true);
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{2, 0, -1}, {-2}, std::vector<int64_t>(255, 1)}) {
    auto* shape = add().mutable_shape();
    for (int64_t d : dims) shape->add_dim()->set_size(d);
  }
  add().mutable_shape()->add_dim()->set_name("batch");
  const auto add_tensor = [&](proto::DataType type, std::vector<int64_t> dims, const std::string& content) {
    auto* t = add().mutable_tensor();
    t->set_dtype(type);
    for (int64_t d : dims) t->mutable_tensor_shape()->add_dim()->set_size(d);
    t->set_tensor_content(content);
    return t;
  };
  add_tensor(proto::DT_INT32, {2, 1}, "\1\0\0\0\2\0\0\0"s);
  add_tensor(proto::DT_FLOAT, {}, "\0\0\0\0"s)->mutable_tensor_shape();
  add_tensor(proto::DT_FLOAT, {}, "\0\0\0\0"s);
  add_tensor(proto::DT_INT32, {3}, "\1\0\0\0"s);
  add_tensor(proto::DT_INT32, {-1}, "\1\0\0\0"s);
  add_tensor(proto::DT_INT32, {int64_t{1} << 62, 4}, "\1\0\0\0"s);
  add_tensor(proto::DT_INT32, {0}, "");
  add_tensor(proto::DT_BOOL, {1}, "\2");
  add_tensor(proto::DT_STRING, {1}, "\1x");
  add_tensor(proto::DT_RESOURCE, {1}, "\1x");
  add_tensor(proto::DT_INVALID, {1}, "x");
  add_tensor(proto::DT_FLOAT_REF, {1}, "\0\0\0\0"s);
  add_tensor(proto::DT_INT32, {1}, "\1\0\0\0"s)->add_int_val(3);
  AttrSpec spec;
  spec.kind = TW_ATTR_INT;
  for (const proto::AttrValue& p : all) {
    std::string message = p.SerializeAsString();
    SplatBudget budget, same;
    bool whole, also;
    const auto usual = ParseAttr(message, spec, &budget, &whole);
    PutVarintField(99, 1, &message);
    const auto parsed = ParseAttr(message, spec, &same, &also);
    ASSERT_EQ(usual.status(), parsed.status()) << message;
    if (!usual.ok()) continue;
    EXPECT_EQ(*usual, *parsed) << usual->text();
  }
}

TEST_F(GraphDefTest, KeepsFilledListsToo) {
  GraphDef g;
  auto& a = *AddTo(&g, "All", "all")->mutable_attr();
  a["te"].mutable_tensor()->set_dtype(proto::DT_INT8);
  a["fn"].mutable_func()->set_name("f");
  a["li"].mutable_list()->add_i(-1);
  a["lf"].mutable_list()->add_f(2);
  a["lb"].mutable_list()->add_b(true);
  a["ls"].mutable_list()->add_s("s");
  a["lt"].mutable_list()->add_type(proto::DT_INT4);
  a["lsh"].mutable_list()->add_shape()->set_unknown_rank(true);
  auto* t = a["lte"].mutable_list()->add_tensor();
  t->set_dtype(proto::DT_INT64);
  t->mutable_tensor_shape()->add_dim()->set_size(1);
  t->set_tensor_content(std::string(8, '\7'));
  a["lfn"].mutable_list()->add_func()->set_name("g");
  ASSERT_TRUE(Import(g).ok());
  const NodeDef out = Exported().node(0);
  for (const char* name : {"li", "lf", "lb", "ls", "lt", "lsh", "lte", "lfn"}) {
    EXPECT_EQ(out.attr().at(name).SerializeAsString(), a[name].SerializeAsString()) << name;
  }
}

TEST_F(GraphDefTest, WritesDefaultsTooInTheOrderOfNames) {
  GraphDef g;
  AddPlaceholder(&g, "x");
  ASSERT_TRUE(Import(g).ok());
  const std::string bytes = Export();
  EXPECT_LT(bytes.find("dtype"), bytes.find("shape"));
  EXPECT_TRUE(Exported().node(0).attr().at("shape").shape().unknown_rank());
}

TEST_F(GraphDefTest, KeepsUnderscoreAttributesByteForByte) {
  // A bool, written in three bytes where two would do.
  const std::string odd = "\x28\x81\x00"s;
  ASSERT_TRUE(ImportBytes(WithRawAttr("NoOp", "_odd", odd)).ok());
  EXPECT_EQ(graph_->Find("n")->extra_attrs().at("_odd"), odd);
  EXPECT_THAT(Export(), HasSubstr("_odd\x12\x03" + odd));
}

TEST_F(GraphDefTest, KeepsWhatRunsInThePlaceOfOthers) {
  GraphDef g;
  AddPlaceholder(&g, "x");
  AddSplit(&g, "two", "x", 2);
  AddAdd(&g, "sum", {"x", "x"});
  AddSplit(&g, "three", "x", 3);
  ASSERT_TRUE(Import(g).ok());
  const Node *two = graph_->Find("two"), *three = graph_->Find("three"), *sum = graph_->Find("sum");
  graph_->Extend(two, three);
  graph_->Replace({sum, 0}, {three, 2});
  const GraphDef written = Exported();
  EXPECT_EQ(written.node(3).attr().at("_thalweg_extends").s(), "two");
  EXPECT_THAT(written.node(3).attr().at("_thalweg_replaces").list().s(), ElementsAre("sum 2"));

  graph_ = std::make_unique<Graph>(runtime_);
  ASSERT_TRUE(Import(written, {.prefix = "again"}).ok());
  const Node* longer = graph_->Find("again/three");
  EXPECT_EQ(graph_->ExtendedBy(graph_->Find("again/two")), longer);
  EXPECT_EQ(graph_->ReplacedBy({graph_->Find("again/sum"), 0}), (Edge{longer, 2}));
  EXPECT_TRUE(longer->extra_attrs().empty());
  EXPECT_EQ(Exported().node(3).attr().at("_thalweg_extends").s(), "again/two");
}

TEST_F(GraphDefTest, RefusesNodesThatCannotRunInThePlaceOfOthers) {
  GraphDef g;
  AddPlaceholder(&g, "x");
  AddSplit(&g, "two", "x", 2);
  AddAdd(&g, "sum", {"x", "x"});
  AddAdd(&g, "after", {"sum", "x"});
  AddPlaceholder(&g, "whole", proto::DT_INT32);
  GraphDef gone = g;
  (*gone.mutable_node(3)->mutable_attr())["_thalweg_extends"].set_s("nobody");
  (*gone.mutable_node(3)->mutable_attr())["_thalweg_replaces"].mutable_list()->add_s("nobody:1 0");
  ASSERT_TRUE(Import(gone, {.prefix = "gone"}).ok());  // somebody has cut the graph
  EXPECT_EQ(graph_->ExtendedBy(graph_->Find("gone/sum")), nullptr);

  const auto refuses = [&](const char* key, const char* value, bool list, const char* words) {
    GraphDef bad = g;
    auto& attr = (*bad.mutable_node(3)->mutable_attr())[key];
    if (list) {
      attr.mutable_list()->add_s(value);
    } else {
      attr.set_s(value);
    }
    Refuses(bad, kInvalid, words);
  };
  refuses("_thalweg_extends", "two", false, "names 'two', in whose place the node cannot run");
  refuses("_thalweg_extends", "sum", false, "names 'sum', in whose place");
  refuses("_thalweg_extends", "after", true, "is no string");
  refuses("_thalweg_replaces", "two 0", false, "is no list of strings");
  for (const char* value : {"sum 0", "whole 0", "two:2 0", "two 1", "two", "two:x 0", "two -1", "after 0"}) {
    refuses("_thalweg_replaces", value, true, "in whose place the node cannot run");
  }
}

TEST_F(GraphDefTest, RefusesNodesThatNeedEachOtherByWhatTheyReplace) {
  GraphDef g;
  AddPlaceholder(&g, "x");
  AddAdd(&g, "one", {"x", "x"});
  AddAdd(&g, "two", {"x", "x"});
  AddAdd(&g, "for_one", {"two", "x"});
  AddAdd(&g, "for_two", {"one", "x"});
  const auto replace = [&](int node, const char* value) {
    (*g.mutable_node(node)->mutable_attr())["_thalweg_replaces"].mutable_list()->add_s(value);
  };
  replace(3, "one 0");
  ASSERT_TRUE(Import(g, {.prefix = "half"}).ok());
  replace(4, "two 0");
  Refuses(g, kInvalid, "in whose place the node cannot run");
}

TEST_F(GraphDefTest, KeepsAFunctionWithItsAttributes) {
  GraphDef g;
  auto& a = *AddTo(&g, "All", "all")->mutable_attr();
  a["te"].mutable_tensor()->set_dtype(proto::DT_INT8);
  for (const char* name : {"lf", "lb", "ls", "lt", "lsh", "lte", "lfn"}) a[name].mutable_list();
  a["fn"].mutable_func()->set_name("f");
  (*a["fn"].mutable_func()->mutable_attr())["T"].set_type(proto::DT_FLOAT);
  ASSERT_TRUE(Import(g).ok());
  EXPECT_EQ(*graph_->Find("all")->FindAttr("fn"), AttrValue::Func("f"));
  EXPECT_EQ(Exported().node(0).attr().at("fn").func().attr().at("T").type(), proto::DT_FLOAT);
}

TEST_F(GraphDefTest, KeepsLibraryAndUnknownFieldsByteForByte) {
  std::string library, function, node, bytes, tail;
  std::string signature;
  PutBytesField(1, "f", &signature);
  PutBytesField(1, signature, &function);
  PutBytesField(3, "\x99"s, &function);  // a node that is none: nobody looks until somebody calls it
  PutBytesField(1, function, &library);
  PutBytesField(2, library, &bytes);
  PutBytesField(5, "debug", &tail);  // debug_info
  PutVarintField(900, 7, &tail);
  PutBytesField(1, "n", &node);
  PutBytesField(2, "NoOp", &node);
  PutBytesField(6, "\x0a\x01o", &node);  // experimental_debug_info
  PutVarintField(77, 5, &node);
  PutBytesField(1, node, &bytes);
  ASSERT_TRUE(ImportBytes(bytes + tail).ok());
  EXPECT_EQ(graph_->extras().library, library);
  EXPECT_EQ(graph_->extras().unknown_fields, tail);
  const std::string out = Export();
  EXPECT_THAT(out, HasSubstr(node));
  EXPECT_THAT(out, HasSubstr(library));
  EXPECT_EQ(out.substr(out.size() - tail.size()), tail);
}

TEST_F(GraphDefTest, ClassBecomesColocation) {
  GraphDef g;
  AddPlaceholder(&g, "a");
  auto* b = AddPlaceholder(&g, "b");
  (*b->mutable_attr())["_class"].mutable_list()->add_s("loc:@a");
  (*b->mutable_attr())["_class"].mutable_list()->add_s("other");
  ASSERT_TRUE(Import(g).ok());
  EXPECT_THAT(graph_->Find("b")->colocate_with(), ElementsAre("a"));
  EXPECT_THAT(Exported().node(1).attr().at("_class").list().s(), ElementsAre("loc:@a", "other"));
  ImportOptions scope;
  scope.prefix = "again";
  ASSERT_TRUE(Import(g, scope).ok());
  EXPECT_THAT(graph_->Find("again/b")->colocate_with(), ElementsAre("again/a"));
  EXPECT_THAT(Exported().node(3).attr().at("_class").list().s(), ElementsAre("other", "loc:@again/a"));
}

TEST_F(GraphDefTest, ColocationSetByHandIsWritten) {
  GraphDef g;
  AddPlaceholder(&g, "a");
  ASSERT_TRUE(Import(g).ok());
  NodeSpec spec;
  spec.op = "NoOp";
  spec.name = "n";
  spec.colocate_with = {"a"};
  ASSERT_TRUE(graph_->AddNode(spec).ok());
  EXPECT_THAT(Exported().node(1).attr().at("_class").list().s(), ElementsAre("loc:@a"));
}

TEST_F(GraphDefTest, PrefixAndDefaultDeviceApply) {
  GraphDef g;
  AddPlaceholder(&g, "x");
  AddAdd(&g, "y", {"x", "x:0", "^x"})->set_device("/device:GPU:1");
  ImportOptions options;
  options.prefix = "scope";
  options.default_device = "/device:CPU:0";
  ASSERT_TRUE(Import(g, options).ok());
  options.prefix = "other/";
  ASSERT_TRUE(Import(g, options).ok());
  EXPECT_THAT(Names(), ElementsAre("scope/x", "scope/y", "other/x", "other/y"));
  EXPECT_EQ(graph_->Find("scope/x")->device(), "/device:CPU:0");
  EXPECT_EQ(graph_->Find("scope/y")->device(), "/device:GPU:1");
  EXPECT_EQ(graph_->Find("other/y")->inputs()[1].node, graph_->Find("other/x"));
  options.prefix = "no good";
  Refuses(g, kInvalid, "prefix 'no good'", options);
}

TEST_F(GraphDefTest, VersionsMergeToTheStricter) {
  GraphDef g;
  AddPlaceholder(&g, "a");
  g.mutable_versions()->set_producer(2100);
  g.mutable_versions()->set_min_consumer(20);
  ASSERT_TRUE(Import(g).ok());
  GraphDef h;
  AddPlaceholder(&h, "b");
  h.mutable_versions()->set_producer(1900);
  h.mutable_versions()->set_min_consumer(10);
  h.mutable_versions()->add_bad_consumers(7);
  ASSERT_TRUE(Import(h).ok());
  EXPECT_EQ(graph_->extras().producer, 1900);
  EXPECT_EQ(graph_->extras().min_consumer, 20);
  EXPECT_THAT(graph_->extras().bad_consumers, ElementsAre(7));
}

TEST_F(GraphDefTest, AGraphOfOurOwnSaysOurVersion) {
  NodeSpec spec;
  spec.op = "NoOp";
  ASSERT_TRUE(graph_->AddNode(spec).ok());
  EXPECT_EQ(Exported().versions().producer(), kGraphVersion);
}

TEST_F(GraphDefTest, ImportsAndExportsMayRunAtOnce) {
  GraphDef g;
  AddPlaceholder(&g, "x");
  AddAdd(&g, "y", {"x", "x"});
  const std::string bytes = g.SerializeAsString();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        ImportOptions options;
        options.prefix = StrCat("t", t, "_", i);
        EXPECT_TRUE(ImportBytes(bytes, options).ok());
        GraphDef seen = Exported();
        EXPECT_EQ(seen.node_size() % 2, 0) << "half an import was seen";
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(graph_->size(), 160);
}

// ---- What is wrong ----

TEST_F(GraphDefTest, RefusesAnOpThatNobodyDefines) {
  GraphDef g;
  AddPlaceholder(&g, "a");
  AddTo(&g, "Mystery", "m", {"a"});
  Refuses(g, absl::StatusCode::kNotFound, "Mystery 'm': no loaded plugin defines op 'Mystery'");
}

TEST_F(GraphDefTest, RefusesDuplicateNames) {
  GraphDef g;
  AddPlaceholder(&g, "a");
  AddTo(&g, "NoOp", "a");
  Refuses(g, kInvalid, "NoOp 'a': node number 0 of the GraphDef, Placeholder, has the same name");
}

TEST_F(GraphDefTest, RefusesNamesThatTheGraphHas) {
  GraphDef g;
  AddPlaceholder(&g, "b");
  ASSERT_TRUE(Import(g).ok());
  GraphDef h;
  AddPlaceholder(&h, "a");
  AddPlaceholder(&h, "b");
  Refuses(h, absl::StatusCode::kAlreadyExists, "Placeholder 'b'");
}

TEST_F(GraphDefTest, RefusesNamesThatAreNone) {
  for (const std::string& name : {""s, "a b"s, "a:1"s, "^a"s, "-a"s, "a\0"s, "\xff"s}) {
    std::string node, bytes;
    PutBytesField(1, name, &node);
    PutBytesField(2, "NoOp", &node);
    PutBytesField(1, node, &bytes);
    EXPECT_EQ(ImportBytes(bytes).code(), kInvalid) << name;
  }
  GraphDef g;
  AddTo(&g, "", "n");
  Refuses(g, kInvalid, "node 'n' has no op");
}

TEST_F(GraphDefTest, RefusesInputsThatLeadNowhere) {
  auto refuses = [&](const std::vector<std::string>& inputs, const std::string& words) {
    GraphDef g;
    AddPlaceholder(&g, "x");
    AddSplit(&g, "parts", "x", 2);
    AddAdd(&g, "sum", inputs);
    Refuses(g, kInvalid, words);
  };
  refuses({"x", "nope"}, "Add 'sum': input 1 is 'nope', but the GraphDef has no node 'nope'");
  refuses({"x", "x", "^nope"}, "input 2 is '^nope'");
  refuses({"parts:2", "x"}, "Add 'sum': input 0 is 'parts:2', but Split 'parts' has 2 outputs");
  refuses({"^x", "x", "x"}, "Add 'sum': input 1 is 'x' but stands behind a control input");
  for (const char* bad : {"", "^", "x:", "x:-1", "x:1234567", "x:0:0", "^x:0", "x y", ":0"}) {
    refuses({"x", bad}, "input 1 is '"s + bad + "', which is none of");
  }
  refuses({"x"}, "Add 'sum': takes 2 inputs but got 1");
  refuses({"x", "x", "x"}, "takes 2 inputs but got 3");
}

TEST_F(GraphDefTest, RefusesCyclesAndNamesThem) {
  GraphDef g;
  AddPlaceholder(&g, "x");
  AddAdd(&g, "behind", {"c", "x"});
  AddAdd(&g, "a", {"x", "c"});
  AddAdd(&g, "b", {"a", "x"});
  AddAdd(&g, "c", {"x", "b"});
  const std::string before = Export();
  Status s = Import(g);
  EXPECT_EQ(s.code(), kInvalid);
  EXPECT_THAT(std::string(Message(s)), HasSubstr("3 nodes form a cycle:"));
  EXPECT_THAT(std::string(Message(s)), HasSubstr("'a' -> 'b' -> 'c' -> 'a'"));
  EXPECT_EQ(Export(), before);
  GraphDef self;
  AddTo(&self, "NoOp", "n", {"^n"});
  Refuses(self, kInvalid, "1 nodes form a cycle: 'n' -> 'n'");
  GraphDef ring;
  for (int i = 0; i < 1000; ++i) AddTo(&ring, "NoOp", StrCat("n", i), {StrCat("^n", (i + 1) % 1000)});
  Refuses(ring, kInvalid, "(992 more)");
}

TEST_F(GraphDefTest, RefusesWrongTypes) {
  GraphDef g;
  AddPlaceholder(&g, "x", proto::DT_INT32);
  AddAdd(&g, "sum", {"x", "x"});
  Refuses(g, kInvalid, "Add 'sum': input 'x' must be float but is int32");
  g.Clear();
  AddPlaceholder(&g, "x", proto::DT_DOUBLE);
  AddAdd(&g, "sum", {"x", "x"}, proto::DT_DOUBLE);
  Refuses(g, kInvalid, "Add 'sum'");
  g.Clear();
  AddPlaceholder(&g, "x", proto::DataType(77));
  Refuses(g, kInvalid, "Placeholder 'x'");
  g.Clear();
  (*AddScalar(&g, "c", 1)->mutable_attr())["dtype"].set_type(proto::DT_INT32);
  Refuses(g, kInvalid, "Const 'c': the value is float");
}

TEST_F(GraphDefTest, RefusesAttributesThatTheOpLacks) {
  GraphDef g;
  (*AddPlaceholder(&g, "x")->mutable_attr())["colour"].set_s("red");
  Refuses(g, kInvalid, "Placeholder 'x': attribute 'colour': op Placeholder of plugin 'test.ops' has no such attribute");
}

TEST_F(GraphDefTest, RefusesAttributeValuesThatAreNone) {
  auto refuses = [&](const std::string& value, const std::string& words) {
    Status s = ImportBytes(WithRawAttr("Placeholder", "dtype", value));
    EXPECT_EQ(s.code(), kInvalid) << s;
    EXPECT_THAT(std::string(Message(s)), HasSubstr("Placeholder 'n': attribute 'dtype': " + words));
    EXPECT_EQ(graph_->size(), 0);
  };
  refuses("", "it has no value");
  refuses("\xff", "its 1 bytes are no AttrValue message");
  refuses("\x4a\x01T", "it is the placeholder 'T'");
  refuses("\x0a\x04\x12\x00\x18\x01"s, "its list has values of 2 kinds");
  GraphDef g;
  (*AddPlaceholder(&g, "x")->mutable_attr())["dtype"].set_i(1);
  Refuses(g, kInvalid, "Placeholder 'x': attribute 'dtype' is 1 but must be a type");
  g.Clear();
  AddTo(&g, "Placeholder", "x");
  Refuses(g, kInvalid, "attribute 'dtype' is missing");
  g.Clear();
  AddPlaceholder(&g, "x");
  (*AddTo(&g, "NoOp", "n")->mutable_attr())["_class"].mutable_list()->add_s("loc:@ghost");
  Refuses(g, kInvalid, "NoOp 'n': attribute '_class': there is no node 'ghost'");
}

TEST_F(GraphDefTest, RefusesAnAttributeSetTwice) {
  std::string entry, node, bytes;
  PutBytesField(1, "_a", &entry);
  PutBytesField(2, "\x28\x01", &entry);
  PutBytesField(1, "n", &node);
  PutBytesField(2, "NoOp", &node);
  PutBytesField(5, entry, &node);
  PutBytesField(5, entry, &node);
  PutBytesField(1, node, &bytes);
  EXPECT_THAT(std::string(Message(ImportBytes(bytes))), HasSubstr("NoOp 'n': attribute '_a' is set twice"));
}

TEST_F(GraphDefTest, RefusesDeepNesting) {
  // A function whose attribute is a function whose attribute ...
  std::string value = "\x18\x01";
  for (int i = 0; i < 100000 && value.size() < (8u << 20); ++i) {
    std::string entry, func, attr;
    PutBytesField(1, "a", &entry);
    PutBytesField(2, value, &entry);
    PutBytesField(2, entry, &func);
    PutBytesField(10, func, &attr);
    value = attr;
    if (i > 2000) break;  // copying is quadratic; this is deep enough for any stack that trusted it
  }
  Status s = ImportBytes(WithRawAttr("Placeholder", "dtype", value));
  EXPECT_EQ(s.code(), kInvalid);
  EXPECT_THAT(std::string(Message(s)), HasSubstr("nested more than 100 deep"));
  // Where nobody looks inside, depth does no harm.
  EXPECT_TRUE(ImportBytes(WithRawAttr("NoOp", "_deep", value)).ok());
}

TEST_F(GraphDefTest, RefusesBombs) {
  GraphDef g;
  auto* shape = (*AddScalar(&g, "c", 1)->mutable_attr())["value"].mutable_tensor()->mutable_tensor_shape();
  shape->add_dim()->set_size(int64_t{1} << 40);
  Refuses(g, kExhausted, "Const 'c': attribute 'value':");
  shape->add_dim()->set_size(int64_t{1} << 40);
  Refuses(g, kInvalid, "2^63-1");
  // The limit is for the whole graph, and can be raised.
  g.Clear();
  for (int i = 0; i < 3; ++i) {
    auto* t = (*AddScalar(&g, StrCat("c", i), 1)->mutable_attr())["value"].mutable_tensor();
    t->mutable_tensor_shape()->add_dim()->set_size(10 << 18);
  }
  ImportOptions options;
  options.max_splat_bytes = 25u << 20;
  Refuses(g, kExhausted, "Const 'c2': attribute 'value':", options);
  EXPECT_TRUE(Import(g).ok());
  // A list of a million tensors in two bytes each.
  std::string list, value;
  for (int i = 0; i < 1000000; ++i) list += "\x42\x00"s;
  PutBytesField(1, list, &value);
  Status s = ImportBytes(WithRawAttr("Placeholder", "dtype", value));
  EXPECT_EQ(s.code(), kExhausted);
  EXPECT_THAT(std::string(Message(s)), HasSubstr("too many messages"));
}

TEST_F(GraphDefTest, KeepsToItsLimits) {
  GraphDef g;
  for (int i = 0; i < 10; ++i) AddTo(&g, "NoOp", StrCat("n", i));
  ImportOptions options;
  options.max_nodes = 9;
  Refuses(g, kExhausted, "more than 9 nodes", options);
  options = {};
  options.max_bytes = 20;
  Refuses(g, kExhausted, "at most 20 may be imported", options);
}

TEST_F(GraphDefTest, RefusesGraphsMeantForOthers) {
  GraphDef g;
  g.mutable_versions()->set_min_consumer(kGraphVersion + 1);
  Refuses(g, absl::StatusCode::kFailedPrecondition, "asks for a reader of version");
  g.mutable_versions()->set_min_consumer(kGraphVersion);
  g.mutable_versions()->add_bad_consumers(kGraphVersion);
  Refuses(g, absl::StatusCode::kFailedPrecondition, "misread it");
}

TEST_F(GraphDefTest, RefusesFloatsThatTheFormatCannotHold) {
  NodeSpec spec;
  spec.op = "All";
  spec.name = "all";
  spec.attrs["f"] = AttrValue::Float(1e300);
  spec.attrs["te"] = AttrValue::OfTensor(*Tensor::Vector<float>(TW_FLOAT, {1}));
  spec.attrs["fn"] = AttrValue::Func("f");
  spec.attrs["lf"] = AttrValue::Floats({});
  spec.attrs["lb"] = AttrValue::Bools({});
  spec.attrs["ls"] = AttrValue::Strings({});
  spec.attrs["lt"] = AttrValue::Types({});
  spec.attrs["lsh"] = AttrValue::Shapes({});
  spec.attrs["lte"] = AttrValue::Tensors({});
  spec.attrs["lfn"] = AttrValue::Funcs({});
  auto added = graph_->AddNode(spec);
  ASSERT_TRUE(added.ok()) << added.status();
  Status s = ExportGraphDef(*graph_).status();
  EXPECT_EQ(s.code(), kInvalid);
  EXPECT_THAT(std::string(Message(s)), HasSubstr("All 'all': attribute 'f':"));
}

// ---- Damage ----

class DamagedGraphDefTest : public GraphDefTest {
 protected:
  std::string Sample() {
    GraphDef g;
    AddPlaceholder(&g, "x")->set_device("/device:CPU:0");
    AddScalar(&g, "two", 2);
    AddSplit(&g, "parts", "x", 3);
    auto* sum = AddAdd(&g, "sum", {"parts:2", "two", "^x"});
    (*sum->mutable_attr())["_class"].mutable_list()->add_s("loc:@x");
    g.mutable_versions()->set_producer(2000);
    g.mutable_library()->add_function()->mutable_signature()->set_name("f");
    return g.SerializeAsString();
  }
  // Whatever comes of it, the graph stays one that can be written and read.
  void Try(const std::string& bytes) {
    graph_ = std::make_unique<Graph>(runtime_);
    Status s = ImportBytes(bytes);
    if (!s.ok()) {
      EXPECT_EQ(graph_->size(), 0);
      EXPECT_FALSE(Message(s).empty());
      return;
    }
    const std::string out = Export();
    graph_ = std::make_unique<Graph>(runtime_);
    s = ImportBytes(out);
    EXPECT_TRUE(s.ok()) << s;
    EXPECT_EQ(Export(), out);
  }
};

TEST_F(DamagedGraphDefTest, EveryTruncationIsAStatusOrAShorterGraph) {
  const std::string whole = Sample();
  ASSERT_TRUE(ImportBytes(whole).ok());
  for (size_t n = 0; n < whole.size(); ++n) Try(whole.substr(0, n));
}

TEST_F(DamagedGraphDefTest, EveryFlippedBitIsAStatusOrAGraph) {
  const std::string whole = Sample();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bad = whole;
    bad[bit / 8] ^= char(1 << bit % 8);
    Try(bad);
  }
}

TEST_F(DamagedGraphDefTest, RandomDamageIsAStatusOrAGraph) {
  const std::string whole = Sample();
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string bad = whole;
    for (uint32_t k = random() % 4 + 1; k > 0; --k) {
      const size_t at = random() % bad.size();
      switch (random() % 3) {
        case 0: bad[at] = char(random()); break;
        case 1: bad.erase(at, random() % 8); break;
        default: bad.insert(at, whole.substr(random() % whole.size(), random() % 20));
      }
    }
    Try(bad);
  }
}

}  // namespace
}  // namespace thalweg
