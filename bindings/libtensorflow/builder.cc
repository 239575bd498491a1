#include "builder.h"

#include <algorithm>
#include <cstring>

#include "old_ops.h"
#include "ops.h"

namespace thalweg::tf {
namespace {

using proto::AttrValue;

// The types that an argument stands for.
void AppendTypes(const proto::OpDef::ArgDef& arg, const std::map<std::string, AttrValue>& attrs, std::vector<uint32_t>* types) {
  const auto find = [&](const std::string& name) -> const AttrValue& {
    const auto at = attrs.find(name);
    if (at == attrs.end())
      Fail(TF_INVALID_ARGUMENT, "the call has no attribute '", name, "', which the function's argument '", arg.name(), "' needs");
    return at->second;
  };
  if (!arg.type_list_attr().empty()) {
    for (int type : find(arg.type_list_attr()).list().type()) types->push_back(static_cast<uint32_t>(type));
    return;
  }
  const int64_t count = arg.number_attr().empty() ? 1 : find(arg.number_attr()).i();
  const auto type = static_cast<uint32_t>(arg.type_attr().empty() ? arg.type() : find(arg.type_attr()).type());
  for (int64_t i = 0; i < count; ++i) types->push_back(type);
}

// An attribute whose name begins with an underscore is kept as a message.
void SetPrivateTensors(tw_op* op, const std::string& name, const std::vector<TensorRef>& tensors, bool list) {
  AttrValue value;
  if (list) value.mutable_list();
  for (const TensorRef& t : tensors) *(list ? value.mutable_list()->add_tensor() : value.mutable_tensor()) = Encode(t.get());
  const std::string bytes = Serialise(value);
  tw_op_set_message(op, name.c_str(), bytes.data(), bytes.size());
}
void SetTensors(tw_op* op, const std::string& name, const std::vector<TensorRef>& tensors, bool list) {
  if (name[0] == '_') return SetPrivateTensors(op, name, tensors, list);
  std::vector<tw_tensor*> values;
  for (const TensorRef& t : tensors) values.push_back(t.get());
  if (list) {
    tw_op_set_tensors(op, name.c_str(), values.data(), static_cast<uint32_t>(values.size()));
  } else {
    tw_op_set_tensor(op, name.c_str(), values[0]);
  }
}

// As TensorFlow, a name that is taken is an invalid argument.
void CheckAdded(tw_status* status, const std::string& name) {
  if (tw_status_code(status) == TW_ALREADY_EXISTS) {
    tw_status_release(status);
    Fail(TF_INVALID_ARGUMENT, "Duplicate node name in graph: '", name, "'");
  }
  Check(status);
}

}  // namespace

Call CallOf(const proto::FunctionDef& function, const std::map<std::string, AttrValue>& attrs) {
  Call call;
  call.function = &function;
  for (const auto& arg : function.signature().input_arg()) AppendTypes(arg, attrs, &call.in_types);
  for (const auto& arg : function.signature().output_arg()) AppendTypes(arg, attrs, &call.out_types);
  return call;
}

TF_Operation* Finish(TF_OperationDescription* d) {
  if (d->failure) throw *d->failure;
  const std::lock_guard lock(d->graph->mu);
  const proto::OpDef* def = FindOp(d->type);
  const proto::FunctionDef* function = def ? nullptr : d->graph->FindFunction(d->type);
  if (!def && !function) NeedOp(d->type);
  std::string type = d->type;
  Call call;
  if (function) {
    call = CallOf(*function, d->attrs);
    if (function->signature().attr_size() > 0)
      Fail(TF_UNIMPLEMENTED, "a call of function '", d->type, "', whose types are attributes; import the call in a GraphDef");
    type = function->signature().is_stateful() ? "StatefulPartitionedCall" : "PartitionedCall";
  }
  tw_op* op = tw_op_create(d->graph->graph, type.c_str(), d->name.c_str());
  if (!op) throw std::bad_alloc();
  tw_op_set_device(op, d->device.c_str());
  tw_op_add_inputs(op, d->inputs.data(), static_cast<uint32_t>(d->inputs.size()));
  for (const tw_operation* c : d->controls) tw_op_add_control(op, c);
  if (function) {
    tw_op_set_func(op, "f", d->type.c_str());
    tw_op_set_types(op, "Tin", call.in_types.data(), static_cast<uint32_t>(call.in_types.size()));
    tw_op_set_types(op, "Tout", call.out_types.data(), static_cast<uint32_t>(call.out_types.size()));
  }
  std::sort(d->colocated.begin(), d->colocated.end());
  for (const std::string& entry : d->colocated) {
    const std::string name = entry.rfind("loc:@", 0) == 0 ? entry.substr(5) : entry;
    const TF_Operation* other = d->graph->FindName(name);
    if (!other) {
      tw_op_destroy(op);
      Fail(TF_INVALID_ARGUMENT, "Node '", d->name, "' expects to be colocated with unknown node '", name, "'");
    }
    tw_op_colocate_with(op, other->op);
  }
  for (const auto& [name, value] : d->attrs) {
    if (function && name[0] != '_') continue;
    const std::string bytes = Serialise(value);
    tw_op_set_message(op, name.c_str(), bytes.data(), bytes.size());
  }
  for (const auto& [name, tensors] : d->tensors) SetTensors(op, name, tensors, d->tensor_lists[name]);
  const tw_operation* made = nullptr;
  CheckAdded(tw_op_finish(op, &made), d->name);
  TF_Operation* operation = d->graph->Find(made);
  if (function) operation->function = d->type;
  return operation;
}

}  // namespace thalweg::tf

