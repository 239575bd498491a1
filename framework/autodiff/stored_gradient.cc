#include "framework/autodiff/stored_gradient.h"

#include <map>
#include <utility>
#include <vector>

#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/function_shapes.h"

namespace thalweg {

Status AddStoredGradient(const CallGradient& c, const StoredGradient& gradient) {
  const Node& node = c.node();
  ASSIGN_OR_RETURN(const auto f, c.Find(gradient.function));
  std::vector<Edge> in;
  if (gradient.takes_inputs) in = node.inputs();
  // The function takes the gradients of all outputs, or of the first ones, and gives those of all
  // inputs, or of the first ones. The other inputs have none, as if the node did not read them.
  const size_t n_dys = f->args().size() - std::min(f->args().size(), in.size());
  if (in.size() > f->args().size() || n_dys > size_t(node.n_out()) || f->results().size() > size_t(node.n_in())) {
    return InvalidArgument("its gradient, function ", f->title(), ", does not fit its ", node.n_in(), " inputs and ", node.n_out(),
                           " outputs");
  }
  if (f->results().empty()) return Status();
  for (size_t o = 0; o < n_dys; ++o) {
    ASSIGN_OR_RETURN(in.emplace_back(), c.gradient().dy(int32_t(o)));
  }
  const std::string role = IsStateful(f->body()) ? "call" : "stateless_call";
  ASSIGN_OR_RETURN(const OpSchema* op, c.graph()->host().FindRole(role));
  ASSIGN_OR_RETURN(const Node* call,
                   AddNodeLike(c.graph(), *op, c.scope() + op->name, std::move(in),
                               {{"f", AttrValue::Func(f->name())}, {"Tout", AttrValue::Types(TypesOf(f->results()))}}, node));
  for (int32_t i = 0; i < int32_t(f->results().size()); ++i) {
    if (HasOwnGradient(node.in_type(i)) && f->result_type(size_t(i)) == node.in_type(i)) c.gradient().dx(i, {call, i});
  }
  return Status();
}

StatusOr<std::string> NamedGradient(const Node& node) {
  auto it = node.extra_attrs().find("_gradient_op_type");
  if (it == node.extra_attrs().end()) return std::string();
  AttrSpec spec;
  spec.kind = TW_ATTR_STRING;
  SplatBudget budget;
  bool whole = false;
  ASSIGN_OR_RETURN(const AttrValue value, ParseAttr(it->second, spec, &budget, &whole));
  if (value.kind() != TW_ATTR_STRING || value.is_list()) return InvalidArgument("attribute '_gradient_op_type' is not a text");
  const std::string& name = value.strings()[0];
  // TensorFlow gives gradients of calls that its Python side defines a new name in every process:
  // "PartitionedCall-12".
  if (name == node.op().name || (CallsFunctions(node.op()) && name.starts_with(node.op().name + "-"))) return std::string();
  return name;
}

}  // namespace thalweg
