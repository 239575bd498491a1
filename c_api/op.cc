// The operation builder: collects a NodeSpec and the first failure.
#include "thalweg/op.h"

#include <cstring>

#include "c_api/geometry.h"
#include "c_api/handles.h"
#include "c_api/op_builder.h"
#include "c_api/shim.h"
#include "framework/base/dtype.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/node_links.h"
#include "framework/graph/node_marks.h"
#include "framework/json/utf8.h"
#include "framework/planner/passes/read_once.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/state/container.h"
#include "thalweg/status.h"

using thalweg::AttrValue;
using thalweg::InvalidArgument;
using thalweg::Status;
using thalweg::StatusOr;
using thalweg::StrCat;

namespace {

// Runs one describing step unless an earlier step failed, and keeps its failure.
template <class F>
void Describe(tw_op* op, F&& step) {
  if (!op || !op->status.ok()) return;
  op->status = thalweg::FromC(thalweg::Enter([&]() -> Status { return step(); }));
}

std::string Title(const tw_op& op) { return thalweg::NodeTitle(op.spec.op, op.spec.name, op.spec.place) + ":"; }

// make() returns a StatusOr<AttrValue>.
template <class F>
void SetAttr(tw_op* op, const char* attr, F&& make) {
  Describe(op, [&]() -> Status {
    if (!attr) return InvalidArgument("the name of an attribute is NULL");
    StatusOr<AttrValue> value = make();
    if (!value.ok()) return thalweg::Prefix(value.status(), StrCat("attribute '", attr, "':"));
    op->spec.attrs[attr] = *std::move(value);
    return Status();
  });
}

template <class T>
Status CheckList(const T* values, uint32_t n) {
  return n > 0 && !values ? InvalidArgument("the list is NULL but has ", n, " values") : Status();
}

// Sets a list attribute. `convert` maps each element to a StatusOr of the element type of make's
// vector.
template <class T, class Convert, class Make>
void SetList(tw_op* op, const char* attr, const T* values, uint32_t n, Convert&& convert, Make&& make) {
  SetAttr(op, attr, [&]() -> StatusOr<AttrValue> {
    RETURN_IF_ERROR(CheckList(values, n));
    std::vector<typename decltype(convert(values[0]))::value_type> list;
    list.reserve(n);
    for (uint32_t i = 0; i < n; ++i) {
      auto element = convert(values[i]);
      if (!element.ok()) return element.status();
      list.push_back(*std::move(element));
    }
    return make(std::move(list));
  });
}

StatusOr<std::string> ToText(const tw_string& s) {
  if (s.size > 0 && !s.data) return InvalidArgument("a string is NULL but has ", s.size, " bytes");
  return std::string(s.data ? s.data : "", s.size);
}

// Stored graphs hold function names only as UTF-8.
StatusOr<std::string> ToFunctionName(const tw_string& s) {
  ASSIGN_OR_RETURN(std::string name, ToText(s));
  for (std::string_view rest = name; !rest.empty();) {
    const size_t bytes = thalweg::Utf8Length(rest);
    if (bytes == 0) return InvalidArgument("the name of a function, '", thalweg::OneLine(name), "', is not UTF-8");
    rest.remove_prefix(bytes);
  }
  return name;
}

StatusOr<thalweg::Tensor> ToTensor(tw_tensor* t) {
  if (!t) return InvalidArgument("a tensor is NULL");
  if (!thalweg::LiesOnHost(*t)) return InvalidArgument("the tensor lies on a device; copy it with tw_tensor_to_host first");
  thalweg::Tensor tensor = thalweg::Tensor::Share(t);
  // Copies a tensor of integers: shapes and placement may depend on it, also during planning, and
  // the program may still write to its memory.
  const bool may_decide = !thalweg::IsReal(tensor.dtype()) && thalweg::FindDType(tensor.dtype())->plain;
  return may_decide ? tensor.Clone() : tensor;
}

StatusOr<uint32_t> ToType(uint32_t dtype) {
  if (!thalweg::FindDType(dtype)) return InvalidArgument(dtype, " is no element type");
  return dtype;
}

template <class T>
StatusOr<T> Same(const T& value) {
  return value;
}

StatusOr<uint8_t> ToBool(uint8_t value) { return uint8_t(value != 0); }

}  // namespace

tw_op* tw_op_create(tw_graph* graph, const char* type, const char* name) {
  tw_op* op = nullptr;
  // The only possible failure is out of memory, which NULL reports.
  tw_status_release(thalweg::Enter([&]() -> Status {
    auto made = std::make_unique<tw_op>();
    made->graph = graph;
    made->spec.op = thalweg::TextOrEmpty(type);
    made->spec.name = thalweg::TextOrEmpty(name);
    if (!graph)
      made->status = InvalidArgument("tw_op_create: graph is NULL");
    else if (!type)
      made->status = InvalidArgument("tw_op_create: type is NULL");
    op = made.release();
    return Status();
  }));
  return op;
}

