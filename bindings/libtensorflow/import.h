// Import of GraphDefs with TensorFlow's options. Threads: as TF_Graph.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core.h"
#include "graph.h"

struct TF_ImportGraphDefOptions {
  std::string prefix, device;
  bool uniquify_names = false, uniquify_prefix = false;
  std::map<std::pair<std::string, int>, TF_Output> inputs;  // values of the GraphDef that values of the graph replace
  std::map<std::string, TF_Operation*> controls;            // the same for control inputs
  std::vector<TF_Operation*> dependencies;                  // of every node without inputs in the GraphDef
  std::vector<std::pair<std::string, int>> return_outputs;
  std::vector<std::string> return_operations;
};

struct TF_ImportGraphDefResults {
  std::vector<TF_Output> outputs;
  std::vector<TF_Operation*> operations;
  std::vector<std::string> missing_names;  // of mappings that no node used, and whose source does not exist
  std::vector<const char*> missing_texts;
  std::vector<int> missing_indexes;
};

namespace thalweg::tf {

TF_ImportGraphDefResults Import(TF_Graph* graph, proto::GraphDef def, const TF_ImportGraphDefOptions& options);

}  // namespace thalweg::tf
