#include "load.h"

#include <algorithm>
#include <map>
#include <memory>

#include "framework/proto/saved_model.pb.h"
#include "needed.h"
#include "parse.h"
#include "restore.h"
#include "signatures.h"
#include "xla_module.h"

namespace thalweg::savedmodel {
namespace {

constexpr std::string_view kInitSignature = "__saved_model_init_op";
constexpr std::string_view kTrainSignature = "__saved_model_train_op";
constexpr const char* kPrefix = "variables/variables";

using Signatures = std::map<std::string, const proto::SignatureDef*>;

std::string TagsOf(const proto::MetaGraphDef& m) {
  std::vector<std::string> tags(m.meta_info_def().tags().begin(), m.meta_info_def().tags().end());
  std::sort(tags.begin(), tags.end());
  std::string text;
  for (const std::string& tag : tags) text += (text.empty() ? "" : ",") + tag;
  return text;
}

// Returns the meta graph with these tags; without tags the only one, or the one that is tagged for
// serving.
proto::MetaGraphDef* Choose(proto::SavedModel* model, std::string tags) {
  if (model->meta_graphs_size() == 0) throw Error{TW_INVALID_ARGUMENT, "the SavedModel has no meta graph"};
  if (tags.empty() && model->meta_graphs_size() == 1) return model->mutable_meta_graphs(0);
  if (tags.empty()) tags = "serve";
  proto::MetaGraphDef wanted;
  for (size_t at = 0; at <= tags.size();) {
    const size_t comma = std::min(tags.find(',', at), tags.size());
    wanted.mutable_meta_info_def()->add_tags(tags.substr(at, comma - at));
    at = comma + 1;
  }
  std::string all;
  for (proto::MetaGraphDef& m : *model->mutable_meta_graphs()) {
    if (TagsOf(m) == TagsOf(wanted)) return &m;
    all += (all.empty() ? "'" : ", '") + TagsOf(m) + "'";
  }
  throw Error{TW_NOT_FOUND,
              "no meta graph has exactly the tags '" + TagsOf(wanted) + "'; there are " + all + "; choose with the option tags"};
}

// Calls f(name of the part, its TensorInfo) for each tensor of a value.
template <class F>
void EachTensor(const std::string& name, const proto::TensorInfo& info, F&& f) {
  if (info.has_coo_sparse()) {
    proto::TensorInfo part;
    for (const auto& [suffix, value] : {std::pair{"/values", info.coo_sparse().values_tensor_name()},
                                        {"/indices", info.coo_sparse().indices_tensor_name()},
                                        {"/dense_shape", info.coo_sparse().dense_shape_tensor_name()}}) {
      part.set_name(value);
      part.mutable_tensor_shape()->set_unknown_rank(true);
      f(name + suffix, part);
    }
  } else if (info.has_composite_tensor()) {
    int i = 0;
    for (const proto::TensorInfo& part : info.composite_tensor().components()) EachTensor(name + "/" + std::to_string(i++), part, f);
  } else {
    f(name, info);
  }
}

// The same for all values of a map, by name.
template <class Map, class F>
void EachValue(const Map& values, F&& f) {
  std::map<std::string, const proto::TensorInfo*> sorted;
  for (const auto& [name, info] : values) sorted.emplace(name, &info);
  for (const auto& [name, info] : sorted) EachTensor(name, *info, f);
}

// The operation that initialises the model besides its variables; "" if there is none.
std::string InitOp(const proto::MetaGraphDef& m) {
  const auto signature = m.signature_def().find(std::string(kInitSignature));
  if (signature != m.signature_def().end() && signature->second.outputs_size() > 0) {
    return std::string(NodeOf(signature->second.outputs().begin()->second.name()));
  }
  for (const char* key : {"saved_model_main_op", "main_op_key", "legacy_init_op"}) {
    const auto list = m.collection_def().find(key);
    if (list != m.collection_def().end() && list->second.node_list().value_size() > 0) return list->second.node_list().value(0);
  }
  return "";
}

class Loader {
 public:
  Loader(proto::MetaGraphDef* meta, Sink* sink) : meta_(*meta), sink_(*sink), needed_(meta->graph_def()) {
    for (const auto& [name, s] : meta_.signature_def()) {
      if (name == kInitSignature || name == kTrainSignature) continue;
      known_ += (known_.empty() ? "'" : ", '") + name + "'";
      if (sink_.Wants(name)) signatures_.emplace(name, &s);
    }
  }

