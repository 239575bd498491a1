#include "framework/graph/graph_def.h"

#include <memory>
#include <random>
#include <thread>

#include "framework/graph/attr_proto.h"
#include "tests/framework/graph/graph_defs.h"

namespace thalweg {
namespace {

using proto::GraphDef;
using proto::NodeDef;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::AddAdd;
using testing_support::AddPlaceholder;
using testing_support::AddScalar;
using testing_support::AddSplit;
using testing_support::AddTo;
using testing_support::GraphDefTest;
using testing_support::kInvalid;
using testing_support::WithRawAttr;
using std::string_literals::operator""s;

// In a function's body, the name of a node outside is the name of a colocation group, as in
// TensorFlow.
TEST_F(GraphDefTest, PlacesNodesOfABodyTogetherThatNameANodeOutside) {
  GraphDef g;
  AddPlaceholder(&g, "x");
  for (const char* name : {"a", "b", "c"}) AddTo(&g, "NoOp", name);
  for (int i : {1, 2, 3}) (*g.mutable_node(i)->mutable_attr())["_class"].mutable_list()->add_s(i < 3 ? "loc:@around" : "loc:@x");
  Refuses(g, kInvalid, "there is no node 'around' to be placed with");
  ImportOptions options;
  options.function_body = true;
  ASSERT_TRUE(Import(g, options).ok());
  EXPECT_THAT(graph_->Find("a")->colocate_with(), ElementsAre());
  EXPECT_THAT(graph_->Find("b")->colocate_with(), ElementsAre("a"));
  EXPECT_THAT(graph_->Find("c")->colocate_with(), ElementsAre("x"));
  for (int i : {1, 2}) EXPECT_THAT(Exported().node(i).attr().at("_class").list().s(), ElementsAre("loc:@around"));
}

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
  // A second export gives the same bytes.
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

// An unknown field makes the parser read the attributes that are otherwise read directly from the
// wire.
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
  // A bool, encoded in three bytes instead of two.
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
  ASSERT_TRUE(Import(gone, {.prefix = "gone"}).ok());  // the graph lacks the extended node
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
  PutBytesField(3, "\x99"s, &function);  // an invalid node: it is not read until the function is called
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
  // Whatever the import returns, the graph can still be exported and imported.
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
