// GraphDefs that import refuses: each with a code and a message, and without a change to the graph.
#include <algorithm>

#include "framework/graph/left_out.h"
#include "tests/framework/graph/graph_defs.h"

namespace thalweg {
namespace {

using proto::GraphDef;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::AddAdd;
using testing_support::AddPlaceholder;
using testing_support::AddScalar;
using testing_support::AddSplit;
using testing_support::AddTo;
using testing_support::GraphDefTest;
using testing_support::kExhausted;
using testing_support::kInvalid;
using testing_support::WithRawAttr;
using std::string_literals::operator""s;

TEST_F(GraphDefTest, RefusesAnOpThatNobodyDefines) {
  GraphDef g;
  AddPlaceholder(&g, "a");
  AddTo(&g, "Mystery", "m", {"a"});
  ImportOptions prefixed;
  prefixed.prefix = "p";
  Refuses(g, absl::StatusCode::kNotFound, "Mystery 'p/m': no loaded plugin defines op 'Mystery'", prefixed);
}

TEST_F(GraphDefTest, NamesAllOpsThatNobodyDefines) {
  GraphDef g;
  AddPlaceholder(&g, "a");
  AddTo(&g, "Mystery", "m", {"a"});
  AddTo(&g, "Riddle", "r", {"a"});
  AddTo(&g, "Mystery", "m2", {"m"});
  AddTo(&g, "Enigma", "e", {"m"});
  AddTo(&g, "Enigma", "e2", {"e"});
  ImportOptions prefixed;
  prefixed.prefix = "p";
  Refuses(g, absl::StatusCode::kNotFound, "or check the spelling; nor 'Enigma' (2 nodes), 'Riddle' (1 node)", prefixed);
  for (int i = 0; i < 30; ++i) AddTo(&g, StrCat("Secret", i), StrCat("s", i));
  Refuses(g, absl::StatusCode::kNotFound, "'Secret24' (1 node) and 12 more", prefixed);
}

TEST_F(GraphDefTest, LeavesOutWhatNeedsOpsThatNobodyDefines) {
  GraphDef g;
  AddPlaceholder(&g, "a");
  AddAdd(&g, "sum", {"a", "a"});
  AddTo(&g, "Mystery", "m", {"a"});
  AddTo(&g, "Enigma", "e", {"sum", "^m"});
  AddTo(&g, "NoOp", "save", {"^e"});
  AddTo(&g, "Riddle", "r");
  AddTo(&g, "NoOp", "with");
  (*g.mutable_node(6)->mutable_attr())["_class"].mutable_list()->add_s("loc:@m");
  ASSERT_TRUE(Import(g).ok());
  EXPECT_THAT(Names(), ElementsAre("a", "sum", "with"));
  const auto left_out = [&](std::string_view name) { return std::string(Message(CheckNotLeftOut(*graph_, name))); };
  EXPECT_TRUE(CheckNotLeftOut(*graph_, "sum").ok());
  EXPECT_TRUE(CheckNotLeftOut(*graph_, "nothing").ok());
  EXPECT_EQ(left_out("save"),
            "node 'save' was left out of the import: no loaded plugin defines 'Enigma' (1 node), 'Mystery' (1 node); load the plugin that "
            "does, and import the graph again");
  EXPECT_THAT(left_out("r"), HasSubstr("'Riddle' (1 node);"));
  EXPECT_EQ(CheckNothingLeftOut(*graph_).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(CheckNothingLeftOut(*graph_))),
              HasSubstr("4 nodes were left out of the import: no loaded plugin defines"));
  // An export contains all of them, and importing it gives the same graph.
  const std::string once = Export();
  const GraphDef whole = Exported();
  EXPECT_EQ(whole.node_size(), 7);
  for (const auto& n : g.node()) {
    EXPECT_EQ(1, std::count_if(whole.node().begin(), whole.node().end(),
                               [&](const auto& w) { return w.name() == n.name() && w.op() == n.op() && w.input_size() == n.input_size(); }))
        << n.name();
  }
  graph_ = std::make_unique<Graph>(runtime_);
  ASSERT_TRUE(ImportBytes(once).ok());
  EXPECT_EQ(Export(), once);
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

TEST_F(GraphDefTest, SaysWhereTheGraphIsInWhatHoldsOne) {
  std::string meta, meta_info, saved;
  PutBytesField(5, "2.21.0", &meta_info);  // tensorflow_version
  PutBytesField(1, meta_info, &meta);      // meta_info_def of a MetaGraphDef
  PutBytesField(2, "", &meta);             // graph_def
  EXPECT_THAT(std::string(ImportBytes(meta).message()), HasSubstr("of a MetaGraphDef, such as a .meta file holds, give the graph_def"));
  PutVarintField(1, 1, &saved);  // saved_model_schema_version of a SavedModel
  PutBytesField(2, meta, &saved);
  EXPECT_THAT(std::string(ImportBytes(saved).message()), HasSubstr("this is a SavedModel and no GraphDef"));
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
  // A function attribute that is nested in a function attribute, and so on.
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
  // If nobody reads the nested value, its depth does no harm.
  EXPECT_TRUE(ImportBytes(WithRawAttr("NoOp", "_deep", value)).ok());
}

TEST_F(GraphDefTest, RefusesBombs) {
  GraphDef g;
  auto* shape = (*AddScalar(&g, "c", 1)->mutable_attr())["value"].mutable_tensor()->mutable_tensor_shape();
  shape->add_dim()->set_size(int64_t{1} << 40);
  Refuses(g, kExhausted, "Const 'c': attribute 'value':");
  shape->add_dim()->set_size(int64_t{1} << 40);
  Refuses(g, kInvalid, "2^63-1");
  // The limit counts for the whole graph, and can be raised.
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

}  // namespace
}  // namespace thalweg
