// Sessions from SavedModels, as TensorFlow's loader makes them: the whole graph, its variables restored, its initialisation run.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "framework/proto/saved_model.pb.h"
#include "import.h"
#include "session.h"
#include "tensor.h"

using namespace thalweg::tf;
namespace proto = thalweg::proto;

namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) Fail(TF_NOT_FOUND, "Could not find SavedModel .pb at supplied export directory path: ", path, ": ", std::strerror(errno));
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return std::move(bytes).str();
}

const proto::MetaGraphDef& Choose(const proto::SavedModel& model, const char* const* tags, int n) {
  std::set<std::string> wanted;
  for (int i = 0; i < n; ++i) wanted.insert(OrEmpty(tags[i]));
  std::string known;
  for (const proto::MetaGraphDef& meta : model.meta_graphs()) {
    const std::set<std::string> own(meta.meta_info_def().tags().begin(), meta.meta_info_def().tags().end());
    if (own == wanted) return meta;
    std::string text;
    for (const std::string& tag : own) text += (text.empty() ? "" : ", ") + tag;
    known += " { " + text + " }";
  }
  std::string text;
  for (const std::string& tag : wanted) text += (text.empty() ? "" : ", ") + tag;
  Fail(TF_NOT_FOUND, "Could not find meta graph def matching supplied tags: { ", text, " }; the SavedModel has", known);
}

// Runs an operation of the graph with one string fed.
void RunNode(TF_Session* session, const std::string& operation, const std::string& feed, const std::string& text,
             const std::vector<std::pair<std::string, std::string>>& more) {
  TF_Graph* graph = session->graph;
  const auto output = [&](const std::string& name) {
    const auto [node, port] = SplitInput(name);
    TF_Operation* found = graph->FindName(node);
    if (!found) Fail(TF_INVALID_ARGUMENT, "the SavedModel names the value '", name, "', which its graph does not have");
    return TF_Output{found, port};
  };
  std::vector<TF_Output> feeds;
  std::vector<std::string> texts;
  if (!feed.empty()) feeds.push_back(output(feed)), texts.push_back(text);
  for (const auto& [name, file] : more) feeds.push_back(output(name)), texts.push_back(file);
  TF_Operation* target = graph->FindName(SplitInput(operation).first);
  if (!target) Fail(TF_INVALID_ARGUMENT, "the SavedModel names the operation '", operation, "', which its graph does not have");
  Step step(*graph, feeds.data(), static_cast<int>(feeds.size()), nullptr, 0, &target, 1);
  for (const std::string& t : texts) {
    tw_tensor* tensor = nullptr;
    Check(tw_tensor_create_string(t.data(), t.size(), &tensor));
    step.fed.push_back(tensor);
  }
  Check(tw_session_run(session->session.get(), &step.signature, step.fed.data(), nullptr, nullptr));
}

std::string InitOp(const proto::MetaGraphDef& meta) {
  const auto signature = meta.signature_def().find("__saved_model_init_op");
  if (signature != meta.signature_def().end() && signature->second.outputs_size() > 0) {
    return signature->second.outputs().begin()->second.name();
  }
  for (const char* key : {"saved_model_main_op", "legacy_init_op"}) {
    const auto list = meta.collection_def().find(key);
    if (list != meta.collection_def().end() && list->second.node_list().value_size() > 0) return list->second.node_list().value(0);
  }
  return "";
}

bool Exists(const std::string& path) { return std::ifstream(path).good(); }

}  // namespace

TF_Session* TF_LoadSessionFromSavedModel(const TF_SessionOptions* session_options, const TF_Buffer*, const char* export_dir,
                                         const char* const* tags, int tags_len, TF_Graph* graph, TF_Buffer* meta_graph_def,
                                         TF_Status* status) {
  return Guard(status, [&] {
    if (graph->Update() > 0) Fail(TF_INVALID_ARGUMENT, "Graph is non-empty.");
    const std::string folder = OrEmpty(export_dir), bytes = ReadFile(folder + "/saved_model.pb");
    proto::SavedModel model;
    Parse(bytes.data(), bytes.size(), "SavedModel", &model);
    const proto::MetaGraphDef& meta = Choose(model, tags, tags_len);
    Import(graph, meta.graph_def(), TF_ImportGraphDefOptions());
    std::unique_ptr<TF_Session> session(NewSession(graph, session_options));
    std::vector<std::pair<std::string, std::string>> assets;
    for (const proto::AssetFileDef& asset : meta.asset_file_def()) {
      assets.emplace_back(asset.tensor_info().name(), folder + "/assets/" + asset.filename());
    }
    const proto::SaverDef& saver = meta.saver_def();
    const std::string variables = folder + "/variables/variables";
    if (!saver.restore_op_name().empty() && Exists(variables + ".index")) {
      RunNode(session.get(), saver.restore_op_name(), saver.filename_tensor_name(), variables, assets);
    }
    if (const std::string init = InitOp(meta); !init.empty()) RunNode(session.get(), init, "", "", assets);
    if (meta_graph_def) Fill(meta_graph_def, Serialise(meta));
    return session.release();
  });
}
