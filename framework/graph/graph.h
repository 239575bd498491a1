// Graph and Node: the program. Nodes are added, never changed or removed, so a pointer to a node stays good as long as the graph.
// Threads: adding locks; reading a node needs no lock once it was handed out.
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
#include "framework/graph/name_index.h"
#include "framework/graph/op_schema.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class FunctionLibrary;
class Graph;
class FoldingBudget;
class Node;
class Runtime;

// A value: output `port` of a node.
struct Edge {
  const Node* node = nullptr;
  int32_t port = 0;
  bool operator==(const Edge& o) const { return node == o.node && port == o.port; }
  explicit operator bool() const { return node != nullptr; }
  // "name" for port 0, "name:1" for others.
  std::string text() const;
};

// What a resource handle leads to, as far as known.
struct HandleInfo {
  uint32_t dtype = 0;
  Shape shape;
  bool known() const { return dtype != 0 || shape.has_rank(); }
};
inline const HandleInfo kNoHandle;

std::string NodeTitle(std::string_view op, std::string_view name, std::string_view place);

// A node of the graph, or one of no graph that plans run in the place of such a node: what it runs as, or what reads a reference.
class Node {
 public:
  // One of no graph, with an argument per input and output, that stands for several in a plan. op: must outlive it.
  static Node StandIn(const OpSchema* op, std::string name, std::vector<Edge> inputs, std::vector<uint32_t> types,
                      std::vector<Shape> shapes);
  // The node of the graph that it belongs to: itself, or the one that has it as runs_as() or read().
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
  // Argument a has the flat inputs [in_at()[a], in_at()[a + 1]); likewise outputs.
  const std::vector<uint32_t>& in_at() const { return rare().in_at.empty() ? schema_->in_at : rare_->in_at; }
  const std::vector<uint32_t>& out_at() const { return rare().out_at.empty() ? schema_->out_at : rare_->out_at; }
  const std::vector<AttrValue>& attrs() const { return attrs_; }  // in schema order
  const AttrValue* FindAttr(std::string_view attr) const;
  // Attributes that the schema does not have (underscore names): serialised AttrValue messages, kept byte for byte.
  // Also one of the schema's where AttrValue cannot hold all of it: a function with attributes of its own.
  const std::map<std::string, std::string>& extra_attrs() const { return origin().rare().extra; }
  // Fields of the NodeDef that it came from and that nothing here stands for, serialised.
  const std::string& unknown_fields() const { return rare().unknown; }
  // It came in with a GraphDef: not the program, somebody else may have written it. Not exported.
  bool imported() const { return origin().imported_; }
  const std::string& device() const { return origin().device_; }
  const std::vector<std::string>& colocate_with() const { return origin().rare().colocate; }
  // Of a node whose op says `runs_as`: the node of that op, with handles for references; it has no outputs for those that are handed on.
  // NULL: it runs itself.
  const Node* runs_as() const { return rare().runs_as.get(); }
  // Of an input that closes a loop: the NextIteration whose value arrives there in all iterations but the first, where inputs()[i] only
  // says the type. NULL: inputs()[i] is all there is.
  const Node* back(int32_t i) const { return rare().back ? rare().back[size_t(i)].load(std::memory_order_acquire) : nullptr; }
  // Of an output that is a reference: a node that takes a handle and answers the variable's value.
  const Node* read(int32_t o) const { return rare().reads[size_t(o)].get(); }
  // What is known when nothing is fed.
  const Shape& shape(int32_t o) const { return shapes_[size_t(o)]; }
  const HandleInfo& handle(int32_t o) const { return handles_.empty() ? kNoHandle : handles_[size_t(o)]; }
  const std::vector<HandleInfo>& handles() const { return handles_; }  // of all outputs; empty: nothing is known of any
  const Tensor& value(int32_t o) const { return values_[size_t(o)]; }  // empty: not a known constant
  void FillC(CAttrs* out) const;
  // Where in the program it was made, such as "train.py:18"; "": not known. Not part of the graph: it is not exported.
  std::string_view place() const { return origin().place_ ? std::string_view(*origin().place_) : std::string_view(); }
  // "MatMul 'head/mm' (made at train.py:18)": how messages name a node.
  std::string title() const { return NodeTitle(origin().schema_->name, name(), place()); }

 private:
  friend class Graph;
  // What few nodes have.
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
  std::unique_ptr<Rare> rare_;          // NULL: nothing of it
  const Node* origin_ = nullptr;        // NULL: itself
  const std::string* place_ = nullptr;  // the graph's; many nodes have one
  std::vector<Shape> shapes_;
  std::vector<HandleInfo> handles_;
  std::vector<Tensor> values_;
};

// Says which node failed, and where it was made.
inline Status OfNode(const Node& node, Status s) { return OfNode(node.name(), node.place(), std::move(s)); }

// A node to be.
struct NodeSpec {
  std::string op, name;      // empty name: one is made from the op
  std::vector<Edge> inputs;  // flat
  std::vector<const Node*> controls;
  std::map<std::string, AttrValue> attrs;
  std::map<std::string, std::string> extra_attrs;
  std::string unknown_fields;
  std::string device;
  std::vector<std::string> colocate_with;
  std::string place;  // see Node::place
  bool imported = false;
  HandleInfo handle;  // of a placeholder: what handles that are fed lead to
  Shape shape;        // of what comes from another process: its output's, as is known there
};