void tw_op_destroy(tw_op* op) { delete op; }

void tw_op_add_input(tw_op* op, tw_output value) { tw_op_add_inputs(op, &value, 1); }

void tw_op_add_inputs(tw_op* op, const tw_output* values, uint32_t n) {
  Describe(op, [&]() -> Status {
    RETURN_IF_ERROR(CheckList(values, n));
    for (uint32_t i = 0; i < n; ++i) {
      auto edge = thalweg::DecodeOutput(*op->graph, values[i], StrCat("input ", op->spec.inputs.size()));
      RETURN_IF_ERROR(edge.status());
      op->spec.inputs.push_back(*edge);
    }
    return Status();
  });
}

void tw_op_add_control(tw_op* op, const tw_operation* before) {
  Describe(op, [&]() -> Status {
    ASSIGN_OR_RETURN(const thalweg::Node* node, thalweg::DecodeOperation(*op->graph->graph, before, "a control input"));
    op->spec.controls.push_back(node);
    return Status();
  });
}

void tw_op_set_device(tw_op* op, const char* device) {
  Describe(op, [&]() -> Status {
    op->spec.device = thalweg::TextOrEmpty(device);
    return op->spec.device.empty() ? Status() : thalweg::ParseDeviceSpec(op->spec.device).status();
  });
}

void tw_op_set_place(tw_op* op, const char* place) {
  Describe(op, [&]() -> Status {
    op->spec.place = thalweg::TextOrEmpty(place);
    return Status();
  });
}

void tw_op_colocate_with(tw_op* op, const tw_operation* other) {
  Describe(op, [&]() -> Status {
    ASSIGN_OR_RETURN(const thalweg::Node* node, thalweg::DecodeOperation(*op->graph->graph, other, "an operation to be colocated with"));
    op->spec.colocate_with.push_back(node->name());
    return Status();
  });
}

void tw_op_set_priority(tw_op* op, int32_t priority) {
  Describe(op, [&]() -> Status {
    ASSIGN_OR_RETURN(op->spec.extra_attrs["_priority"], thalweg::SerializeAttr(AttrValue::Int(priority)));
    return Status();
  });
}

void tw_op_set_recompute(tw_op* op) {
  Describe(op, [&]() -> Status {
    ASSIGN_OR_RETURN(op->spec.extra_attrs[std::string(thalweg::kRecomputeAttr)], thalweg::SerializeAttr(AttrValue::Bool(true)));
    return Status();
  });
}

void tw_op_set_int(tw_op* op, const char* attr, int64_t value) {
  SetAttr(op, attr, [&] { return AttrValue::Int(value); });
}

void tw_op_set_float(tw_op* op, const char* attr, double value) {
  SetAttr(op, attr, [&] { return AttrValue::Float(value); });
}

void tw_op_set_bool(tw_op* op, const char* attr, uint8_t value) {
  if (attr && std::strcmp(attr, thalweg::kOfGraph) == 0) {
    Describe(op, [&]() -> Status {
      op->spec.extra_attrs.erase(thalweg::kOfGraph);
      if (!value) return Status();
      ASSIGN_OR_RETURN(op->spec.extra_attrs[thalweg::kOfGraph], thalweg::SerializeAttr(AttrValue::Bool(true)));
      return Status();
    });
    return;
  }
  SetAttr(op, attr, [&] { return AttrValue::Bool(value != 0); });
}

void tw_op_set_string(tw_op* op, const char* attr, const char* data, uint64_t bytes) {
  SetAttr(op, attr, [&]() -> StatusOr<AttrValue> {
    ASSIGN_OR_RETURN(std::string text, ToText({data, bytes}));
    return AttrValue::String(std::move(text));
  });
}

void tw_op_set_type(tw_op* op, const char* attr, uint32_t dtype) {
  SetAttr(op, attr, [&]() -> StatusOr<AttrValue> {
    RETURN_IF_ERROR(ToType(dtype).status());
    return AttrValue::Type(dtype);
  });
}

void tw_op_set_shape(tw_op* op, const char* attr, const int64_t* dims, int32_t rank) {
  SetAttr(op, attr, [&]() -> StatusOr<AttrValue> {
    ASSIGN_OR_RETURN(thalweg::Shape shape, thalweg::ToShape(dims, rank));
    return AttrValue::OfShape(std::move(shape));
  });
}

