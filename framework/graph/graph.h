// Graph and Node: the program. Nodes are added and never changed or removed, so a pointer to a node
// is valid as long as the graph. Threads: adding a node takes the lock; a node that was handed out
// may be read without one.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/attr_value.h"
#include "framework/graph/graph_host.h"
#include "framework/graph/name_index.h"
#include "framework/graph/op_schema.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class FunctionLibrary;
class Graph;
class FoldingBudget;
class Node;

// A value: output `port` of a node.
struct Edge {
  const Node* node = nullptr;
  int32_t port = 0;
  bool operator==(const Edge& o) const { return node == o.node && port == o.port; }
  explicit operator bool() const { return node != nullptr; }
  // "name" for port 0, "name:1" for others.
  std::string text() const;
};

// The dtype and shape behind a resource handle, as far as known.
struct HandleInfo {
  uint32_t dtype = 0;
  Shape shape;
  bool known() const { return dtype != 0 || shape.has_rank(); }
};
inline const HandleInfo kNoHandle;

std::string NodeTitle(std::string_view op, std::string_view name, std::string_view place);

// A node of the graph, or an auxiliary node outside any graph that plans run in place of such a
// node: its runs_as(), or the reader of a reference.
class Node {
 public:
  // Makes an auxiliary node that stands for several nodes in a plan. It has one argument per input
  // and output. op: must outlive it.
  static Node StandIn(const OpSchema* op, std::string name, std::vector<Edge> inputs, std::vector<uint32_t> types,
                      std::vector<Shape> shapes);
  // Returns the node of the graph: this node, or the one whose runs_as() or read() this node is.
  const Node& origin() const { return origin_ ? *origin_ : *this; }
  int32_t id() const { return origin().id_; }
  const std::string& name() const { return origin().name_; }
  const OpSchema& op() const { return *schema_; }
  const std::vector<Edge>& inputs() const { return inputs_; }
  const std::vector<const Node*>& controls() const { return controls_; }
  int32_t n_in() const { return int32_t(inputs_.size()); }
  int32_t n_out() const { return int32_t(shapes_.size()); }
  uint32_t in_type(int32_t i) const { return types_[size_t(i)]; }
  uint32_t out_type(int32_t o) const { return types_[inputs_.size() + size_t(o)]; }
  const std::vector<uint32_t>& types() const { return types_; }  // inputs, then outputs
  // The values of argument a are the flat inputs [in_at()[a], in_at()[a + 1]); out_at() likewise
  // for outputs.
  const std::vector<uint32_t>& in_at() const { return rare().in_at.empty() ? schema_->in_at : rare_->in_at; }
  const std::vector<uint32_t>& out_at() const { return rare().out_at.empty() ? schema_->out_at : rare_->out_at; }
  const std::vector<AttrValue>& attrs() const { return attrs_; }  // in schema order
  const AttrValue* FindAttr(std::string_view attr) const;
  // Attributes that the schema does not have (underscore names), as serialised AttrValue messages,
  // kept byte for byte. Also schema attributes that AttrValue cannot hold completely: functions
  // with attributes of their own.
  const std::map<std::string, std::string>& extra_attrs() const { return origin().rare().extra; }
  // Serialised fields of the imported NodeDef that have no counterpart here.
  const std::string& unknown_fields() const { return rare().unknown; }
  // The node was imported with a GraphDef: its author may be somebody other than the program's. Not
  // exported.
  bool imported() const { return origin().imported_; }
  const std::string& device() const { return origin().device_; }
  const std::vector<std::string>& colocate_with() const { return origin().rare().colocate; }
  // For a node whose op says `runs_as`: the node of that op, with handles in place of references.
  // It has no outputs for references that are passed through. NULL: the node itself runs.
  const Node* runs_as() const { return rare().runs_as.get(); }
  // For an input that closes a loop: the NextIteration whose value arrives there in all iterations
  // but the first; inputs()[i] then only gives the type. NULL: inputs()[i] is the only source.
  const Node* back(int32_t i) const { return rare().back ? rare().back[size_t(i)].load(std::memory_order_acquire) : nullptr; }
  // For an output that is a reference: a node that takes a handle and returns the variable's value.
  const Node* read(int32_t o) const { return rare().reads[size_t(o)].get(); }
  // Shapes, handles and values that hold without any feed.
  const Shape& shape(int32_t o) const { return shapes_[size_t(o)]; }
  const HandleInfo& handle(int32_t o) const { return handles_.empty() ? kNoHandle : handles_[size_t(o)]; }
  const std::vector<HandleInfo>& handles() const { return handles_; }  // of all outputs; empty: none is known
  const Tensor& value(int32_t o) const { return values_[size_t(o)]; }  // empty: not a known constant
  void FillC(CAttrs* out) const;
  // The place in the program where the node was made, such as "train.py:18"; "" if unknown. Not
  // part of the graph, so not exported.
  std::string_view place() const { return origin().place_ ? std::string_view(*origin().place_) : std::string_view(); }
  // Returns the node's name for messages: "MatMul 'head/mm' (made at train.py:18)".
  std::string title() const { return NodeTitle(origin().schema_->name, name(), place()); }

