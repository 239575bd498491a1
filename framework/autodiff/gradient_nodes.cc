#include "framework/autodiff/gradient_nodes.h"

#include <cstdint>
#include <utility>

#include "framework/base/shown.h"

namespace thalweg {

StatusOr<Edge> AddRole(Graph* g, std::string_view role, std::vector<Edge> in, std::map<std::string, AttrValue> attrs,
                       const std::string& scope, const std::string& device) {
  ASSIGN_OR_RETURN(const OpSchema* op, g->host().FindRole(role));
  NodeSpec spec;
  spec.op = op->name;
  spec.name = g->UniqueName(scope + op->name);
  spec.place = in[0].node->place();
  spec.inputs = std::move(in);
  spec.attrs = std::move(attrs);
  spec.device = device;
  ASSIGN_OR_RETURN(const Node* n, g->AddNode(std::move(spec)));
  return Edge{n, 0};
}

// of: the value with that shape, for a message.
static StatusOr<Edge> ShapeConstant(Graph* g, const Shape& s, uint32_t dtype, const Edge& of, const std::string& scope) {
  Tensor t;
  if (dtype == TW_INT64) {
    ASSIGN_OR_RETURN(t, Tensor::Vector<int64_t>(TW_INT64, {s.dims().begin(), s.dims().end()}));
  } else {
    for (int64_t d : s.dims()) {
      if (d > INT32_MAX) return InvalidArgument("the shape ", s.text(), " of '", Shown(of.text()), "' does not fit int32");
    }
    ASSIGN_OR_RETURN(t, Tensor::Vector<int32_t>(TW_INT32, std::vector<int32_t>(s.dims().begin(), s.dims().end())));
  }
  return g->AddConst(t, g->UniqueName(scope + "shape"), of.node->place());
}

StatusOr<Edge> ShapeVector(Graph* g, Edge e, uint32_t dtype, const std::string& scope) {
  const Shape& s = e.node->shape(e.port);
  if (s.known()) return ShapeConstant(g, s, dtype, e, scope);
  return AddRole(g, "shape", {e}, {{"out_type", AttrValue::Type(dtype)}}, scope);
}

StatusOr<Edge> Densify(Graph* g, const Gradient& grad, Edge like, const std::string& scope) {
  if (!grad.sparse()) return grad.values;
  uint32_t type = grad.rows.node->out_type(grad.rows.port);
  ASSIGN_OR_RETURN(Tensor column, Tensor::Vector<int32_t>(TW_INT32, {-1, 1}));
  ASSIGN_OR_RETURN(Edge column_shape, g->AddConst(column, g->UniqueName(scope + "column")));
  ASSIGN_OR_RETURN(Edge indices, AddRole(g, "reshape", {grad.rows, column_shape}, {}, scope));
  Edge shape;
  const Node* n = like.node;
  if (n->out_type(like.port) == TW_RESOURCE) {
    // The variable's shape comes from its handle if known; otherwise the variable would have to be
    // read.
    const Shape& s = n->handle(like.port).shape;
    if (!s.known()) {
      return Unimplemented("a sparse gradient of '", Shown(like.text()),
                           "' cannot be made dense: the variable's shape is unknown; declare it");
    }
    ASSIGN_OR_RETURN(shape, ShapeConstant(g, s, type, like, scope));
  } else {
    ASSIGN_OR_RETURN(shape, ShapeVector(g, like, type, scope));
  }
  return AddRole(g, "scatter_nd", {indices, grad.values, shape}, {}, scope);
}

}  // namespace thalweg
