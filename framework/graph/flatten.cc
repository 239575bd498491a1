#include "framework/graph/flatten.h"

#include <set>
#include <string>
#include <utility>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/copy_nodes.h"
#include "framework/graph/flow.h"
#include "framework/graph/function.h"
#include "framework/graph/function_shapes.h"

namespace thalweg {
namespace {

constexpr int32_t kDeepestCall = 64;
constexpr int32_t kMostNodes = 1 << 20;

struct ById {
  bool operator()(const Node* a, const Node* b) const { return a->id() < b->id(); }
};

// Returns a known scalar as a number: of an int32, or 0 or 1 for a condition; -1 if it is unknown.
int32_t Choice(const Tensor& t) {
  if (!t || t.shape().rank() != 0) return -1;
  switch (t.dtype()) {
    case TW_BOOL: return *static_cast<const uint8_t*>(t.data()) != 0;
    case TW_INT32: return *static_cast<const int32_t*>(t.data());
    case TW_FLOAT: return *static_cast<const float*>(t.data()) != 0;
    default: return -1;
  }
}

// A function that replaces a node, and the node's input that is its first argument.
struct Call {
  std::string function;  // "": the node stays
  int32_t first = 0;
};

class Flattener {
 public:
  explicit Flattener(const Graph& graph) : graph_(graph), flat_(Graph::Body(graph)) {}

  StatusOr<FlatGraph> Run(const std::vector<Edge>& inputs, const std::vector<Edge>& outputs) {
    FlatGraph made{flat_, {}, {}};
    Copied copied;
    for (const Edge& e : inputs) {
      ASSIGN_OR_RETURN(const Edge argument, flat_->AddArgument(e, flat_->UniqueName(e.node->name()), e.node->place()));
      copied.Put(e, argument);
      made.inputs.push_back(argument);
    }
    RETURN_IF_ERROR(Copy(outputs, "", 0, &copied));
    for (const Edge& e : outputs) made.outputs.push_back(copied.Find(e));
    return made;
  }

 private:
  // Adds all nodes of one graph or body that the values need. prefix: of their names.
  Status Copy(const std::vector<Edge>& wanted, const std::string& prefix, int32_t depth, Copied* copied) {
    std::set<const Node*, ById> needed;
    std::vector<Edge> todo = wanted;
    while (!todo.empty()) {
      const Edge e = todo.back();
      todo.pop_back();
      if (copied->Find(e) || !needed.insert(e.node).second) continue;
      if (!e.node->value(e.port)) todo.insert(todo.end(), e.node->inputs().begin(), e.node->inputs().end());
    }
    for (const Node* n : needed) RETURN_IF_ERROR(Add(*n, prefix, depth, copied));
    return Status();
  }

  Status Add(const Node& n, const std::string& prefix, int32_t depth, Copied* copied) {
    if (FlowOf(n) != Flow::kNone || n.runs_as()) {
      return OfNode(n, InvalidArgument(n.title(), n.runs_as() ? ": what works on references" : ": control flow of Switch and Merge",
                                       " cannot be flattened; begin with a value behind it"));
    }
    bool known = n.n_out() > 0;
    for (int32_t o = 0; o < n.n_out(); ++o) known = known && n.value(o);
    if (known) return AddKnown(n, prefix, copied);
    if (n.op().role == "placeholder_with_default") {
      copied->Put(Edge{&n, 0}, copied->Find(n.inputs()[0]));
      return Status();
    }
    const Call call = CallOf(n, *copied);
    if (!call.function.empty()) return AddBody(n, call, prefix, depth, copied);
    if (flat_->size() >= kMostNodes) return ResourceExhausted("without calls the graph has more than ", kMostNodes, " operations");
    return CopyNode(n, flat_.get(), copied, prefix).status();
  }

  Status AddKnown(const Node& n, const std::string& prefix, Copied* copied) {
    for (int32_t o = 0; o < n.n_out(); ++o) {
      ASSIGN_OR_RETURN(const Edge constant, flat_->AddConst(n.value(o), flat_->UniqueName(prefix + n.name()), n.place()));
      copied->Put(Edge{&n, o}, constant);
    }
    return Status();
  }

  // The function that the node is sure to call.
  static Call CallOf(const Node& n, const Copied& copied) {
    const std::string_view role = CallRole(n.op());
    if (role == "call") return {n.FindAttr("f")->strings()[0], 0};
    if (role != "if" && role != "case") return {};
    const Edge by = copied.Find(n.inputs()[0]);
    const int32_t choice = Choice(by.node->value(by.port));
    if (choice < 0) return {};
    if (role == "if") return {n.FindAttr(choice ? "then_branch" : "else_branch")->strings()[0], 1};
    const auto& all = n.FindAttr("branches")->strings();
    return {size_t(choice) < all.size() ? all[size_t(choice)] : all.back(), 1};
  }

  Status AddBody(const Node& n, const Call& call, const std::string& prefix, int32_t depth, Copied* copied) {
    if (depth >= kDeepestCall) return OfNode(n, InvalidArgument(n.title(), ": calls are nested more than ", kDeepestCall, " deep"));
    const auto library = graph_.functions();
    if (!library) return FailedPrecondition("the graph is a body whose outer graph is gone");
    ASSIGN_OR_RETURN(const auto f, library->Find(call.function));
    if (f->args().size() + size_t(call.first) != n.inputs().size() || f->results().size() != size_t(n.n_out())) {
      return OfNode(n, InvalidArgument(n.title(), ": function ", f->title(), " has another number of arguments or results"));
    }
    Copied inner;
    for (size_t i = 0; i < f->args().size(); ++i) inner.Put(f->args()[i], copied->Find(n.inputs()[i + size_t(call.first)]));
    RETURN_IF_ERROR(Copy(f->results(), prefix + n.name() + "/", depth + 1, &inner));
    for (int32_t o = 0; o < n.n_out(); ++o) copied->Put(Edge{&n, o}, inner.Find(f->results()[size_t(o)]));
    return Status();
  }

  const Graph& graph_;
  const std::shared_ptr<Graph> flat_;
};

}  // namespace

StatusOr<FlatGraph> Flatten(const Graph& graph, const std::vector<Edge>& inputs, const std::vector<Edge>& outputs) {
  return Flattener(graph).Run(inputs, outputs);
}

}  // namespace thalweg