using namespace thalweg::tf;
using thalweg::proto::AttrValue;

// Runs one step of a description, and keeps the first failure.
template <class Step>
static void Describe(TF_OperationDescription* d, Step&& step) {
  if (d->failure) return;
  TF_Status status;
  Guard(&status, step);
  if (status.code != TF_OK) d->failure = Error{status.code, status.message};
}

// Sets one attribute: fill(&value).
template <class FillValue>
static void SetAttr(TF_OperationDescription* d, const char* attr, FillValue&& fill) {
  Describe(d, [&] {
    AttrValue value;
    fill(&value);
    if (std::strcmp(attr, "_class") == 0) {
      d->colocated.assign(value.list().s().begin(), value.list().s().end());
    } else {
      d->attrs[attr] = std::move(value);
    }
  });
}

static void SetShape(const int64_t* dims, int num_dims, thalweg::proto::TensorShapeProto* shape) {
  if (num_dims < 0) shape->set_unknown_rank(true);
  for (int i = 0; i < num_dims; ++i) shape->add_dim()->set_size(std::max<int64_t>(dims[i], -1));
}

TF_OperationDescription* TF_NewOperationLocked(TF_Graph* graph, const char* op_type, const char* oper_name) {
  return Guard(nullptr, [&] {
    auto d = std::make_unique<TF_OperationDescription>();
    d->graph = graph;
    d->type = CurrentOp(OrEmpty(op_type));
    d->name = OrEmpty(oper_name);
    return d.release();
  });
}
TF_OperationDescription* TF_NewOperation(TF_Graph* graph, const char* op_type, const char* oper_name) {
  return TF_NewOperationLocked(graph, op_type, oper_name);
}

void TF_SetDevice(TF_OperationDescription* d, const char* device) { d->device = OrEmpty(device); }

void TF_AddInput(TF_OperationDescription* d, TF_Output input) {
  Describe(d, [&] { d->inputs.push_back(Inside(*d->graph, input, "an input")); });
}
void TF_AddInputList(TF_OperationDescription* d, const TF_Output* inputs, int num_inputs) {
  for (int i = 0; i < num_inputs; ++i) TF_AddInput(d, inputs[i]);
}
void TF_AddControlInput(TF_OperationDescription* d, TF_Operation* input) {
  Describe(d, [&] {
    if (!input || input->graph != d->graph) Fail(TF_INVALID_ARGUMENT, "a control input is not in the graph");
    if (std::find(d->controls.begin(), d->controls.end(), input->op) == d->controls.end()) d->controls.push_back(input->op);
  });
}
void TF_ColocateWith(TF_OperationDescription* d, TF_Operation* op) {
  Describe(d, [&] {
    const std::string entry = Text("loc:@", tw_operation_name(op->op));
    if (std::find(d->colocated.begin(), d->colocated.end(), entry) == d->colocated.end()) d->colocated.push_back(entry);
  });
}