 private:
  friend class Graph;
  // Members that few nodes have.
  struct Rare {
    std::map<std::string, std::string> extra;
    std::string unknown;
    std::vector<std::string> colocate;
    std::vector<uint32_t> in_at, out_at;  // empty: the schema's
    std::unique_ptr<const Node> runs_as;
    std::vector<std::unique_ptr<const Node>> reads;    // per output, of a node with references
    std::unique_ptr<std::atomic<const Node*>[]> back;  // per input, of a merge: see back()
  };
  const Rare& rare() const {
    static const Rare none;
    return rare_ ? *rare_ : none;
  }

  static StatusOr<std::unique_ptr<Node>> Beside(const Node* origin, const OpSchema& op, std::vector<Edge> inputs,
                                                const std::vector<uint32_t>& in_types, std::vector<AttrValue> attrs);

  int32_t id_ = 0;
  bool imported_ = false;
  std::string name_, device_;
  const OpSchema* schema_ = nullptr;
  std::vector<Edge> inputs_;
  std::vector<const Node*> controls_;
  std::vector<uint32_t> types_;
  std::vector<AttrValue> attrs_;
  std::unique_ptr<Rare> rare_;          // NULL: all members are empty
  const Node* origin_ = nullptr;        // NULL: this node
  const std::string* place_ = nullptr;  // owned by the graph; shared by many nodes
  std::vector<Shape> shapes_;
  std::vector<HandleInfo> handles_;
  std::vector<Tensor> values_;
};

// Adds to the status which node failed and where it was made.
inline Status OfNode(const Node& node, Status s) { return OfNode(node.name(), node.place(), std::move(s)); }

// The description of a node to add.
struct NodeSpec {
  std::string op, name;      // empty name: derived from the op
  std::vector<Edge> inputs;  // flat
  std::vector<const Node*> controls;
  std::map<std::string, AttrValue> attrs;
  std::map<std::string, std::string> extra_attrs;
  std::string unknown_fields;
  std::string device;
  std::vector<std::string> colocate_with;
  std::string place;  // see Node::place
  bool imported = false;
  HandleInfo handle;  // for a placeholder: dtype and shape behind handles that are fed
  Shape shape;        // for a value from another process: the output's shape, as known there
};

// The graph version that we write and read as: that of the TensorFlow whose ops and attributes we
// follow (2.21).
constexpr int32_t kGraphVersion = 2474;

// The contents of a GraphDef besides its nodes.
struct GraphExtras {
  // VersionDef: the version of the writer, and the readers that may read the graph.
  int32_t producer = kGraphVersion, min_consumer = 0;
  std::vector<int32_t> bad_consumers;
  std::string library;  // serialised FunctionDefLibrary, kept byte for byte
  std::string unknown_fields;
};

class Graph {
 public:
  // host: provides schemas and computes constants; retained.
  explicit Graph(std::shared_ptr<GraphHost> host);
  // Makes a graph to become the body of a function (function.h). Its nodes call functions of
  // `outer`, which it does not keep alive.
  static std::shared_ptr<Graph> Body(const Graph& outer);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  GraphHost& host() const { return *host_; }
  const std::shared_ptr<GraphHost>& host_ptr() const { return host_; }
  // The graph's own container: the state in it is shared by the graph's sessions and invisible to
  // other graphs. It ends with the graph, which sessions keep alive.
  const std::string& container() const { return container_; }
  // The functions that nodes may call. NULL for a body whose outer graph is gone.
  std::shared_ptr<FunctionLibrary> functions() const { return functions_.lock(); }

