#include "graph_sink.h"

namespace thalweg::importer {

void Check(tw_status* status) {
  if (!status) return;
  Error e{tw_status_code(status), tw_status_message(status)};
  tw_status_release(status);
  throw e;
}

tw_tensor* TensorFor(const Tensor& value) {
  tw_tensor* made = nullptr;
  const Dims& dims = value.dims();
  const auto rank = static_cast<uint32_t>(dims.size());
  if (value.dtype() == TW_STRING) {
    Check(tw_tensor_create(TW_STRING, dims.data(), rank, &made));
    for (size_t i = 0; i < value.strings().size(); ++i) {
      Check(tw_tensor_set_string(made, i, value.strings()[i].data(), value.strings()[i].size()));
    }
    return made;
  }
  auto* keep = new Tensor(value);
  Check(tw_tensor_create_from_const(
      value.dtype(), dims.data(), rank, value.data(), value.bytes(), [](void* user) { delete static_cast<Tensor*>(user); }, keep, &made));
  return made;
}

GraphSink::~GraphSink() {
  if (owned_) tw_graph_destroy(graph_);
}

std::string GraphSink::Free(const std::string& name) {
  if (!tw_graph_has(graph_, name.c_str())) return name;
  for (int& i = used_[name];;) {
    const std::string next = name + "_" + std::to_string(++i);
    if (!tw_graph_has(graph_, next.c_str())) return next;
  }
}

namespace {

struct Setter {
  tw_op* op;
  const char* name;
  void operator()(int64_t v) const { tw_op_set_int(op, name, v); }
  void operator()(double v) const { tw_op_set_float(op, name, v); }
  void operator()(bool v) const { tw_op_set_bool(op, name, v); }
  void operator()(const std::string& v) const { tw_op_set_string(op, name, v.data(), v.size()); }
  void operator()(Type v) const { tw_op_set_type(op, name, v.dtype); }
  void operator()(const ShapeAttr& v) const {
    tw_op_set_shape(op, name, v.dims.data(), v.known_rank ? static_cast<int32_t>(v.dims.size()) : -1);
  }
  void operator()(const Tensor& v) const {
    tw_tensor* tensor = TensorFor(v);
    tw_op_set_tensor(op, name, tensor);
    tw_tensor_release(tensor);
  }
  void operator()(const Func& v) const { tw_op_set_func(op, name, v.name.c_str()); }
  void operator()(const std::vector<int64_t>& v) const { tw_op_set_ints(op, name, v.data(), static_cast<uint32_t>(v.size())); }
  void operator()(const std::vector<double>& v) const { tw_op_set_floats(op, name, v.data(), static_cast<uint32_t>(v.size())); }
  void operator()(const std::vector<Type>& v) const {
    std::vector<uint32_t> types;
    for (const Type t : v) types.push_back(t.dtype);
    tw_op_set_types(op, name, types.data(), static_cast<uint32_t>(types.size()));
  }
  void operator()(const std::vector<ShapeAttr>& v) const {
    std::vector<tw_shape> shapes;
    for (const ShapeAttr& s : v) shapes.push_back({s.dims.data(), s.known_rank ? static_cast<int32_t>(s.dims.size()) : -1, 0});
    tw_op_set_shapes(op, name, shapes.data(), static_cast<uint32_t>(shapes.size()));
  }
  void operator()(const std::vector<std::string>& v) const {
    std::vector<tw_string> texts;
    for (const std::string& s : v) texts.push_back({s.data(), s.size()});
    tw_op_set_strings(op, name, texts.data(), static_cast<uint32_t>(texts.size()));
  }
};

}  // namespace

Edge GraphSink::Emit(const std::string& op, const std::string& name, const std::vector<Edge>& inputs, const Attrs& attrs) {
  tw_op* made = tw_op_create(graph_, op.c_str(), name.empty() ? nullptr : Free(name).c_str());
  tw_op_add_inputs(made, inputs.data(), static_cast<uint32_t>(inputs.size()));
  try {
    for (const Attr& a : attrs) std::visit(Setter{made, a.name.c_str()}, a.value);
  } catch (...) {
    tw_op_destroy(made);
    throw;
  }
  const tw_operation* operation = nullptr;
  Check(tw_op_finish(made, &operation));
  return tw_operation_output(operation, 0);
}

Edge GraphSink::Output(Edge node, uint32_t i) {
  const tw_operation* operation = nullptr;
  uint32_t index = 0;
  Check(tw_graph_producer(graph_, node, &operation, &index));
  return tw_operation_output(operation, i);
}

Edge GraphSink::Constant(const Tensor& value, const std::string& name) {
  return Emit("Const", name, {}, {{"dtype", Type{value.dtype()}}, {"value", value}});
}

Edge GraphSink::Argument(const std::string& name, uint32_t dtype, const ShapeAttr& shape) {
  return Emit("Placeholder", name, {}, {{"dtype", Type{dtype}}, {"shape", shape}});
}

void GraphSink::Describe(Edge edge, uint32_t* dtype, ShapeAttr* shape) {
  tw_shape s{};
  Check(tw_graph_describe(graph_, edge, dtype, &s));
  shape->known_rank = s.rank >= 0;
  shape->dims.clear();
  for (int32_t i = 0; i < s.rank; ++i) shape->dims.push_back(s.dims[i] < 0 ? -1 : s.dims[i]);
}

std::unique_ptr<Sink> GraphSink::Body() {
  tw_graph* body = nullptr;
  Check(tw_graph_create_body(graph_, &body));
  auto made = std::make_unique<GraphSink>(body);
  made->owned_ = true;
  return made;
}

std::string GraphSink::Define(const std::string& name, Sink& body, const std::vector<Edge>& args, const std::vector<Edge>& results) {
  tw_function_spec spec{};
  spec.size = sizeof spec;
  spec.name = name.c_str();
  spec.args = args.data();
  spec.n_args = static_cast<uint32_t>(args.size());
  spec.results = results.data();
  spec.n_results = static_cast<uint32_t>(results.size());
  spec.make_unique = 1;
  const char* made = nullptr;
  Check(tw_graph_add_function(graph_, static_cast<GraphSink&>(body).graph_, &spec, &made));
  return made;
}

}  // namespace thalweg::importer