void TF_SetAttrString(TF_OperationDescription* d, const char* attr, const void* value, size_t length) {
  SetAttr(d, attr, [&](AttrValue* v) { v->set_s(value, length); });
}
void TF_SetAttrStringList(TF_OperationDescription* d, const char* attr, const void* const* values, const size_t* lengths, int num_values) {
  SetAttr(d, attr, [&](AttrValue* v) {
    v->mutable_list();
    for (int i = 0; i < num_values; ++i) v->mutable_list()->add_s(values[i], lengths[i]);
  });
}
void TF_SetAttrInt(TF_OperationDescription* d, const char* attr, int64_t value) {
  SetAttr(d, attr, [&](AttrValue* v) { v->set_i(value); });
}
void TF_SetAttrIntList(TF_OperationDescription* d, const char* attr, const int64_t* values, int n) {
  SetAttr(d, attr, [&](AttrValue* v) { v->mutable_list()->mutable_i()->Add(values, values + n); });
}
void TF_SetAttrFloat(TF_OperationDescription* d, const char* attr, float value) {
  SetAttr(d, attr, [&](AttrValue* v) { v->set_f(value); });
}
void TF_SetAttrFloatList(TF_OperationDescription* d, const char* attr, const float* values, int n) {
  SetAttr(d, attr, [&](AttrValue* v) { v->mutable_list()->mutable_f()->Add(values, values + n); });
}
void TF_SetAttrBool(TF_OperationDescription* d, const char* attr, unsigned char value) {
  SetAttr(d, attr, [&](AttrValue* v) { v->set_b(value != 0); });
}
void TF_SetAttrBoolList(TF_OperationDescription* d, const char* attr, const unsigned char* values, int n) {
  SetAttr(d, attr, [&](AttrValue* v) {
    v->mutable_list();
    for (int i = 0; i < n; ++i) v->mutable_list()->add_b(values[i] != 0);
  });
}
void TF_SetAttrType(TF_OperationDescription* d, const char* attr, TF_DataType value) {
  SetAttr(d, attr, [&](AttrValue* v) { v->set_type(static_cast<thalweg::proto::DataType>(value)); });
}
void TF_SetAttrTypeList(TF_OperationDescription* d, const char* attr, const TF_DataType* values, int n) {
  SetAttr(d, attr, [&](AttrValue* v) {
    v->mutable_list();
    for (int i = 0; i < n; ++i) v->mutable_list()->add_type(static_cast<thalweg::proto::DataType>(values[i]));
  });
}
void TF_SetAttrPlaceholder(TF_OperationDescription* d, const char* attr, const char* placeholder) {
  SetAttr(d, attr, [&](AttrValue* v) { v->set_placeholder(placeholder); });
}
void TF_SetAttrFuncName(TF_OperationDescription* d, const char* attr, const char* value, size_t length) {
  SetAttr(d, attr, [&](AttrValue* v) { v->mutable_func()->set_name(value, length); });
}
void TF_SetAttrShape(TF_OperationDescription* d, const char* attr, const int64_t* dims, int num_dims) {
  SetAttr(d, attr, [&](AttrValue* v) { SetShape(dims, num_dims, v->mutable_shape()); });
}
void TF_SetAttrShapeList(TF_OperationDescription* d, const char* attr, const int64_t* const* dims, const int* num_dims, int num_shapes) {
  SetAttr(d, attr, [&](AttrValue* v) {
    v->mutable_list();
    for (int i = 0; i < num_shapes; ++i) SetShape(dims[i], num_dims[i], v->mutable_list()->add_shape());
  });
}

void TF_SetAttrTensorShapeProto(TF_OperationDescription* d, const char* attr, const void* proto, size_t proto_len, TF_Status* status) {
  Guard(status, [&] {
    AttrValue value;
    Parse(proto, proto_len, "TensorShapeProto", value.mutable_shape());
    d->attrs[attr] = std::move(value);
  });
}
void TF_SetAttrTensorShapeProtoList(TF_OperationDescription* d, const char* attr, const void* const* protos, const size_t* proto_lens,
                                    int num_shapes, TF_Status* status) {
  Guard(status, [&] {
    AttrValue value;
    value.mutable_list();
    for (int i = 0; i < num_shapes; ++i) Parse(protos[i], proto_lens[i], "TensorShapeProto", value.mutable_list()->add_shape());
    d->attrs[attr] = std::move(value);
  });
}

static void SetTensors(TF_OperationDescription* d, const char* attr, TF_Tensor* const* values, int n, bool list, TF_Status* status) {
  Guard(status, [&] {
    std::vector<TensorRef> tensors;
    for (int i = 0; i < n; ++i) {
      if (!values[i]) Fail(TF_INVALID_ARGUMENT, "the tensor for attribute '", attr, "' is NULL");
      const TF_Tensor& t = *values[i];
      tensors.push_back(ToThalweg(t));
      if (t.type == TF_STRING) continue;
      // The client may change its memory later, and the graph may not.
      tw_tensor* copy = nullptr;
      Check(tw_tensor_create_copy(t.type, t.dims.data(), static_cast<uint32_t>(t.dims.size()), t.memory->data, t.memory->bytes, &copy));
      tensors.back().reset(copy);
    }
    d->tensors[attr] = std::move(tensors);
    d->tensor_lists[attr] = list;
  });
}
void TF_SetAttrTensor(TF_OperationDescription* d, const char* attr, TF_Tensor* value, TF_Status* status) {
  SetTensors(d, attr, &value, 1, false, status);
}
void TF_SetAttrTensorList(TF_OperationDescription* d, const char* attr, TF_Tensor* const* values, int n, TF_Status* status) {
  SetTensors(d, attr, values, n, true, status);
}

void TF_SetAttrValueProto(TF_OperationDescription* d, const char* attr, const void* proto, size_t proto_len, TF_Status* status) {
  Guard(status, [&] {
    AttrValue value;
    Parse(proto, proto_len, "AttrValue proto", &value);
    SetAttr(d, attr, [&](AttrValue* v) { *v = value; });
  });
}

TF_Operation* TF_FinishOperationLocked(TF_OperationDescription* d, TF_Status* status) {
  const std::unique_ptr<TF_OperationDescription> owner(d);
  return Guard(status, [&] { return Finish(d); });
}
TF_Operation* TF_FinishOperation(TF_OperationDescription* d, TF_Status* status) { return TF_FinishOperationLocked(d, status); }