  void Run() {
    if (signatures_.empty()) {
      throw Error{TW_NOT_FOUND, known_.empty()
                                    ? "the SavedModel has no signature; export it with one (signatures=... of tf.saved_model.save)"
                                    : "the SavedModel has none of the wanted signatures; it has " + known_};
    }
    AddNeeded();
    needed_.ReportMissingOps(&sink_);
    const bool traced = TraceVariables();
    if (!traced) AddWholeRestore();
    const std::string filename = meta_.saver_def().filename_tensor_name(), restore = meta_.saver_def().restore_op_name();
    AddGraph();
    Describe();
    if (traced) {
      savedmodel::Restore(filled_, needed_, kPrefix, &sink_);
    } else {
      RunRestore(filename, restore);
    }
    RunInit();
    for (const auto& [name, s] : signatures_) AddSignature(name, *s);
  }

 private:
  void AddNeeded() {
    for (const auto& [name, s] : signatures_) {
      const std::string what = "signature '" + name + "': value ";
      EachValue(s->outputs(),
                [&](const std::string& value, const proto::TensorInfo& info) { needed_.Add(info.name(), what + "'" + value + "'"); });
      EachValue(s->inputs(),
                [&](const std::string& value, const proto::TensorInfo& info) { needed_.Add(info.name(), what + "'" + value + "'"); });
    }
    init_op_ = InitOp(meta_);
    if (!init_op_.empty()) needed_.Add(init_op_, "the initialisation");
  }

  // Returns false if the restore operation has to be run as it is.
  bool TraceVariables() {
    if (meta_.saver_def().restore_op_name().empty()) return true;
    return TraceRestore(meta_.graph_def(), needed_, meta_.saver_def().restore_op_name(), &filled_);
  }
  void AddWholeRestore() {
    needed_.Add(meta_.saver_def().restore_op_name(), "the restore operation");
    needed_.Add(meta_.saver_def().filename_tensor_name(), "the file name of the restore operation");
  }
  void RunRestore(const std::string& filename, const std::string& restore) {
    const std::string index = sink_.Asset(std::string(kPrefix) + ".index");
    std::vector<TensorPtr> values;
    values.push_back(sink_.String(index.substr(0, index.size() - std::string_view(".index").size())));
    sink_.Step({sink_.Find(filename)}, values, {sink_.Find(restore)});
  }

  void AddGraph() {
    proto::GraphDef* graph = meta_.mutable_graph_def();
    // Signatures and assets name nodes by texts of their own, so nothing points into the graph.
    if (sink_.Option("whole") != "true") graph = needed_.Take(graph);
    ImportXlaModules(graph, &sink_);
    std::string bytes;
    if (!graph->SerializeToString(&bytes)) throw Error{TW_RESOURCE_EXHAUSTED, "the graph is too large for a message"};
    sink_.GraphDef(bytes);
  }

  void RunInit() {
    if (init_op_.empty()) return;
    std::vector<tw_edge> feeds;
    std::vector<TensorPtr> values;
    for (const proto::AssetFileDef& asset : meta_.asset_file_def()) {
      if (!needed_.has(NodeOf(asset.tensor_info().name()))) continue;
      values.push_back(sink_.String(sink_.Asset("assets/" + asset.filename())));
      feeds.push_back(sink_.Find(asset.tensor_info().name()));
    }
    sink_.Step(feeds, values, {sink_.Find(init_op_)});
  }

  void AddSignature(const std::string& name, const proto::SignatureDef& s) {
    SignatureRecords records(&sink_);
    const auto shape = [&](const proto::TensorInfo& info) {
      if (!info.has_tensor_shape() || info.tensor_shape().unknown_rank()) return;
      std::vector<int64_t> dims;
      for (const auto& dim : info.tensor_shape().dim()) dims.push_back(dim.size());
      records.SetShape(std::move(dims));
    };
    EachValue(s.inputs(),
              [&](const std::string& value, const proto::TensorInfo& info) { records.AddInput(value, info.name()), shape(info); });
    EachValue(s.outputs(),
              [&](const std::string& value, const proto::TensorInfo& info) { records.AddOutput(value, info.name()), shape(info); });
    records.Finish(name, s.method_name(), name == "serving_default");
  }

  void Describe() {
    sink_.Property("format", "SavedModel");
    const std::string& version = meta_.meta_info_def().tensorflow_version();
    if (!version.empty()) sink_.Property("producer", "tensorflow " + version);
    sink_.Property("tags", TagsOf(meta_));
  }

  proto::MetaGraphDef& meta_;
  Sink& sink_;
  Needed needed_;
  Signatures signatures_;
  std::string known_, init_op_;
  std::vector<Filled> filled_;
};

}  // namespace

void LoadSavedModel(const FileBytes& file, Sink* sink) {
  MessageMemory memory(file.size());
  auto* model = Parse<proto::SavedModel>(file, "saved_model.pb", &memory);
  Loader(Choose(model, sink->Option("tags")), sink).Run();
}

}  // namespace thalweg::savedmodel
