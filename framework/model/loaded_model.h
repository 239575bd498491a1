// LoadedModel: a graph and its signatures as an importer made them from a file. The application API
// gives it a session (c_api/model.cc). Threads: immutable once loaded.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/registry/role.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

// The choices of the program for one load; see tw_model_options.
struct LoadOptions {
  std::string importer;                                      // empty: the surest one
  std::vector<std::pair<std::string, std::string>> options;  // for the importer
  std::vector<std::string> signatures;                       // empty: all
  uint64_t max_bytes = (uint64_t{1} << 31) - 1;
  uint64_t max_operations = 1u << 20;
  uint64_t max_unfolded_bytes = 64u << 20;
  uint64_t max_file_bytes = uint64_t{1} << 40;
};

// An input or output of a signature.
struct ModelValue {
  std::string name;
  Edge edge;
  uint32_t dtype = 0;
  Shape shape;
  std::vector<std::string> symbols;  // per axis; empty: no axis has a name
  Tensor default_value;              // of an input that may be left out
};

struct ModelSignature {
  std::string name, doc;
  std::vector<ModelValue> inputs, outputs;
  std::vector<const Node*> effects;
};

// A step that is to run once, before anything else.
struct ModelStep {
  std::vector<Edge> feeds;
  std::vector<Tensor> values;
  std::vector<const Node*> effects;
};

struct LoadedModel {
  std::shared_ptr<const ImporterRole> importer;  // keeps the plugin loaded
  std::shared_ptr<Graph> graph;
  std::vector<ModelSignature> signatures;
  size_t default_signature = 0;
  std::vector<ModelStep> steps;
  std::vector<std::pair<std::string, std::string>> properties;
  std::string folder;        // absolute
  bool reads_files = false;  // nodes of the graph read files of the folder
};

// Loads the file or folder. Errors: those of tw_model_load, except for steps that have not run yet.
StatusOr<LoadedModel> LoadModel(std::shared_ptr<Runtime> runtime, const std::string& path, const LoadOptions& options);

// NOT_FOUND lists the signatures. name: empty means the default one.
StatusOr<size_t> FindSignature(const LoadedModel& model, std::string_view name);

}  // namespace thalweg
