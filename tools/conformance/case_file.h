// CaseFile: cases and sample graphs that a plugin's author supplies in JSON, for facts that a schema
// cannot express. README.md has the form of the file.
// Threads: any, once the file is read.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/registry/registry.h"
#include "tools/conformance/cases.h"
#include "tools/thalweg/json_value.h"

namespace thalweg::conformance {

// One case of an op, as the author wrote it.
struct AuthorCase {
  Case c;
  std::string where;                          // "case 2 of op 'X' in libx.cases.json"
  std::vector<std::optional<Tensor>> wanted;  // per output; empty: the author gives no value
  std::vector<std::optional<Tensor>> left;    // per resource: the value of a variable after the call
  std::optional<double> tolerance;            // as a fraction of the largest element
};

// One graph for compilers. Each of its nodes has one output.
struct AuthorGraph {
  struct Node {
    std::string name, op;
    Attrs attrs;
    std::vector<std::string> inputs;  // names of feeds and of earlier nodes
  };
  std::string name;
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<Node> nodes;
};

class CaseFile {
 public:
  // Errors: the file cannot be read, or is not JSON of this form; messages name the file.
  static StatusOr<std::shared_ptr<const CaseFile>> Read(const std::string& path);
  // Returns the default case file of a plugin: libx.cases.json beside libx.so.
  static std::string Beside(const std::string& plugin);
  const std::string& name() const { return name_; }  // without its folder
  std::vector<std::string> Ops() const;
  // Of returns the cases of `op`; Graphs returns the graphs. registry: must have the ops that make
  // resources, and the ops of graphs.
  // Errors name the case, node or graph, its input or attribute, and the fault.
  StatusOr<std::vector<AuthorCase>> Of(const OpSchema& op, const Registry& registry) const;
  StatusOr<std::vector<AuthorGraph>> Graphs(const Registry& registry) const;

 private:
  std::string name_;
  cli::JsonValue root_;
};

}  // namespace thalweg::conformance