void tw_op_set_tensor(tw_op* op, const char* attr, tw_tensor* value) {
  SetAttr(op, attr, [&]() -> StatusOr<AttrValue> {
    ASSIGN_OR_RETURN(thalweg::Tensor tensor, ToTensor(value));
    return AttrValue::OfTensor(std::move(tensor));
  });
}

void tw_op_set_func(tw_op* op, const char* attr, const char* function) {
  SetAttr(op, attr, [&]() -> StatusOr<AttrValue> {
    if (!function) return InvalidArgument("the name of a function is NULL");
    ASSIGN_OR_RETURN(std::string name, ToFunctionName({function, std::strlen(function)}));
    return AttrValue::Func(std::move(name));
  });
}

void tw_op_set_message(tw_op* op, const char* attr, const void* data, uint64_t bytes) {
  if (attr && attr[0] == '_') {
    Describe(op, [&]() -> Status {
      if (std::strcmp(attr, "_class") == 0) return InvalidArgument("attribute '_class': use tw_op_colocate_with");
      if (thalweg::IsLinkAttr(attr)) return InvalidArgument("attribute '", attr, "' is the graph's own");
      ASSIGN_OR_RETURN(std::string message, ToText({static_cast<const char*>(data), bytes}));
      thalweg::SplatBudget budget;
      bool whole = true;
      Status s = thalweg::ParseAttr(message, thalweg::AttrSpec(), &budget, &whole).status();
      if (!s.ok()) return thalweg::Prefix(s, StrCat("attribute '", attr, "':"));
      op->spec.extra_attrs[attr] = std::move(message);
      return Status();
    });
    return;
  }
  SetAttr(op, attr, [&]() -> StatusOr<AttrValue> {
    ASSIGN_OR_RETURN(const std::string message, ToText({static_cast<const char*>(data), bytes}));
    const thalweg::OpSchema* schema = op->graph->graph->host().FindOp(op->spec.op);
    const int i = schema ? schema->FindAttr(attr) : -1;
    if (!schema) return AttrValue();  // tw_op_finish reports the unknown op
    if (i < 0) return InvalidArgument("op ", op->spec.op, " has no such attribute");
    thalweg::SplatBudget budget;
    bool whole = true;
    ASSIGN_OR_RETURN(AttrValue value, thalweg::ParseAttr(message, schema->attrs[size_t(i)], &budget, &whole));
    if (!whole) return InvalidArgument("a function with attributes of its own is not supported here");
    return value;
  });
}

void tw_op_set_ints(tw_op* op, const char* attr, const int64_t* values, uint32_t n) {
  SetList(op, attr, values, n, Same<int64_t>, AttrValue::Ints);
}

void tw_op_set_floats(tw_op* op, const char* attr, const double* values, uint32_t n) {
  SetList(op, attr, values, n, Same<double>, AttrValue::Floats);
}

void tw_op_set_bools(tw_op* op, const char* attr, const uint8_t* values, uint32_t n) {
  SetList(op, attr, values, n, ToBool, AttrValue::Bools);
}

void tw_op_set_strings(tw_op* op, const char* attr, const tw_string* values, uint32_t n) {
  SetList(op, attr, values, n, ToText, AttrValue::Strings);
}

void tw_op_set_types(tw_op* op, const char* attr, const uint32_t* dtypes, uint32_t n) {
  SetList(op, attr, dtypes, n, ToType, AttrValue::Types);
}

void tw_op_set_shapes(tw_op* op, const char* attr, const tw_shape* values, uint32_t n) {
  SetList(op, attr, values, n, [](const tw_shape& s) { return thalweg::ToShape(s.dims, s.rank); }, AttrValue::Shapes);
}

void tw_op_set_tensors(tw_op* op, const char* attr, tw_tensor* const* values, uint32_t n) {
  SetList(op, attr, values, n, ToTensor, AttrValue::Tensors);
}

void tw_op_set_funcs(tw_op* op, const char* attr, const tw_string* functions, uint32_t n) {
  SetList(op, attr, functions, n, ToFunctionName, AttrValue::Funcs);
}

tw_status* tw_op_finish(tw_op* op, const tw_operation** out_operation) {
  if (out_operation) *out_operation = nullptr;
  NEED(op);
  return thalweg::Enter([&]() -> Status {
    std::unique_ptr<tw_op> taken(op);
    if (!op->graph) return op->status;
    if (!op->status.ok()) return thalweg::OfNode(op->spec.name, op->spec.place, thalweg::Prefix(op->status, Title(*op)));
    thalweg::ReserveOperation(*op->graph);
    ASSIGN_OR_RETURN(const thalweg::Node* node, op->graph->graph->AddNode(std::move(op->spec)));
    if (out_operation) *out_operation = thalweg::OperationOf(*op->graph, node);
    return Status();
  });
}