  // Adds a node and checks everything: op, name, argument counts and types, attributes (inferred,
  // defaulted, allowed), shapes. On failure the graph is unchanged. Errors are prefixed with the
  // node's title.
  StatusOr<const Node*> AddNode(NodeSpec spec);
  // For callers that have found the op and have its attributes in schema order; an empty attribute
  // is open. Ignores the spec's op and attributes. REQUIRES: the spec has a name.
  StatusOr<const Node*> AddNode(const OpSchema& op, std::vector<AttrValue> attrs, NodeSpec spec);
  // Moves all nodes of `from` here, with the extras imported with them; all or nothing.
  // ALREADY_EXISTS if both graphs have a node of one name. REQUIRES: the same host; nobody else
  // uses `from`, which is empty afterwards.
  Status Adopt(Graph* from, const GraphExtras& extras);
  // Adds a placeholder for a value of another graph, with its type, shape and handle information.
  StatusOr<Edge> AddArgument(const Edge& like, std::string name, std::string_view place = "");
  // Connects input `input` of a merge (the op of role `merge`) to a NextIteration, in place of the
  // input that the merge was made with. Each input once, before anything that includes the merge
  // runs. INVALID_ARGUMENT for unsuitable nodes, types and graphs; FAILED_PRECONDITION if the input
  // is closed already, or is the last open one.
  Status CloseLoop(const Node* merge, int32_t input, const Node* next);
  // Adds a host constant.
  StatusOr<Edge> AddConst(const Tensor& value, std::string name = "", std::string_view place = "");

  // Returns an auxiliary node that plans run beside `origin` or in its place. It is made at the
  // first call with the key and kept as long as the graph, so that kernel state for it is found
  // again. It has no shape information. origin: a node of this graph or of one of its functions.
  StatusOr<const Node*> Beside(const Node& origin, std::string key, const OpSchema& op, std::vector<Edge> inputs,
                               const std::vector<uint32_t>& in_types, std::vector<AttrValue> attrs);

  // Declares that a plan which needs both nodes runs `by` in place of `node`. `by` has the inputs
  // of `node`, then others that do not depend on it, and the outputs of `node`, then others. Each
  // node once.
  void Extend(const Node* node, const Node* by);
  // Returns NULL if nothing runs in place of the node.
  const Node* ExtendedBy(const Node* node) const;
  // Declares that `by` is the same value computed another way: a plan that needs by.node, or a node
  // that runs in its place, reads `by` instead of `value`, so that only one computation is needed.
  // Each value once.
  void Replace(const Edge& value, const Edge& by);
  // Returns an empty edge if there is no replacement.
  Edge ReplacedBy(const Edge& value) const;
  bool has_replaced() const { return has_replaced_.load(std::memory_order_acquire); }

  const Node* Find(std::string_view name) const;  // NULL: none
  // Finds a value by "name" or "name:1"; "^name" is refused.
  StatusOr<Edge> FindEdge(std::string_view text) const;
  int32_t size() const;
  bool has_imported() const { return has_imported_.load(std::memory_order_acquire); }  // some node is imported
  const Node* node(int32_t id) const;
  // Returns `base`, or base_1, base_2, ...: a name that no node has and that no other call returns.
  std::string UniqueName(std::string_view base) const;

  GraphExtras extras() const;

 private:
  // These functions consume parts of the spec.
  StatusOr<const Node*> FindOpAndAdd(NodeSpec* spec);
  StatusOr<const Node*> CheckAndAdd(const OpSchema& op, std::vector<AttrValue> attrs, NodeSpec* spec);
  Status Resolve(std::vector<AttrValue> attrs, NodeSpec* spec, Node* node) const;
  Status Infer(std::string_view name, Node* node) const;
  Status Lower(Node* node) const;
  Status AddReads(Node* node) const;
  static void PrepareMerge(Node* node);
  Status SetValues(Node* node, std::span<const tw_shape> in_shapes) const;
  StatusOr<const Node*> Insert(std::unique_ptr<Node> node, NodeSpec* spec);
  const Node* FindLocked(std::string_view name) const;
  std::string UniqueNameLocked(std::string_view base) const;
  const std::string* PlaceLocked(std::string_view place);

  const std::shared_ptr<GraphHost> host_;
  const std::string container_;
  std::shared_ptr<FunctionLibrary> own_functions_;  // NULL: this graph is a body
  std::weak_ptr<FunctionLibrary> functions_;
  const std::unique_ptr<FoldingBudget> folding_;  // pays for values computed from constants
  std::atomic<bool> has_imported_{false};
  std::atomic<bool> has_extended_{false};
  std::unordered_map<const Node*, const Node*> extended_;
  std::atomic<bool> has_replaced_{false};
  std::map<std::pair<const Node*, int32_t>, Edge> replaced_;
  std::map<std::pair<const Node*, std::string>, std::unique_ptr<const Node>> beside_;
  mutable std::shared_mutex mu_;
  GraphExtras extras_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unordered_set<std::string> places_;
  NameIndex by_name_;
  mutable std::unordered_map<std::string, int> next_suffix_;
  mutable std::unordered_set<std::string> reserved_;  // names that were handed out and have no node yet
  std::set<std::shared_ptr<const void>> plugins_;     // plugins of the graph's ops, kept loaded
};

// Legal node names consist of letters, digits and _.\-/> and do not start with \, - or /. `scope/`
// prefixes are part of the name.
bool IsNodeName(std::string_view s);

}  // namespace thalweg
