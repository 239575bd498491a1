#include "framework/autodiff/grad_builder.h"

#include <algorithm>

#include "framework/autodiff/gradient_nodes.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/node_marks.h"

namespace thalweg {

bool GradBuilder::FromC(tw_edge c, Edge* e) {
  const uint64_t id = (c >> 16) - 1;
  const auto port = int32_t(c & 0xffff);
  if (c == 0 || id >= uint64_t(d_->graph()->size()) || port >= d_->graph()->node(int32_t(id))->n_out()) {
    Fail(InvalidArgument("an edge given to the builder does not exist (did an earlier call fail?)"));
    return false;
  }
  *e = {d_->graph()->node(int32_t(id)), port};
  return true;
}

tw_edge GradBuilder::Add(const tw_new_node& n) {
  NodeSpec spec;
  spec.op = std::string(n.op, n.op_len);
  spec.name = d_->graph()->UniqueName(StrCat(scope_, n.name_len ? std::string_view(n.name, n.name_len) : std::string_view(spec.op)));
  spec.device = n.device_len ? std::string(n.device, n.device_len) : node_->device();
  spec.place = node_->place();
  for (uint32_t i = 0; i < n.n_in; ++i) {
    Edge e;
    if (!FromC(n.in[i], &e)) return 0;
    spec.inputs.push_back(e);
  }
  for (uint32_t i = 0; i < n.n_after; ++i) {
    Edge e;
    if (!FromC(n.after[i], &e)) return 0;
    spec.controls.push_back(e.node);
  }
  for (uint32_t i = 0; i < n.n_attrs; ++i) {
    auto v = AttrValue::FromC(n.attrs[i]);
    if (!v.ok()) return Fail(v.status()), 0;
    spec.attrs[std::string(n.attrs[i].name, n.attrs[i].name_len)] = *std::move(v);
  }
  if (d_->recomputes()) {
    auto yes = SerializeAttr(AttrValue::Bool(true));
    if (!yes.ok()) return Fail(yes.status()), 0;
    spec.extra_attrs[std::string(kReadsLateAttr)] = *std::move(yes);
  }
  auto node = d_->graph()->AddNode(std::move(spec));
  if (!node.ok()) return Fail(node.status()), 0;
  return ToC({*node, 0});
}

tw_edge GradBuilder::Output(tw_edge node, uint32_t i) {
  Edge e;
  if (!FromC(node, &e)) return 0;
  if (i >= uint32_t(e.node->n_out())) return Fail(InvalidArgument("'", Shown(e.node->name()), "' has no output ", i)), 0;
  return ToC({e.node, int32_t(i)});
}

tw_edge GradBuilder::Constant(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes) {
  auto t = Tensor::Make(dtype, dims, int32_t(rank));
  if (!t.ok()) return Fail(t.status()), 0;
  if (t->bytes() != bytes || !FindDType(dtype)->plain) {
    return Fail(InvalidArgument("a constant of ", DTypeName(dtype), " and shape ", t->shape().text(), " needs ", t->bytes(), " bytes, not ",
                                bytes)),
           0;
  }
  std::copy_n(static_cast<const char*>(data), bytes, static_cast<char*>(t->data()));
  return Answer(d_->graph()->AddConst(*t, d_->graph()->UniqueName(scope_ + "Const"), node_->place()));
}

Status GradBuilder::Describe(tw_edge c, uint32_t* out_dtype, tw_shape* out_shape) {
  Edge e;
  if (!FromC(c, &e)) return status;
  *out_dtype = BaseType(e.node->out_type(e.port));
  *out_shape = e.node->shape(e.port).c();  // lives as long as the graph
  return Status();
}

tw_edge GradBuilder::Input(uint32_t i) {
  if (i >= uint32_t(node_->n_in())) return Fail(InvalidArgument("there is no input ", i)), 0;
  return ToC(node_->inputs()[i]);
}
tw_edge GradBuilder::Result(uint32_t o) {
  if (o >= uint32_t(node_->n_out())) return Fail(InvalidArgument("there is no output ", o)), 0;
  return ToC({node_, int32_t(o)});
}
tw_edge GradBuilder::ShapeOf(uint32_t i) {
  if (i >= uint32_t(node_->n_in())) return Fail(InvalidArgument("there is no input ", i)), 0;
  return Answer(ShapeVector(d_->graph(), node_->inputs()[i], TW_INT32, scope_));
}
tw_edge GradBuilder::Dy(uint32_t o) {
  if (o >= uint32_t(node_->n_out())) return Fail(InvalidArgument("there is no output ", o)), 0;
  if (!HasDy(o)) return Answer(AddRole(d_->graph(), "zeros_like", {{node_, int32_t(o)}}, {}, scope_));
  auto g = d_->Collect({node_, int32_t(o)}, false);
  if (!g.ok()) return Fail(g.status()), 0;
  return ToC(g->values);
}
uint32_t GradBuilder::HasDy(uint32_t o) { return o < uint32_t(node_->n_out()) && d_->Has({node_, int32_t(o)}); }
tw_edge GradBuilder::DySparse(uint32_t o, tw_edge* out_rows) {
  if (o >= uint32_t(node_->n_out())) return Fail(InvalidArgument("there is no output ", o)), 0;
  if (!HasDy(o)) return 0;
  auto g = d_->Collect({node_, int32_t(o)}, true);
  if (!g.ok()) return Fail(g.status()), 0;
  if (!g->sparse()) return 0;
  *out_rows = ToC(g->rows);
  return ToC(g->values);
}
void GradBuilder::Dx(uint32_t i, tw_edge values) {
  Edge e;
  if (i >= uint32_t(node_->n_in())) return Fail(InvalidArgument("there is no input ", i));
  if (!FromC(values, &e)) return;
  Edge x = node_->inputs()[i];
  uint32_t want = x.node->out_type(x.port), have = e.node->out_type(e.port);
  const Shape *wanted = &x.node->shape(x.port), &shape = e.node->shape(e.port);
  if (want == TW_RESOURCE && x.node->handle(x.port).dtype) {
    want = x.node->handle(x.port).dtype;
    wanted = &x.node->handle(x.port).shape;
  }
  if (want != TW_RESOURCE && BaseType(want) != have) {
    return Fail(InvalidArgument("the gradient of input ", i, " is ", DTypeName(have), ", not ", DTypeName(want)));
  }
  if (want != TW_RESOURCE && !shape.Admits(*wanted)) {
    return Fail(InvalidArgument("the gradient of input ", i, " has shape ", shape.text(), ", not ", wanted->text()));
  }
  d_->Add(x, {e, {}});
}
void GradBuilder::DxSparse(uint32_t i, tw_edge rows, tw_edge values) {
  Edge r, v;
  if (i >= uint32_t(node_->n_in())) return Fail(InvalidArgument("there is no input ", i));
  if (!FromC(rows, &r) || !FromC(values, &v)) return;
  uint32_t type = r.node->out_type(r.port);
  if (type != TW_INT32 && type != TW_INT64)
    return Fail(InvalidArgument("rows of a sparse gradient must be int32 or int64, not ", DTypeName(type)));
  d_->Add(node_->inputs()[i], {v, r});
}

}  // namespace thalweg
