#include "framework/graph/shape_inference.h"

#include <map>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/graph/builder.h"
#include "thalweg/plugin/host.h"

namespace thalweg {
namespace {

// The values of the names in a schema's dims, for one node.
struct Bindings {
  template <class T>
  struct Known {
    T value;
    std::string_view arg;  // the argument that set it
  };
  std::map<std::string, Known<int64_t>> dims;
  std::map<std::string, Known<Shape>> stars;
};

// Describes the owner of the conflicting size.
std::string Other(std::string_view first, std::string_view arg) {
  return first == arg ? "another value of it has" : StrCat("input '", first, "' has");
}

// Matches n dims of a pattern without a star against as many sizes.
Status MatchFixed(const DimPattern* pattern, const int64_t* dims, size_t n, std::string_view arg, Bindings* b) {
  for (size_t i = 0; i < n; ++i) {
    const DimPattern& p = pattern[i];
    if (dims[i] < 0 || p.kind == DimPattern::kAny) continue;
    if (p.kind == DimPattern::kSize) {
      if (dims[i] != p.size) return InvalidArgument("input '", arg, "' has size ", dims[i], " where ", p.size, " is needed");
      continue;
    }
    const auto& [size, first] = b->dims.try_emplace(p.name, Bindings::Known<int64_t>{dims[i], arg}).first->second;
    if (size != dims[i]) {
      return InvalidArgument("input '", arg, "' has size ", dims[i], " where ", Other(first, arg), " ", size, "; they must be equal");
    }
  }
  return Status();
}

Status MatchArg(const ArgSpec& arg, const tw_shape& shape, Bindings* b) {
  if (shape.rank < 0) return Status();
  size_t n = size_t(shape.rank), star = arg.dims.size();
  for (size_t i = 0; i < arg.dims.size(); ++i) {
    if (arg.dims[i].kind == DimPattern::kStar) star = i;
  }
  if (star == arg.dims.size()) {
    if (n != arg.dims.size()) {
      return InvalidArgument("input '", arg.name, "' must have rank ", arg.dims.size(), " but is ", ShapeText(shape.dims, shape.rank));
    }
    return MatchFixed(arg.dims.data(), shape.dims, n, arg.name, b);
  }
  size_t tail = arg.dims.size() - star - 1;
  if (n < star + tail) {
    return InvalidArgument("input '", arg.name, "' must have at least rank ", star + tail, " but is ", ShapeText(shape.dims, shape.rank));
  }
  RETURN_IF_ERROR(MatchFixed(arg.dims.data(), shape.dims, star, arg.name, b));
  RETURN_IF_ERROR(MatchFixed(arg.dims.data() + star + 1, shape.dims + n - tail, tail, arg.name, b));
  Shape middle(shape.dims + star, int32_t(n - star - tail));
  auto [it, is_new] = b->stars.try_emplace(arg.dims[star].name, Bindings::Known<Shape>{middle, arg.name});
  if (is_new) return Status();
  auto& [known, first] = it->second;
  auto merged = MergeShapes(known, middle);
  if (!merged.ok()) {
    return InvalidArgument("input '", arg.name, "' has ", n == middle.dims().size() ? "shape " : "axes ", middle.text(), " where ",
                           Other(first, arg.name), " ", known.text(), "; they must be equal");
  }
  known = *std::move(merged);
  return Status();
}

Shape Promise(const ArgSpec& arg, const Bindings& b) {
  std::vector<int64_t> dims;
  for (const DimPattern& p : arg.dims) {
    switch (p.kind) {
      case DimPattern::kSize: dims.push_back(p.size); break;
      case DimPattern::kAny: dims.push_back(-1); break;
      case DimPattern::kName: {
        auto it = b.dims.find(p.name);
        dims.push_back(it == b.dims.end() ? -1 : it->second.value);
        break;
      }
      case DimPattern::kStar: {
        auto it = b.stars.find(p.name);
        if (it == b.stars.end()) return Shape();
        const Shape& axes = it->second.value;
        dims.insert(dims.end(), axes.dims().begin(), axes.dims().end());
        break;
      }
    }
  }
  return Shape(std::move(dims));
}

class ShapeBuilder final : public tw_builder {
 public:
  ShapeBuilder(const ShapeQuery& q, ShapeAnswer* a) : q_(q), a_(a) {}
  void SetShape(uint32_t o, const int64_t* dims, int32_t rank) override {
    if (o >= q_.n_out) return Fail(Internal("the shape rule set output ", o, " of ", q_.n_out));
    for (int32_t i = 0; i < rank; ++i) {
      if (dims[i] < -1) return Fail(InvalidArgument("output ", o, " would have the size ", dims[i], " on axis ", i));
    }
    auto merged = MergeShapes(a_->shapes[o], Shape(dims, rank));
    if (!merged.ok()) return Fail(merged.status());
    a_->shapes[o] = *std::move(merged);
  }
  void GetHandle(uint32_t i, uint32_t* dtype, tw_shape* shape) override {
    const HandleInfo* h = i < q_.n_in && q_.handles ? q_.handles[i] : nullptr;
    *dtype = h ? h->dtype : 0;
    *shape = h ? h->shape.c() : tw_shape{nullptr, -1, 0};
  }
  void SetHandle(uint32_t o, uint32_t dtype, const int64_t* dims, int32_t rank) override {
    if (o >= q_.n_out) return Fail(Internal("the shape rule set the handle of output ", o, " of ", q_.n_out));
    a_->handles[o] = {dtype, Shape(dims, rank)};
  }