// The version of graphs that we write, and read as: that of the TensorFlow whose ops and attributes we follow (2.21).
constexpr int32_t kGraphVersion = 2474;

// What a GraphDef says beside its nodes.
struct GraphExtras {
  // VersionDef: who wrote it, who may read it.
  int32_t producer = kGraphVersion, min_consumer = 0;
  std::vector<int32_t> bad_consumers;
  std::string library;  // serialised FunctionDefLibrary, kept byte for byte
  std::string unknown_fields;
};

class Graph {
 public:
  // runtime: gives schemas and folds constants; retained.
  explicit Graph(std::shared_ptr<Runtime> runtime);
  // One that is to be the body of a function (function.h): its nodes call those of `outer`, which it does not keep alive.
  static std::shared_ptr<Graph> Body(const Graph& outer);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Runtime& runtime() const { return *runtime_; }
  const std::shared_ptr<Runtime>& runtime_ptr() const { return runtime_; }
  // Its own container: where the state lives that its sessions share and no other graph sees. It ends with the graph, which sessions keep.
  const std::string& container() const { return container_; }
  // What its nodes may call. Empty: of a body whose outer graph is gone.
  std::shared_ptr<FunctionLibrary> functions() const { return functions_.lock(); }

  // Checks everything: op, name, argument counts and types, attributes (inferred, defaulted, allowed), shapes. On failure the graph is as
  // before. Errors are prefixed with the node's title.
  StatusOr<const Node*> AddNode(NodeSpec spec);
  // The same for who has found the op already and has its attributes in the order of the schema, those that are open being empty. The
  // spec's own op and attributes are not looked at. REQUIRES: it has a name.
  StatusOr<const Node*> AddNode(const OpSchema& op, std::vector<AttrValue> attrs, NodeSpec spec);
  // Takes over the nodes of `from`, and the extras that came with them: all, or nothing. ALREADY_EXISTS where both have a node of one name.
  // REQUIRES: the same runtime; nobody else uses `from`, which is empty afterwards.
  Status Adopt(Graph* from, const GraphExtras& extras);
  // A placeholder for a value of another graph: of its type and shape, and a handle to what it is a handle to.
  StatusOr<Edge> AddArgument(const Edge& like, std::string name, std::string_view place = "");
  // Gives input `input` of a merge (the op of role `merge`) the value of a NextIteration in place of what the merge was made with, once.
  // To be called before anything that holds the merge is run. Errors: INVALID_ARGUMENT for other nodes, types and graphs;
  // FAILED_PRECONDITION for an input that is closed already, or the last one that is open.
  Status CloseLoop(const Node* merge, int32_t input, const Node* next);
  // A host constant.
  StatusOr<Edge> AddConst(const Tensor& value, std::string name = "", std::string_view place = "");

  // A node of no graph that plans run beside `origin`, or in its place: made at the first call with that key, so that what kernels keep for
  // it is found again, and kept as long as the graph. It says nothing of shapes. origin: a node of this graph or of one of its functions.
  StatusOr<const Node*> Beside(const Node& origin, std::string key, const OpSchema& op, std::vector<Edge> inputs,
                               const std::vector<uint32_t>& in_types, std::vector<AttrValue> attrs);

  // `by` has the inputs of `node`, then others that do not depend on it, and gives its outputs, then others: a plan that needs both runs
  // `by` in the place of `node`. Each node once.
  void Extend(const Node* node, const Node* by);
  // NULL: nothing runs in its place.
  const Node* ExtendedBy(const Node* node) const;
  // `by` is the same value, made another way: a plan that needs by.node, or what runs in its place, reads `by` wherever `value` is read, so
  // that only one of the two ways is gone. Each value once.
  void Replace(const Edge& value, const Edge& by);
  // Empty: nothing does.
  Edge ReplacedBy(const Edge& value) const;
  bool has_replaced() const { return has_replaced_.load(std::memory_order_acquire); }

  const Node* Find(std::string_view name) const;  // NULL: none
  // "name", "name:1"; "^name" is refused.
  StatusOr<Edge> FindEdge(std::string_view text) const;
  int32_t size() const;
  bool has_imported() const { return has_imported_.load(std::memory_order_acquire); }  // some node is
  const Node* node(int32_t id) const;
  // A name that no node has, nor will get from another call: `base`, or base_1, base_2, ...
  std::string UniqueName(std::string_view base) const;

  GraphExtras extras() const;

 private:
  // These take the parts of the spec.
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

  std::shared_ptr<Runtime> runtime_;
  const std::string container_;
  std::shared_ptr<FunctionLibrary> own_functions_;  // NULL: of a body
  std::weak_ptr<FunctionLibrary> functions_;
  const std::unique_ptr<FoldingBudget> folding_;  // pays for the values that follow from constants
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
  mutable std::unordered_set<std::string> reserved_;  // names given out whose nodes are still to come
  std::set<std::shared_ptr<const void>> plugins_;     // whose ops it has, so that they are not unloaded
};

// Legal node names: letters, digits and _.\-/> , not starting with a sign; `scope/` prefixes are part of the name.
bool IsNodeName(std::string_view s);

}  // namespace thalweg
