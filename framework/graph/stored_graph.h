// A GraphDef as its bytes say it: nodes, where their inputs come from, and an order in which they can be made. The first half of importing
// one; graph_def_import.cc makes the nodes.
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

class Registry;

// Where an input comes from: output `port` of the node with that number in the file, or kControl or kBack.
struct Source {
  static constexpr int32_t kControl = -1;
  static constexpr int32_t kBack = -2;  // output 0 of a NextIteration, which closes a loop

  int32_t node = 0, port = 0;
  std::string_view argument;  // of the body of a function: the port counts within the values of that output argument
};

// Part of an array that all nodes share.
struct Range {
  uint32_t begin = 0, end = 0;
};

// A NodeDef. The views lead into the imported bytes.
struct StoredNode {
  std::string_view name, op, device;  // the name without the prefix
  const OpSchema* schema = nullptr;   // NULL: no plugin defines it
  Range inputs, attrs;
  std::string unknown;
  std::string_view bytes;  // all of it
};

// An attribute's name and AttrValue message.
using StoredAttr = std::pair<std::string_view, std::string_view>;

class StoredGraph {
 public:
  // options, registry: must outlive it. scope: stands in front of every name.
  StoredGraph(const ImportOptions& options, std::string scope, const Registry& registry)
      : options_(options), scope_(std::move(scope)), registry_(registry) {}

  // The nodes, whose names differ, and what else the file holds. bytes: must outlive it. Errors: as ImportGraphDef.
  Status Read(std::string_view bytes);
  // The ops of the nodes, where their inputs come from, and the order. Once, after Read. Errors: as ImportGraphDef.
  Status Arrange();

  std::vector<StoredNode>& nodes() { return nodes_; }
  const StoredNode& node(int32_t i) const { return nodes_[size_t(i)]; }
  // Each node after those that it needs; among those that could come next, the first of the file.
  const std::vector<int32_t>& order() const { return order_; }
  std::span<const Source> SourcesOf(const StoredNode& n) const {
    return std::span(sources_).subspan(n.inputs.begin, n.inputs.end - n.inputs.begin);
  }
  // By their names.
  std::span<const StoredAttr> AttrsOf(const StoredNode& n) const {
    return std::span(attrs_).subspan(n.attrs.begin, n.attrs.end - n.attrs.begin);
  }
  // Input i of the node as it is written.
  std::string_view input(const StoredNode& n, size_t i) const { return inputs_[n.inputs.begin + i]; }
  // The node of that name, without the scope; NameIndex::kNone: there is none.
  int32_t Find(std::string_view name) const {
    return by_name_.Find(name, [this](int32_t i) { return nodes_[size_t(i)].name; });
  }
  GraphExtras& extras() { return extras_; }
  std::string NameOf(const StoredNode& n) const { return StrCat(scope_, n.name); }
  std::string Title(const StoredNode& n) const { return StrCat(NodeTitle(n.op, NameOf(n), ""), ":"); }
  // Few words may stand for many inputs: RESOURCE_EXHAUSTED where it is too many in all.
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
  const Registry& registry_;
  GraphExtras extras_{0, 0, {}, {}, {}};
  std::vector<StoredNode> nodes_;
  std::vector<std::string_view> inputs_;  // of all nodes
  size_t listed_ = 0;                     // inputs that lists stand for
  std::vector<Source> sources_;           // of all inputs
  std::vector<StoredAttr> attrs_;         // of all nodes
  NameIndex by_name_;
  std::unordered_map<std::string_view, const OpSchema*> ops_;  // that were looked up
  std::vector<int32_t> order_;
};

}  // namespace thalweg
