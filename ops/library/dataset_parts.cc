#include "ops/library/dataset_parts.h"

#include <algorithm>

#include "thalweg/op.h"

namespace thalweg::library {

void Components::Add(uint32_t dtype, const tw_shape& shape) {
  types.push_back(dtype);
  Shape& s = shapes.emplace_back();
  s.known_rank = shape.rank >= 0;
  if (s.known_rank) s.dims.assign(shape.dims, shape.dims + shape.rank);
  for (int64_t& d : s.dims) d = std::max<int64_t>(d, -1);
}

std::vector<tw_shape> Components::c() const {
  std::vector<tw_shape> all;
  for (const Shape& s : shapes) all.push_back(s.c());
  return all;
}

Components Components::Stacked(int64_t size) const {
  Components out = *this;
  for (Shape& s : out.shapes)
    if (s.known_rank) s.dims.insert(s.dims.begin(), size);
  return out;
}

Components Components::Rows() const {
  Components out = *this;
  for (Shape& s : out.shapes) {
    if (!s.known_rank) continue;
    if (s.dims.empty())
      s.known_rank = false;  // refused when elements are taken
    else
      s.dims.erase(s.dims.begin());
  }
  return out;
}

bool ComponentsOf(const tw_graph* graph, tw_output dataset, Components* out) {
  const tw_operation* made = nullptr;
  const auto found = [](tw_status* s) {
    tw_status_release(s);
    return s == nullptr;
  };
  if (!found(tw_graph_producer(graph, dataset, &made, nullptr))) return false;
  const std::string type = tw_operation_type(made);
  if (type == "TFRecordDataset" || type == "TextLineDataset" || type == "FixedLengthRecordDatasetV2") {
    out->Add(TW_STRING, {nullptr, 0, 0});
    return true;
  }
  const std::string suffix = "Dataset";
  if (type.find(suffix) == std::string::npos) return false;
  uint32_t kind = 0, is_list = 0, n = 0, m = 0;
  const void *types = nullptr, *shapes = nullptr;
  if (!found(tw_operation_attr(made, "output_types", &kind, &is_list, &n, &types)) &&
      !found(tw_operation_attr(made, "Toutput_types", &kind, &is_list, &n, &types))) {
    return false;
  }
  if (!found(tw_operation_attr(made, "output_shapes", &kind, &is_list, &m, &shapes)) || n != m) return false;
  for (uint32_t k = 0; k < n; ++k) out->Add(static_cast<const uint32_t*>(types)[k], static_cast<const tw_shape*>(shapes)[k]);
  return true;
}

Components Elements(tw_scope* scope, const char* function, tw_output dataset) {
  Components c;
  if (Good(scope) && !ComponentsOf(tw_scope_graph(scope), dataset, &c))
    Refuse(scope, function, "the value is no dataset of this graph; give the result of a tw_dataset function");
  return c;
}

void CheckLeast(tw_scope* scope, const char* function, const char* what, int64_t n, int64_t least, bool all) {
  if (n >= least || (all && n == -1)) return;
  Refuse(scope, function,
         std::string(what) + " is " + std::to_string(n) + "; it must be at least " + std::to_string(least) + (all ? ", or -1" : ""));
}

tw_output PaddedBatch(tw_scope* scope, const char* function, tw_output dataset, const Padding& how) {
  Components elements = Elements(scope, function, dataset);
  std::vector<tw_output> sizes, values;
  for (size_t k = 0; Good(scope) && k < elements.types.size(); ++k) {
    Components::Shape& s = elements.shapes[k];
    if (how.shapes) {
      Components one;
      one.Add(elements.types[k], how.shapes[k]);
      s = one.shapes[0];
    }
    if (!s.known_rank) Refuse(scope, function, "the rank of component " + std::to_string(k) + " is not known; give its shape");
    tw_output dims = Longs(scope, s.dims);
    if (how.filler && std::count(s.dims.begin(), s.dims.end(), -1) > 0) {
      const tw_output filled[] = {tw_scope_op2(scope, "Less", dims, Long(scope, 0)), how.filler, dims};
      dims = tw_scope_op(scope, "SelectV2", filled, 3);
    }
    sizes.push_back(dims);
    const uint32_t type = elements.types[k];
    values.push_back(how.padding ? how.padding[k] : type == TW_STRING ? String(scope, "") : tw_scope_scalar(scope, type, 0));
  }
  const tw_output flag = Flag(scope, how.whole);
  if (!Good(scope)) return 0;
  OpenOp op(scope, "PaddedBatchDatasetV2");
  tw_op_add_input(op, dataset);
  tw_op_add_input(op, how.size);
  tw_op_add_inputs(op, sizes.data(), uint32_t(sizes.size()));
  tw_op_add_inputs(op, values.data(), uint32_t(values.size()));
  tw_op_add_input(op, flag);
  tw_op_set_int(op, "N", int64_t(sizes.size()));
  return EndDataset(&op, elements.Stacked(how.known), "Toutput_types");
}

tw_output EndDataset(OpenOp* op, const Components& elements, const char* types) {
  const std::vector<tw_shape> shapes = elements.c();
  tw_op_set_types(*op, types, elements.types.data(), uint32_t(elements.types.size()));
  tw_op_set_shapes(*op, "output_shapes", shapes.data(), uint32_t(shapes.size()));
  return op->End();
}

tw_output AddDataset(tw_scope* scope, const char* op, const std::vector<tw_output>& inputs, const Components& elements) {
  if (!Good(scope)) return 0;
  OpenOp open(scope, op);
  tw_op_add_inputs(open, inputs.data(), uint32_t(inputs.size()));
  return EndDataset(&open, elements);
}

tw_output String(tw_scope* scope, const std::string& text) {
  tw_tensor* t = nullptr;
  tw_scope_fail(scope, tw_tensor_create_string(text.data(), text.size(), &t));
  const OwnedTensor owned(t);
  return t ? tw_scope_constant(scope, t) : 0;
}

}  // namespace thalweg::library