 private:
  const ShapeQuery& q_;
  ShapeAnswer* a_;
};

}  // namespace

Status InferShapes(const ShapeQuery& q, ShapeAnswer* out) {
  out->shapes.assign(q.n_out, Shape());
  out->handles.assign(q.n_out, HandleInfo());
  const OpSchema& op = *q.op;
  if (op.rule) return op.rule->Infer(q, out);
  Bindings bound;
  for (size_t a = 0; a < op.inputs.size(); ++a) {
    if (!op.inputs[a].has_dims) continue;
    for (uint32_t i = q.in_at[a]; i < q.in_at[a + 1]; ++i) RETURN_IF_ERROR(MatchArg(op.inputs[a], q.in[i], &bound));
  }
  for (size_t a = 0; a < op.outputs.size(); ++a) {
    if (!op.outputs[a].has_dims) continue;
    for (uint32_t o = q.out_at[a]; o < q.out_at[a + 1]; ++o) out->shapes[o] = Promise(op.outputs[a], bound);
  }
  // A handle is a scalar, whatever the schema says.
  for (uint32_t o = 0; o < q.n_out; ++o) {
    if (q.types[q.n_in + o] == TW_RESOURCE && !out->shapes[o].has_rank()) out->shapes[o] = Shape(std::vector<int64_t>{});
  }
  if (!op.def.shape) return Status();
  ShapeBuilder builder(q, out);
  tw_shape_call call{};
  call.size = sizeof call;
  call.host = op.host;
  call.user = op.def.user;
  call.node = q.node.data();
  call.node_len = q.node.size();
  call.in = q.in;
  call.value = q.values;
  call.attrs = q.attrs->data();
  call.types = q.types;
  call.in_at = q.in_at;
  call.n_attrs = q.attrs->size();
  call.n_in = q.n_in;
  call.n_out = q.n_out;
  call.b = &builder;
  Status s = FromC(op.def.shape(&call));
  // The builder's failure came first; the callback's error may be a consequence of it.
  RETURN_IF_ERROR(builder.status);
  return s;
}

Status InferShapes(const Node& node, const std::vector<tw_shape>& in, const std::vector<Tensor>& values,
                   const std::vector<const HandleInfo*>& handles, ShapeAnswer* out) {
  CAttrs attrs;
  node.FillC(&attrs);
  std::vector<const tw_view*> views;
  views.reserve(values.size());
  for (const Tensor& v : values) views.push_back(v ? &v.view() : nullptr);
  ShapeQuery q;
  q.op = &node.op();
  q.node = node.name();
  q.attrs = &attrs;
  q.types = node.types().data();
  q.in_at = node.in_at().data();
  q.out_at = node.out_at().data();
  q.n_in = uint32_t(node.n_in());
  q.n_out = uint32_t(node.n_out());
  q.in = in.data();
  q.values = views.data();
  q.handles = handles.data();
  return InferShapes(q, out);
}

bool CanEvaluate(const OpSchema& op, const std::vector<uint32_t>& in_at, std::span<const tw_shape> shapes, std::span<const Tensor> values) {
  for (size_t a = 0; a < op.inputs.size(); ++a) {
    for (uint32_t i = in_at[a]; i < in_at[a + 1]; ++i) {
      if (values[i]) continue;
      if (a >= op.shape_only.size() || !op.shape_only[a] || !Shape(shapes[i]).known()) return false;
    }
  }
  return true;
}

}  // namespace thalweg
