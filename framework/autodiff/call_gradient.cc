#include "framework/autodiff/call_gradient.h"

#include <utility>

#include "framework/autodiff/autodiff.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/builder.h"
#include "framework/graph/device_spec.h"
#include "framework/graph/function_shapes.h"
#include "framework/graph/node_marks.h"

namespace thalweg {

// A node beside a node that calls functions keeps its task but may run on any device there: the
// device is meant for the functions' nodes.
static std::string DeviceBeside(const OpSchema& op, const Node& like) {
  if (like.device().empty() || CallsFunctions(op) || !CallsFunctions(like.op())) return like.device();
  auto spec = ParseDeviceSpec(like.device());
  if (!spec.ok()) return like.device();
  spec->kind.clear();
  spec->index = -1;
  return spec->text();
}

StatusOr<const Node*> AddNodeLike(Graph* g, const OpSchema& op, const std::string& name, std::vector<Edge> in,
                                  std::map<std::string, AttrValue> attrs, const Node& like, std::map<std::string, std::string> extra) {
  NodeSpec spec;
  spec.op = op.name;
  spec.name = g->UniqueName(name);
  spec.inputs = std::move(in);
  spec.attrs = std::move(attrs);
  spec.extra_attrs = std::move(extra);
  spec.device = DeviceBeside(op, like);
  spec.place = like.place();
  return g->AddNode(std::move(spec));
}

StatusOr<const Node*> AddRoleLike(Graph* g, std::string_view role, std::vector<Edge> in, std::map<std::string, AttrValue> attrs,
                                  const Node& like) {
  ASSIGN_OR_RETURN(const OpSchema* op, g->host().FindRole(role));
  return AddNodeLike(g, *op, op->name, std::move(in), std::move(attrs), like);
}

StatusOr<Edge> AddScalarLike(Graph* g, int32_t value, const Node& like) {
  ASSIGN_OR_RETURN(Tensor t, ScalarTensor(TW_INT32, value));
  return g->AddConst(t, g->UniqueName("Const"), like.place());
}

StatusOr<Edge> AddPlaceholderLike(Graph* g, uint32_t type, const Shape& shape, const std::string& name, const Node& like) {
  ASSIGN_OR_RETURN(const OpSchema* op, g->host().FindRole("placeholder"));
  ASSIGN_OR_RETURN(const Node* n,
                   AddNodeLike(g, *op, name, {}, {{"dtype", AttrValue::Type(type)}, {"shape", AttrValue::OfShape(shape)}}, like));
  return Edge{n, 0};
}

StatusOr<Edge> AddListLike(Graph* g, uint32_t type, const Node& like) {
  ASSIGN_OR_RETURN(const Edge any, AddScalarLike(g, -1, like));
  ASSIGN_OR_RETURN(const Node* list, AddRoleLike(g, "list", {any, any}, {{"element_dtype", AttrValue::Type(type)}}, like));
  return Edge{list, 0};
}

uint32_t TypeOf(const Edge& e) { return BaseType(e.node->out_type(e.port)); }

std::vector<uint32_t> TypesOf(const std::vector<Edge>& values) {
  std::vector<uint32_t> types;
  for (const Edge& e : values) types.push_back(TypeOf(e));
  return types;
}

bool IsHandle(const Edge& e) { return TypeOf(e) == TW_RESOURCE; }

bool HasOwnGradient(uint32_t type) { return BaseType(type) != TW_RESOURCE && HasGradients(type); }

bool IsStateful(const Graph& g) {
  for (int32_t id = 0; id < g.size(); ++id) {
    if (g.node(id)->op().stateful) return true;
  }
  return false;
}

StatusOr<Edge> ZerosLike(Graph* g, Edge e, const Node& like) {
  if (IsHandle(e)) {
    const uint32_t type = e.node->handle(e.port).dtype;
    if (!type)
      return Unimplemented("it is not known what variable '", Shown(e.text()), "' is a handle of; make the handle outside of functions");
    ASSIGN_OR_RETURN(const Node* read, AddRoleLike(g, "read_variable", {e}, {{"dtype", AttrValue::Type(type)}}, like));
    e = {read, 0};
  }
  ASSIGN_OR_RETURN(const Node* zeros, AddRoleLike(g, "zeros_like", {e}, {}, like));
  return Edge{zeros, 0};
}

CallGradient::CallGradient(Graph* graph, const Node& node, std::string scope, const NodeGradient& gradient)
    : graph_(graph), node_(&node), scope_(std::move(scope)), gradient_(gradient), role_(CallRole(node.op())), n_given_(node.n_out()) {
  for (const Node* by = graph->ExtendedBy(node_); by; by = graph->ExtendedBy(by)) node_ = by;
}

Status CallGradient::Open() {
  library_ = graph_->functions();
  return library_ ? Status() : FailedPrecondition("the graph around this one is gone");
}

StatusOr<std::string> CallGradient::AddFunction(const std::string& name, std::shared_ptr<Graph> body, std::vector<Edge> args,
                                                std::vector<Edge> results, std::vector<const Node*> targets) const {
  FunctionSpec spec;
  spec.name = library_->UniqueName(name);
  spec.body = std::move(body);
  spec.args = std::move(args);
  spec.results = std::move(results);
  spec.targets = std::move(targets);
  ASSIGN_OR_RETURN(auto f, Function::Make(std::move(spec)));
  RETURN_IF_ERROR(library_->Add(f));
  return f->name();
}

StatusOr<const Node*> CallGradient::Extended(std::vector<Edge> more_inputs, std::map<std::string, AttrValue> changed) const {
  NodeSpec spec;
  spec.op = node_->op().name;
  spec.name = graph_->UniqueName(node_->name() + "_with_captures");
  spec.inputs = node_->inputs();
  spec.inputs.insert(spec.inputs.end(), more_inputs.begin(), more_inputs.end());
  spec.controls = node_->controls();
  for (size_t a = 0; a < node_->attrs().size(); ++a) {
    const std::string& name = node_->op().attrs[a].name;
    if (name != "T" && !changed.count(name)) spec.attrs[name] = node_->attrs()[a];
  }
  spec.attrs.merge(changed);
  spec.extra_attrs = node_->extra_attrs();
  std::erase_if(spec.extra_attrs, [](const auto& attr) { return !attr.first.starts_with('_'); });  // they describe the old functions
  if (gradient_.keeping.recompute) {
    ASSIGN_OR_RETURN(spec.extra_attrs[std::string(kRecomputeAttr)], SerializeAttr(AttrValue::Bool(true)));
  }
  spec.device = node_->device();
  spec.colocate_with = node_->colocate_with();
  spec.place = node_->place();
  spec.imported = node_->imported();
  ASSIGN_OR_RETURN(const Node* by, graph_->AddNode(std::move(spec)));
  graph_->Extend(node_, by);
  return by;
}

StatusOr<const OpSchema*> CallGradient::Op(bool is_stateful) const {
  return graph_->host().FindRole(is_stateful ? std::string(role_) : StrCat("stateless_", role_));
}

}  // namespace thalweg
