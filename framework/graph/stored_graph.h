// StoredGraph: a parsed GraphDef: its nodes, the sources of their inputs, and an order in which
// they can be made. This is the first half of an import; graph_def_import.cc makes the nodes.
// Threads: one.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/base/strings.h"
#include "framework/graph/flow.h"
#include "framework/graph/graph_def.h"
#include "framework/graph/name_index.h"

namespace thalweg {

// The source of an input: output `port` of a node (its number in the file), or kControl or kBack.
struct Source {
  static constexpr int32_t kControl = -1;
  static constexpr int32_t kBack = -2;  // output 0 of a NextIteration, which closes a loop

  int32_t node = 0, port = 0;
  std::string_view argument;  // in the body of a function: `port` counts within the values of this output argument
};

// A part of an array that all nodes share.
struct Range {
  uint32_t begin = 0, end = 0;
};

// A NodeDef. Views point into the imported bytes.
struct StoredNode {
  std::string_view name, op, device;  // name: without the prefix
  const OpSchema* schema = nullptr;   // NULL: no plugin defines it
  Range inputs, attrs;
  std::string unknown;
  std::string_view bytes;  // the whole NodeDef
};

// An attribute's name and its AttrValue message.
using StoredAttr = std::pair<std::string_view, std::string_view>;

class StoredGraph {
 public:
  // options, host: must outlive this object. scope: prefix of every name.
  StoredGraph(const ImportOptions& options, std::string scope, const GraphHost& host)
      : options_(options), scope_(std::move(scope)), host_(host) {}

  // Parses the nodes, checks that their names differ, and parses the rest of the file. bytes: must
  // outlive this object. Errors: as ImportGraphDef.
  Status Read(std::string_view bytes);
  // Finds the ops of the nodes, the sources of their inputs, and the order. Called once, after
  // Read. Errors: as ImportGraphDef.
  Status Arrange();

  std::vector<StoredNode>& nodes() { return nodes_; }
  const StoredNode& node(int32_t i) const { return nodes_[size_t(i)]; }
  // Each node comes after the nodes that it needs; among the possible next nodes the first of the
  // file comes first.
  const std::vector<int32_t>& order() const { return order_; }
  std::span<const Source> SourcesOf(const StoredNode& n) const {
    return std::span(sources_).subspan(n.inputs.begin, n.inputs.end - n.inputs.begin);
  }
  // Sorted by name.
  std::span<const StoredAttr> AttrsOf(const StoredNode& n) const {
    return std::span(attrs_).subspan(n.attrs.begin, n.attrs.end - n.attrs.begin);
  }
  // Returns input i of the node as written.
  std::string_view input(const StoredNode& n, size_t i) const { return inputs_[n.inputs.begin + i]; }
  // Returns the node of that name (without the scope), or NameIndex::kNone.
  int32_t Find(std::string_view name) const {
    return by_name_.Find(name, [this](int32_t i) { return nodes_[size_t(i)].name; });
  }
  GraphExtras& extras() { return extras_; }
  std::string NameOf(const StoredNode& n) const { return StrCat(scope_, n.name); }
  std::string Title(const StoredNode& n) const { return StrCat(NodeTitle(n.op, NameOf(n), ""), ":"); }
  // Counts inputs that lists stand for, because a short list name may stand for many.
  // RESOURCE_EXHAUSTED if there are too many in all.
  Status CountListed(size_t n);

 private:
  Status ReadGraph(std::string_view bytes);
  Status ReadVersions(std::string_view bytes);
  Status ReadNode(std::string_view bytes);
  Status ReadAttr(std::string_view bytes);
  Status ReadInput(std::string_view text);
  Status SortAttrs(const StoredNode& node);
  Status CheckVersions() const;
  Status IndexNames();
  Status FindSources(const StoredNode& node);
  Status FindBackEdges(const StoredNode& node);
  Status Sort();
  Status DescribeCycle(const std::vector<uint32_t>& waits_for) const;
  const OpSchema* OpOf(std::string_view name);
  Flow FlowOfOp(const OpSchema* op);

  const ImportOptions& options_;
  const std::string scope_;
  const GraphHost& host_;
  GraphExtras extras_{0, 0, {}, {}, {}};
  std::vector<StoredNode> nodes_;
  std::vector<std::string_view> inputs_;  // of all nodes
  size_t listed_ = 0;                     // number of inputs from lists
  std::vector<Source> sources_;           // of all inputs
  std::vector<StoredAttr> attrs_;         // of all nodes
  NameIndex by_name_;
  std::unordered_map<std::string_view, const OpSchema*> ops_;  // ops that were looked up
  std::vector<int32_t> order_;
};

}  // namespace thalweg