using namespace thalweg::library;

uint32_t tw_dataset_component_count(const tw_graph* graph, tw_output dataset) {
  Components c;
  try {
    return graph && ComponentsOf(graph, dataset, &c) ? uint32_t(c.types.size()) : 0;
  } catch (...) {
    return 0;
  }
}

tw_status* tw_dataset_component(const tw_graph* graph, tw_output dataset, uint32_t i, uint32_t* out_dtype, tw_shape* out_shape) {
  const auto refuse = [](const std::string& text) {
    return tw_status_create(TW_INVALID_ARGUMENT, ("tw_dataset_component: " + text).c_str());
  };
  try {
    Components c;
    if (!graph) return refuse("graph is NULL");
    if (!ComponentsOf(graph, dataset, &c)) return refuse("the value is no dataset of this graph");
    if (i >= c.types.size())
      return refuse("component " + std::to_string(i) + " is asked for, and there are " + std::to_string(c.types.size()));
    if (out_dtype) *out_dtype = c.types[i];
    if (!out_shape) return nullptr;
    // The dims that the caller gets are those of the attribute, which live as long as the graph.
    static constexpr tw_shape kScalar = {nullptr, 0, 0};
    *out_shape = kScalar;
    const tw_operation* made = nullptr;
    uint32_t kind = 0, is_list = 0, n = 0;
    const void* shapes = nullptr;
    if (tw_status* s = tw_graph_producer(graph, dataset, &made, nullptr)) return s;
    tw_status* none = tw_operation_attr(made, "output_shapes", &kind, &is_list, &n, &shapes);
    if (!none) *out_shape = static_cast<const tw_shape*>(shapes)[i];
    tw_status_release(none);
    return nullptr;
  } catch (...) {
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory");
  }
}
