// Cases and sample graphs that a plugin's author supplies, in JSON, for what a schema cannot say. README.md has the form of the file.
// Threads: any, once read.
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
  std::vector<std::optional<Tensor>> wanted;  // per output; empty where the author says nothing of it
  std::vector<std::optional<Tensor>> left;    // per resource: what a variable holds after the call
  std::optional<double> tolerance;            // as a part of the largest element
};

// One graph for compilers. Its nodes have one output each.
struct AuthorGraph {
  struct Node {
    std::string name, op;
    Attrs attrs;
    std::vector<std::string> inputs;  // names of feeds and of nodes before it
  };
  std::string name;
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<Node> nodes;
};

class CaseFile {
 public:
  // Errors: a file that cannot be read, or is not JSON of this form; they name the file.
  static StatusOr<std::shared_ptr<const CaseFile>> Read(const std::string& path);
  // Where the cases of a plugin are looked for when nobody names a file: libx.cases.json beside libx.so.
  static std::string Beside(const std::string& plugin);
  const std::string& name() const { return name_; }  // without its folder
  std::vector<std::string> Ops() const;
  // registry: finds the ops that make resources, and those of graphs.
  // Errors: what is wrong with which input or attribute of which case, node or graph.
  StatusOr<std::vector<AuthorCase>> Of(const OpSchema& op, const Registry& registry) const;
  StatusOr<std::vector<AuthorGraph>> Graphs(const Registry& registry) const;

 private:
  std::string name_;
  cli::JsonValue root_;
};

}  // namespace thalweg::conformance
