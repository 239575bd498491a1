// ModelBuilder: receives a model from an importer (plugin/importer.h): nodes, functions,
// signatures, steps that set initial values. Threads: one.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/builder.h"
#include "framework/graph/graph.h"
#include "framework/graph/graph_def.h"
#include "framework/model/loaded_model.h"
#include "framework/model/model_source.h"
#include "framework/registry/role.h"
#include "thalweg/plugin/importer.h"

namespace thalweg {

// Adds nodes to the main graph, or to the body of a function. An edge contains the builder's number,
// so that the graphs are never confused.
class ModelGraph final : public tw_builder {
 public:
  ModelGraph(std::shared_ptr<Graph> graph, uint32_t number, const std::string* place)
      : graph_(std::move(graph)), number_(number), place_(place) {}
  tw_edge Add(const tw_new_node& n) override;
  tw_edge Output(tw_edge node, uint32_t i) override;
  tw_edge Constant(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes) override;
  Status Describe(tw_edge e, uint32_t* out_dtype, tw_shape* out_shape) override;

  tw_edge AddConstant(const Tensor& value);
  tw_edge AddInput(std::string_view name, uint32_t dtype, const tw_shape* shape);
  void SetName(std::string_view name) { name_ = name; }
  // Decodes an edge of this graph. may_lack: a node without outputs is fine, too.
  StatusOr<Edge> Decode(tw_edge e, bool may_lack = false) const;
  StatusOr<std::vector<Edge>> DecodeAll(const tw_edge* edges, uint32_t n, std::string_view what) const;
  StatusOr<std::vector<const Node*>> DecodeNodes(const tw_edge* edges, uint32_t n, std::string_view what) const;
  tw_edge Encode(Edge e) const { return uint64_t{number_} << 48 | (uint64_t(e.node->id()) + 1) << 16 | uint64_t(e.port); }
  const std::shared_ptr<Graph>& graph() const { return graph_; }

 private:
  // Returns a free name from the wanted one, or from the op.
  std::string TakeName(std::string_view op);
  tw_edge Add(NodeSpec spec);

  const std::shared_ptr<Graph> graph_;
  const uint32_t number_;
  const std::string* const place_;
  std::string name_;  // wanted for the next node
};

class ModelBuilder {
 public:
  // importer, source: must outlive this object. The nodes go to a new graph of the runtime.
  ModelBuilder(std::shared_ptr<Runtime> runtime, std::shared_ptr<const ImporterRole> importer, const ModelSource* source,
               const LoadOptions* options);
  ModelBuilder(const ModelBuilder&) = delete;

  tw_model_builder* c() { return &c_; }
  // Returns the model, once the importer has returned. Errors: those of the importer, the first
  // sticky failure, all problems.
  StatusOr<LoadedModel> Finish(Status loaded);

 private:
  struct Entries;  // of the C record
  Status EndFunction(tw_builder* body, const tw_import_function* f, tw_string* out_name);
  Status AddGraphDef(const void* data, uint64_t bytes);
  Status FindEdge(std::string_view name, tw_edge* out_edge);
  bool Wants(std::string_view signature) const;
  Status AddSignature(const tw_import_signature* s);
  Status AddStep(const tw_import_step* s);
  Status AddAsset(std::string_view name, tw_sink* out_path);
  Status AddProperty(std::string_view key, std::string_view text);
  void AddProblem(uint32_t code, std::string_view text);
  Status Borrow(const tw_import_memory* memory, tw_tensor** out_tensor);
  StatusOr<ModelGraph*> BodyOf(tw_builder* b);
  StatusOr<ModelValue> ValueOf(const tw_import_value* v, bool input, std::string_view what) const;
  Status AllProblems() const;

  tw_model_builder c_{};
  const std::shared_ptr<const ImporterRole> importer_;
  const ModelSource* const source_;
  const LoadOptions* const options_;
  std::string place_;
  LoadedModel model_;
  std::vector<std::unique_ptr<ModelGraph>> graphs_;  // the main graph, then bodies
  std::set<const ModelGraph*> ended_;                // bodies that are functions now
  std::vector<std::unique_ptr<std::string>> names_;  // of functions
  std::vector<std::string> known_;                   // names of all signatures, wanted or not
  std::vector<std::string> problems_;
  std::set<std::string, std::less<>> problem_texts_;
  uint64_t more_problems_ = 0;
  uint32_t problem_code_ = 0;
};

}  // namespace thalweg
