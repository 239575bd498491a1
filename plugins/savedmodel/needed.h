// The part of a stored graph that some of its values need: nodes, functions, and ops that nobody
// defines. Threads: one thread at a time.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "framework/proto/graph.pb.h"
#include "graph_names.h"
#include "sink.h"

namespace thalweg::savedmodel {

class Needed {
 public:
  // graph: must outlive this object.
  explicit Needed(const proto::GraphDef& graph);
  // Adds a value ("x", "x:1") or node with all that it needs. NOT_FOUND if the graph has no such
  // node; `what` names its user.
  void Add(std::string_view value, const std::string& what);
  bool has(std::string_view node) const { return nodes_.count(node) != 0; }
  const NodeMap& nodes() const { return by_name_; }
  const proto::FunctionDef* function(std::string_view name) const;
  // Reports all ops that no plugin defines, each once with its number of nodes.
  void ReportMissingOps(Sink* sink) const;
  // Moves what is needed, in the order of the file, out of `graph`, which this object was made of and
  // which is on an arena, to a graph there. Afterwards only `has` may be called.
  proto::GraphDef* Take(proto::GraphDef* graph) const;

 private:
  void AddFunction(std::string_view name);
  void Count(const proto::NodeDef& node, std::string_view function);

  struct Use {
    size_t nodes = 0;
    std::string first;  // one of them, for the message
  };
  const proto::GraphDef& graph_;
  const NodeMap by_name_;
  std::unordered_map<std::string_view, const proto::FunctionDef*> functions_;
  std::set<std::string, std::less<>> nodes_;  // names that stay valid after Take
  std::unordered_set<std::string_view> called_;
  std::map<std::string_view, Use> ops_;
};

}  // namespace thalweg::savedmodel
