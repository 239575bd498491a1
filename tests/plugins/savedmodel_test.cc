// The importer of SavedModels on models of both generations that the test writes: variables, tables,
// assets, tags, missing ops, damage.
#include <cstdlib>

#include <gtest/gtest.h>

#include "saved_model_writer.h"

namespace thalweg::test {
namespace {

namespace fs = std::filesystem;
using proto::DT_FLOAT;
using proto::DT_INT64;
using proto::DT_RESOURCE;
using proto::DT_STRING;

class Folder {
 public:
  Folder() {
    std::string path = (fs::temp_directory_path() / "thalweg-savedmodel-XXXXXX").string();
    if (!::mkdtemp(path.data())) throw std::runtime_error("no temporary folder");
    path_ = path;
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

void WriteCheckpoint(const std::string& model, const std::vector<std::pair<std::string, std::vector<float>>>& values) {
  fs::create_directories(model + "/variables");
  std::vector<const char*> names;
  std::vector<tw::Tensor> tensors;
  std::vector<tw_tensor*> handles;
  for (const auto& [name, elements] : values) {
    const std::vector<int64_t> dims = elements.size() == 4 ? std::vector<int64_t>{2, 2} : std::vector<int64_t>{};
    tw_tensor* t = nullptr;
    tw::raise(tw_tensor_create_copy(TW_FLOAT, dims.data(), uint32_t(dims.size()), elements.data(), 4 * elements.size(), &t));
    tensors.push_back(tw::Tensor::adopt(t));
    handles.push_back(t);
    names.push_back(name.c_str());
  }
  tw::raise(tw_checkpoint_write((model + "/variables/variables").c_str(), names.data(), handles.data(), uint32_t(names.size())));
}

tw::Tensor Floats(const std::vector<int64_t>& dims, const std::vector<float>& values) {
  tw_tensor* t = nullptr;
  tw::raise(tw_tensor_create_copy(TW_FLOAT, dims.data(), uint32_t(dims.size()), values.data(), 4 * values.size(), &t));
  return tw::Tensor::adopt(t);
}
std::vector<float> Elements(const tw::Tensor& t) {
  const auto* p = static_cast<const float*>(tw_tensor_data(t.c()));
  return {p, p + tw_tensor_count(t.c())};
}
std::string Failure(const std::string& path, const tw::ModelOptions& options = {}) {
  try {
    const tw::Model model(path, options);
  } catch (const tw::StatusError& e) {
    return e.what();
  }
  return "";
}
#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

// y = x W in a function whose second argument is the variable, as tf.saved_model.save writes it. A second variable is only saved.
proto::SavedModel TwoGenerations(const std::string& op = "MatMul") {
  proto::SavedModel model;
  model.set_saved_model_schema_version(1);
  proto::MetaGraphDef& m = *model.add_meta_graphs();
  m.mutable_meta_info_def()->add_tags("serve");
  m.mutable_meta_info_def()->set_tensorflow_version("2.21.0");
  m.mutable_meta_info_def()->set_stripped_default_attrs(true);
  proto::GraphDef& g = *m.mutable_graph_def();
  g.mutable_versions()->set_producer(2474);
  g.mutable_versions()->set_min_consumer(12);
  for (const char* name : {"w", "unused"}) {
    AddNode(g.mutable_node(), name, "VarHandleOp", {},
            {Type("dtype", DT_FLOAT), ShapeOf("shape", {2, 2}), Text("shared_name", name), Text("debug_name", name)});
    AddNode(g.mutable_node(), std::string(name) + "/Read", "ReadVariableOp", {name}, {Type("dtype", DT_FLOAT)});
  }
  AddNode(g.mutable_node(), "serving_default_x", "Placeholder", {}, {Type("dtype", DT_FLOAT), ShapeOf("shape", {-1, 2})});
  AddNode(g.mutable_node(), "call", "StatefulPartitionedCall", {"serving_default_x", "w"},
          {Types("Tin", {DT_FLOAT, DT_RESOURCE}), Types("Tout", {DT_FLOAT}), Func("f", "__inference_<lambda>_1")});
  AddNode(g.mutable_node(), "saver_filename", "Placeholder", {}, {Type("dtype", DT_STRING), ShapeOf("shape", {})});
  AddNode(g.mutable_node(), "restore", "StatefulPartitionedCall", {"saver_filename", "w", "unused"},
          {Types("Tin", {DT_STRING, DT_RESOURCE, DT_RESOURCE}), Types("Tout", {DT_STRING}), Func("f", "__inference__traced_restore_2")});

  proto::FunctionDef& f = *g.mutable_library()->add_function();
  f.mutable_signature()->set_name("__inference_<lambda>_1");
  AddArg(f.mutable_signature(), "x", DT_FLOAT);
  AddArg(f.mutable_signature(), "handle", DT_RESOURCE);
  auto& out = *f.mutable_signature()->add_output_arg();
  out.set_name("identity");
  out.set_type(DT_FLOAT);
  AddNode(f.mutable_node_def(), "read", "ReadVariableOp", {"handle"}, {Type("dtype", DT_FLOAT)});
  AddNode(f.mutable_node_def(), "y", op, {"x", "read:value:0"}, {Type("T", DT_FLOAT)});
  (*f.mutable_ret())["identity"] = "y:product:0";

  proto::FunctionDef& r = *g.mutable_library()->add_function();
  r.mutable_signature()->set_name("__inference__traced_restore_2");
  AddArg(r.mutable_signature(), "file_prefix", DT_STRING);
  AddArg(r.mutable_signature(), "assign_w", DT_RESOURCE);
  AddArg(r.mutable_signature(), "assign_unused", DT_RESOURCE);
  auto& done = *r.mutable_signature()->add_output_arg();
  done.set_name("identity_2");
  done.set_type(DT_STRING);
  AddNode(r.mutable_node_def(), "RestoreV2/tensor_names", "Const", {},
          {Type("dtype", DT_STRING), Strings({"layer/w/.ATTRIBUTES/VARIABLE_VALUE", "other/.ATTRIBUTES/VARIABLE_VALUE"})});
  AddNode(r.mutable_node_def(), "RestoreV2/shape_and_slices", "Const", {}, {Type("dtype", DT_STRING), Strings({"", ""})});
  AddNode(r.mutable_node_def(), "RestoreV2", "RestoreV2",
          {"file_prefix", "RestoreV2/tensor_names:output:0", "RestoreV2/shape_and_slices:output:0"},
          {Types("dtypes", {DT_FLOAT, DT_FLOAT})});
  for (int i = 0; i < 2; ++i) {
    const std::string n = std::to_string(i);
    AddNode(r.mutable_node_def(), "Identity_" + n, "Identity", {"RestoreV2:tensors:" + n}, {Type("T", DT_FLOAT)});
    AddNode(r.mutable_node_def(), "Assign_" + n, "AssignVariableOp", {i ? "assign_unused" : "assign_w", "Identity_" + n + ":output:0"},
            {Type("dtype", DT_FLOAT)});
  }
  AddNode(r.mutable_node_def(), "Done", "Identity", {"file_prefix", "^Assign_0", "^Assign_1"}, {Type("T", DT_STRING)});
  (*r.mutable_ret())["identity_2"] = "Done:output:0";

  m.mutable_saver_def()->set_filename_tensor_name("saver_filename:0");
  m.mutable_saver_def()->set_restore_op_name("restore");
  m.mutable_saver_def()->set_version(proto::SaverDef::V2);
  proto::SignatureDef& s = (*m.mutable_signature_def())["serving_default"];
  AddValue(s.mutable_inputs(), "x", "serving_default_x:0", DT_FLOAT, {-1, 2});
  AddValue(s.mutable_outputs(), "y", "call:0", DT_FLOAT, {-1, 2});
  s.set_method_name("tensorflow/serving/predict");
  proto::SignatureDef& second = (*m.mutable_signature_def())["all"];
  AddValue(second.mutable_outputs(), "unused", "unused/Read:0", DT_FLOAT, {2, 2});
  return model;
}

const std::string kW = "layer/w/.ATTRIBUTES/VARIABLE_VALUE", kUnused = "other/.ATTRIBUTES/VARIABLE_VALUE";

TEST(SavedModel, SignaturesRunWithRestoredVariables) {
  const Folder folder;
  WriteBytes(folder / "m/saved_model.pb", TwoGenerations().SerializeAsString());
  WriteBytes(folder / "m/fingerprint.pb", "anything");
  WriteCheckpoint(folder / "m", {{kUnused, {9, 9, 9, 9}}, {kW, {1, 2, 3, 4}}});
  const tw::Model model(folder / "m");
  EXPECT_EQ(model.importer(), "savedmodel");
  ASSERT_EQ(model.signatures().size(), 2u);
  const tw_model_signature& s = model.signature();
  EXPECT_STREQ(s.name, "serving_default");
  EXPECT_STREQ(s.doc, "tensorflow/serving/predict");
  EXPECT_EQ(s.inputs[0]->shape->dims[0], -1);
  EXPECT_EQ(Elements(model.run({{"x", Floats({1, 2}, {1, 10})}}).at("y")), (std::vector<float>{31, 42}));
  EXPECT_EQ(Elements(model.run({}, "all").at("unused")), (std::vector<float>{9, 9, 9, 9}));
  // The file itself names the model, too.
  const tw::Model same(folder / "m/saved_model.pb");
  EXPECT_EQ(Elements(same.run({{"x", Floats({1, 2}, {1, 0})}}).at("y")), (std::vector<float>{1, 2}));
}

TEST(SavedModel, OnlyWhatTheWantedSignaturesNeedIsRestored) {
  const Folder folder;
  WriteBytes(folder / "m/saved_model.pb", TwoGenerations().SerializeAsString());
  WriteCheckpoint(folder / "m", {{kW, {1, 2, 3, 4}}});  // lacks the other variable
  tw::ModelOptions options;
  options.signatures = {"serving_default"};
  const tw::Model model(folder / "m", options);
  EXPECT_EQ(Elements(model.run({{"x", Floats({1, 2}, {1, 10})}}).at("y")), (std::vector<float>{31, 42}));
  EXPECT_FALSE(tw_graph_has(tw_model_graph(model.c()), "unused"));
  options.options = {"whole=true"};
  const tw::Model whole(folder / "m", options);
  EXPECT_TRUE(tw_graph_has(tw_model_graph(whole.c()), "unused"));
  EXPECT_HAS(Failure(folder / "m"), kUnused);  // the other signature needs it
}

// half_plus_two in the form of TensorFlow 1: reference variables, restored in the main graph.
TEST(SavedModel, FirstGenerationModelsLoad) {
  const Folder folder;
  proto::SavedModel model;
  model.set_saved_model_schema_version(1);
  proto::MetaGraphDef& m = *model.add_meta_graphs();
  m.mutable_meta_info_def()->add_tags("serve");
  auto* nodes = m.mutable_graph_def()->mutable_node();
  m.mutable_graph_def()->mutable_versions()->set_producer(24);
  for (const char* name : {"a", "b"}) {
    AddNode(nodes, name, "VariableV2", {}, {Type("dtype", DT_FLOAT), ShapeOf("shape", {})});
    AddNode(nodes, std::string(name) + "/read", "Identity", {name}, {Type("T", DT_FLOAT)});
  }
  AddNode(nodes, "x", "Placeholder", {}, {Type("dtype", DT_FLOAT)});
  AddNode(nodes, "mul", "Mul", {"a/read", "x"}, {Type("T", DT_FLOAT)});
  AddNode(nodes, "y", "Add", {"mul", "b/read"}, {Type("T", DT_FLOAT)});
  AddNode(nodes, "save/Const", "Const", {}, {Type("dtype", DT_STRING), Strings({"model"}, true)});
  AddNode(nodes, "save/names", "Const", {}, {Type("dtype", DT_STRING), Strings({"a", "b"})});
  AddNode(nodes, "save/slices", "Const", {}, {Type("dtype", DT_STRING), Strings({"", ""})});
  AddNode(nodes, "save/RestoreV2", "RestoreV2", {"save/Const", "save/names", "save/slices"}, {Types("dtypes", {DT_FLOAT, DT_FLOAT})});
  AddNode(nodes, "save/Assign", "Assign", {"a", "save/RestoreV2"}, {Type("T", DT_FLOAT)});
  AddNode(nodes, "save/Assign_1", "Assign", {"b", "save/RestoreV2:1"}, {Type("T", DT_FLOAT)});
  AddNode(nodes, "save/restore_shard", "NoOp", {"^save/Assign", "^save/Assign_1"});
  AddNode(nodes, "save/restore_all", "NoOp", {"^save/restore_shard"});
  m.mutable_saver_def()->set_filename_tensor_name("save/Const:0");
  m.mutable_saver_def()->set_restore_op_name("save/restore_all");
  proto::SignatureDef& s = (*m.mutable_signature_def())["regress_x_to_y"];
  AddValue(s.mutable_inputs(), "inputs", "x:0", DT_FLOAT, {});
  AddValue(s.mutable_outputs(), "outputs", "y:0", DT_FLOAT, {});
  WriteBytes(folder / "half_plus_two/saved_model.pb", model.SerializeAsString());
  WriteCheckpoint(folder / "half_plus_two", {{"a", {0.5f}}, {"b", {2}}});
  {
    const tw::Model loaded(folder / "half_plus_two");
    EXPECT_EQ(Elements(loaded.run({{"inputs", tw::Tensor(6.0f)}}).at("outputs")), (std::vector<float>{5}));
  }
  // A restore operation of another form is run as it is.
  AddNode(nodes, "save/doubled", "Add", {"save/RestoreV2", "save/RestoreV2"}, {Type("T", DT_FLOAT)});
  for (proto::NodeDef& n : *nodes) {
    if (n.name() == "save/Assign") n.set_input(1, "save/doubled");
  }
  // Nodes come in any order in a file.
  WriteBytes(folder / "half_plus_two/saved_model.pb", model.SerializeAsString());
  const tw::Model run(folder / "half_plus_two");
  EXPECT_EQ(Elements(run.run({{"inputs", tw::Tensor(6.0f)}}).at("outputs")), (std::vector<float>{8}));
}

// A table that the initialisation fills from a vocabulary file.
proto::SavedModel WithTable(const std::string& file) {
  proto::SavedModel model;
  model.set_saved_model_schema_version(1);
  proto::MetaGraphDef& m = *model.add_meta_graphs();
  m.mutable_meta_info_def()->add_tags("serve");
  auto* nodes = m.mutable_graph_def()->mutable_node();
  AddNode(nodes, "table", "HashTableV2", {}, {Type("key_dtype", DT_STRING), Type("value_dtype", DT_INT64), Text("shared_name", "t")});
  AddNode(nodes, "asset", "Const", {}, {Type("dtype", DT_STRING), Strings({"not/here"}, true)});
  AddNode(nodes, "fill", "InitializeTableFromTextFileV2", {"table", "asset"}, {Int("key_index", -2), Int("value_index", -1)});
  AddNode(nodes, "init", "NoOp", {"^fill"});
  AddNode(nodes, "words", "Placeholder", {}, {Type("dtype", DT_STRING), ShapeOf("shape", {-1})});
  AddNode(nodes, "none", "Const", {}, {Type("dtype", DT_INT64), Int64(-1)});
  AddNode(nodes, "find", "LookupTableFindV2", {"table", "words", "none"}, {Type("Tin", DT_STRING), Type("Tout", DT_INT64)});
  proto::SignatureDef& s = (*m.mutable_signature_def())["serving_default"];
  AddValue(s.mutable_inputs(), "words", "words:0", DT_STRING, {-1});
  AddValue(s.mutable_outputs(), "ids", "find:0", DT_INT64, {-1});
  (*(*m.mutable_signature_def())["__saved_model_init_op"].mutable_outputs())["__saved_model_init_op"].set_name("init");
  proto::AssetFileDef& a = *m.add_asset_file_def();
  a.mutable_tensor_info()->set_name("asset:0");
  a.set_filename(file);
  return model;
}

TEST(SavedModel, TablesAreFilledFromAssets) {
  const Folder folder;
  WriteBytes(folder / "m/saved_model.pb", WithTable("vocabulary.txt").SerializeAsString());
  WriteBytes(folder / "m/assets/vocabulary.txt", "the\nriver\nflows\n");
  const tw::Model model(folder / "m");
  ASSERT_EQ(model.signatures().size(), 1u);
  const int64_t n = 3;
  tw_tensor* words = nullptr;
  tw::raise(tw_tensor_create(TW_STRING, &n, 1, &words));
  const char* texts[] = {"river", "sea", "the"};
  for (uint64_t i = 0; i < 3; ++i) tw::raise(tw_tensor_set_string(words, i, texts[i], strlen(texts[i])));
  const auto out = model.run({{"words", tw::Tensor::adopt(words)}});
  const auto* ids = static_cast<const int64_t*>(tw_tensor_data(out.at("ids").c()));
  EXPECT_EQ(std::vector<int64_t>(ids, ids + 3), (std::vector<int64_t>{1, -1, 0}));
}

TEST(SavedModel, AssetsCannotLeadOutOfTheFolder) {
  const Folder folder;
  WriteBytes(folder / "secret.txt", "secret\n");
  WriteBytes(folder / "m/assets/plain.txt", "plain\n");
  WriteBytes(folder / "m/saved_model.pb", WithTable("../../secret.txt").SerializeAsString());
  EXPECT_HAS(Failure(folder / "m"), "'..'");
  fs::create_symlink(folder / "secret.txt", folder / "m/assets/link.txt");
  WriteBytes(folder / "m/saved_model.pb", WithTable("link.txt").SerializeAsString());
  EXPECT_HAS(Failure(folder / "m"), "symbolic link");
  WriteBytes(folder / "m/saved_model.pb", WithTable("missing.txt").SerializeAsString());
  EXPECT_HAS(Failure(folder / "m"), "missing.txt");
  // A graph that reads another path than its assets' is stopped when it runs, and one that writes, too.
  proto::SavedModel model = WithTable("plain.txt");
  auto* nodes = model.mutable_meta_graphs(0)->mutable_graph_def()->mutable_node();
  AddNode(nodes, "path", "Const", {}, {Type("dtype", DT_STRING), Strings({folder / "secret.txt"}, true)});
  AddNode(nodes, "steal", "ReadFile", {"path"});
  AddNode(nodes, "own", "Const", {}, {Type("dtype", DT_STRING), Strings({folder / "m/assets/new.txt"}, true)});
  AddNode(nodes, "write", "WriteFile", {"own", "own"});
  auto& signatures = *model.mutable_meta_graphs(0)->mutable_signature_def();
  AddValue(signatures["steal"].mutable_outputs(), "text", "steal:0", DT_STRING, {});
  AddNode(nodes, "written", "Identity", {"own", "^write"}, {Type("T", DT_STRING)});
  AddValue(signatures["write"].mutable_outputs(), "path", "written:0", DT_STRING, {});
  WriteBytes(folder / "m/saved_model.pb", model.SerializeAsString());
  const tw::Model loaded(folder / "m");
  for (const char* name : {"steal", "write"}) {
    try {
      loaded.run({}, name);
      ADD_FAILURE() << name << " was allowed";
    } catch (const tw::StatusError& e) {
      EXPECT_EQ(e.code(), uint32_t{TW_PERMISSION_DENIED}) << e.what();
    }
  }
  EXPECT_FALSE(fs::exists(folder / "m/assets/new.txt"));
}

TEST(SavedModel, MissingOpsAreListedTogetherAlsoThoseOfFunctions) {
  const Folder folder;
  proto::SavedModel model = TwoGenerations("NobodyHasThis");
  auto* nodes = model.mutable_meta_graphs(0)->mutable_graph_def()->mutable_node();
  AddNode(nodes, "other", "NorThat", {"serving_default_x"});
  AddNode(nodes, "far", "NotAskedFor", {"serving_default_x"});
  auto& s = (*model.mutable_meta_graphs(0)->mutable_signature_def())["serving_default"];
  AddValue(s.mutable_outputs(), "z", "other:0", DT_FLOAT, {});
  WriteBytes(folder / "m/saved_model.pb", model.SerializeAsString());
  const std::string failure = Failure(folder / "m");
  EXPECT_HAS(failure, "op 'NobodyHasThis' (1 node, 'y' of function '__inference_<lambda>_1') is defined by no loaded plugin");
  EXPECT_HAS(failure, "op 'NorThat' (1 node, 'other')");
  EXPECT_EQ(failure.find("NotAskedFor"), std::string::npos) << failure;
}

TEST(SavedModel, TagsChooseAMetaGraph) {
  const Folder folder;
  proto::SavedModel model = TwoGenerations();
  *model.add_meta_graphs() = model.meta_graphs(0);
  auto* info = model.mutable_meta_graphs(1)->mutable_meta_info_def();
  info->add_tags("tpu");
  (*model.mutable_meta_graphs(1)->mutable_signature_def())["extra"] = model.meta_graphs(1).signature_def().at("all");
  WriteBytes(folder / "m/saved_model.pb", model.SerializeAsString());
  WriteCheckpoint(folder / "m", {{kUnused, {9, 9, 9, 9}}, {kW, {1, 2, 3, 4}}});
  EXPECT_EQ(tw::Model(folder / "m").signatures().size(), 2u);
  tw::ModelOptions options;
  options.options = {"tags=tpu,serve"};
  EXPECT_EQ(tw::Model(folder / "m", options).signatures().size(), 3u);
  options.options = {"tags=gpu"};
  EXPECT_HAS(Failure(folder / "m", options), "tags 'gpu'; there are 'serve', 'serve,tpu'");
}

TEST(SavedModel, DamageIsACleanError) {
  const Folder folder;
  const std::string bytes = TwoGenerations().SerializeAsString();
  WriteCheckpoint(folder / "m", {{kUnused, {9, 9, 9, 9}}, {kW, {1, 2, 3, 4}}});
  for (size_t n = 0; n < bytes.size(); n += 1 + n / 40) {
    WriteBytes(folder / "m/saved_model.pb", bytes.substr(0, n));
    EXPECT_NE(Failure(folder / "m"), "") << n;
  }
  WriteBytes(folder / "m/saved_model.pb", bytes);
  EXPECT_EQ(Failure(folder / "m"), "");
  fs::resize_file(folder / "m/variables/variables.data-00000-of-00001", 20);
  EXPECT_HAS(Failure(folder / "m"), "variables.data-00000-of-00001");
  fs::remove_all(folder / "m/variables");
  EXPECT_HAS(Failure(folder / "m"), "variables/variables.index");
  proto::SavedModel model = TwoGenerations();
  model.mutable_meta_graphs(0)->clear_signature_def();
  WriteBytes(folder / "m/saved_model.pb", model.SerializeAsString());
  EXPECT_HAS(Failure(folder / "m"), "has no signature");
  WriteBytes(folder / "n/saved_model.cpb", "");
  EXPECT_HAS(Failure(folder / "n"), "saved_model.cpb");
}

// An empty node takes two bytes in a file and more than a hundred in memory.
TEST(SavedModel, ManySmallMessagesDoNotMultiplyTheMemory) {
  const Folder folder;
  const auto field = [](int number, const std::string& bytes) {
    std::string head(1, char(number << 3 | 2));
    for (size_t n = bytes.size();; n >>= 7) {
      head += char((n & 127) | (n > 127 ? 128 : 0));
      if (n <= 127) return head + bytes;
    }
  };
  std::string nodes;
  for (int i = 0; i < 2000000; ++i) nodes += std::string("\x0a\x00", 2);
  WriteBytes(folder / "m/saved_model.pb", std::string("\x08\x01") + field(2, field(1, field(4, "serve")) + field(2, nodes)));
  EXPECT_HAS(Failure(folder / "m"), "6 times its bytes and 48 MiB");
}

TEST(FrozenGraph, PlaceholdersAndEndsAreTheSignature) {
  const Folder folder;
  proto::GraphDef graph;
  AddNode(graph.mutable_node(), "x", "Placeholder", {}, {Type("dtype", DT_FLOAT), ShapeOf("shape", {})});
  AddNode(graph.mutable_node(), "two", "Const", {}, {Type("dtype", DT_FLOAT), Float(2)});
  AddNode(graph.mutable_node(), "doubled", "Mul", {"x", "two"}, {Type("T", DT_FLOAT)});
  AddNode(graph.mutable_node(), "y", "Add", {"doubled", "two"}, {Type("T", DT_FLOAT)});
  WriteBytes(folder / "frozen.any", graph.SerializeAsString());
  const tw::Model model(folder / "frozen.any");
  EXPECT_EQ(Elements(model.run({{"x", tw::Tensor(3.0f)}}).at("y")), (std::vector<float>{8}));
  tw::ModelOptions options;
  options.options = {"outputs=doubled,y:0", "inputs=two"};
  const tw::Model other(folder / "frozen.any", options);
  EXPECT_EQ(other.signature().n_outputs, 2u);
  options.options = {"outputs=z"};
  EXPECT_HAS(Failure(folder / "frozen.any", options), "an output is 'z', but the graph has no such operation");
}

// Files of other formats that begin in a similar way.
TEST(Recognition, OtherFormatsAreNotTakenForSavedModels) {
  const Folder folder;
  const auto recognised = [&](const std::string& bytes) {
    WriteBytes(folder / "file", bytes);
    tw_buffer* importer = nullptr;
    tw_status* s = tw_model_recognise(nullptr, (folder / "file").c_str(), &importer);
    const std::string name = s ? "" : tw_buffer_data(importer);
    tw_status_release(s);
    tw_buffer_release(importer);
    return name;
  };
  EXPECT_EQ(recognised(TwoGenerations().SerializeAsString()), "savedmodel");
  EXPECT_NE(recognised(std::string("\x08\x08\x12\x07pytorch\x1a\x03"
                                   "2.0",
                                   16)),
            "savedmodel");  // ONNX: ir_version, producer
  EXPECT_NE(recognised(std::string("\x08\x01\x12\x07pytorch\x1a\x03"
                                   "2.0",
                                   16)),
            "savedmodel");
  EXPECT_EQ(recognised("PK\x03\x04 a zip file"), "");
  EXPECT_EQ(recognised(""), "");
  EXPECT_EQ(recognised(std::string(5000, '\0')), "");
}

}  // namespace
}  // namespace thalweg::test
