// The functions by which clients read operations: names, edges, attributes.
#include <algorithm>
#include <cstring>

#include "builder.h"
#include "graph.h"
#include "ops.h"
#include "tensor.h"

using namespace thalweg::tf;
using thalweg::proto::AttrValue;
namespace proto = thalweg::proto;

const char* TF_OperationName(TF_Operation* oper) { return tw_operation_name(oper->op); }

const char* TF_OperationOpType(TF_Operation* oper) {
  return Guard(nullptr, [&] {
    const std::lock_guard lock(oper->graph->mu);
    const std::string type = tw_operation_type(oper->op);
    // An imported call has the name of its function in the message only.
    if (oper->function.empty() && type.ends_with("PartitionedCall")) {
      const std::string written = NodeOf(*oper).op();
      if (written != type) oper->function = written;
    }
    return oper->function.empty() ? tw_operation_type(oper->op) : oper->function.c_str();
  });
}

const char* TF_OperationDevice(TF_Operation* oper) { return tw_operation_device(oper->op); }
int TF_OperationNumOutputs(TF_Operation* oper) { return static_cast<int>(tw_operation_output_count(oper->op)); }
int TF_OperationNumInputs(TF_Operation* oper) { return static_cast<int>(tw_operation_input_count(oper->op)); }

static TF_DataType TypeOf(TF_Graph* graph, tw_output value) {
  return Guard(nullptr, [&] {
    uint32_t type = 0;
    Check(tw_graph_describe(graph->graph, value, &type, nullptr));
    return static_cast<TF_DataType>(type);
  });
}
TF_DataType TF_OperationOutputType(TF_Output out) {
  return TypeOf(out.oper->graph, tw_operation_output(out.oper->op, static_cast<uint32_t>(out.index)));
}
TF_DataType TF_OperationInputType(TF_Input in) {
  return TypeOf(in.oper->graph, tw_operation_input(in.oper->op, static_cast<uint32_t>(in.index)));
}

static int ListLength(TF_Operation* oper, const char* name, bool input, TF_Status* status) {
  const int length = Guard(status, [&] {
    const proto::OpDef op = SignatureOf(*oper);
    for (const auto& arg : input ? op.input_arg() : op.output_arg()) {
      if (arg.name() == name) return static_cast<int>(Length(arg, NodeOf(*oper)));
    }
    Fail(TF_INVALID_ARGUMENT, input ? "Input" : "Output", " arg '", name, "' not found");
  });
  return status && status->code != TF_OK ? -1 : length;
}
int TF_OperationOutputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status) {
  return ListLength(oper, arg_name, false, status);
}
int TF_OperationInputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status) {
  return ListLength(oper, arg_name, true, status);
}

TF_Output TF_OperationInput(TF_Input in) {
  return Guard(nullptr,
               [&]() -> TF_Output { return in.oper->graph->Outside(tw_operation_input(in.oper->op, static_cast<uint32_t>(in.index))); });
}
void TF_OperationAllInputs(TF_Operation* oper, TF_Output* inputs, int max_inputs) {
  const int n = std::min(TF_OperationNumInputs(oper), max_inputs);
  for (int i = 0; i < n; ++i) inputs[i] = TF_OperationInput({oper, i});
}

int TF_OperationOutputNumConsumers(TF_Output out) { return TF_OperationOutputConsumers(out, nullptr, 0); }
int TF_OperationOutputConsumers(TF_Output out, TF_Input* consumers, int max_consumers) {
  return Guard(nullptr, [&] {
    TF_Graph& graph = *out.oper->graph;
    const std::lock_guard lock(graph.mu);
    graph.Update();
    const auto at = graph.consumers.find(tw_operation_output(out.oper->op, static_cast<uint32_t>(out.index)));
    if (at == graph.consumers.end()) return 0;
    const auto n = static_cast<int>(at->second.size());
    std::copy_n(at->second.begin(), std::min(n, max_consumers), consumers);
    return n;
  });
}

int TF_OperationNumControlInputs(TF_Operation* oper) { return static_cast<int>(tw_operation_control_count(oper->op)); }
int TF_OperationGetControlInputs(TF_Operation* oper, TF_Operation** inputs, int max_inputs) {
  const int n = TF_OperationNumControlInputs(oper);
  for (int i = 0; i < std::min(n, max_inputs); ++i) inputs[i] = oper->graph->Find(tw_operation_control(oper->op, static_cast<uint32_t>(i)));
  return n;
}
int TF_OperationNumControlOutputs(TF_Operation* oper) { return TF_OperationGetControlOutputs(oper, nullptr, 0); }
int TF_OperationGetControlOutputs(TF_Operation* oper, TF_Operation** outputs, int max_outputs) {
  return Guard(nullptr, [&] {
    const std::lock_guard lock(oper->graph->mu);
    oper->graph->Update();
    const auto at = oper->graph->control_outputs.find(oper->op);
    if (at == oper->graph->control_outputs.end()) return 0;
    const auto n = static_cast<int>(at->second.size());
    std::copy_n(at->second.begin(), std::min(n, max_outputs), outputs);
    return n;
  });
}

void TF_OperationToNodeDef(TF_Operation* oper, TF_Buffer* output, TF_Status* status) {
  Guard(status, [&] { Fill(output, Serialise(NodeOf(*oper))); });
}

// ---- Attributes ----

namespace {

AttrValue AttrOf(TF_Operation* oper, const char* name) {
  const proto::NodeDef node = NodeOf(*oper);
  const auto at = node.attr().find(OrEmpty(name));
  if (at == node.attr().end()) Fail(TF_INVALID_ARGUMENT, "Operation '", node.name(), "' has no attr named '", OrEmpty(name), "'.");
  return at->second;
}

// Refuses an attribute of another kind.
AttrValue AttrOf(TF_Operation* oper, const char* name, AttrValue::ValueCase kind, const char* kind_name) {
  const proto::NodeDef node = NodeOf(*oper);
  const auto at = node.attr().find(OrEmpty(name));
  if (at == node.attr().end()) Fail(TF_NOT_FOUND, "No attr named '", OrEmpty(name), "' in NodeDef: '", node.name(), "'");
  AttrValue value = at->second;
  if (value.value_case() != kind) Fail(TF_INVALID_ARGUMENT, "Value for '", name, "' is not a ", kind_name, ".");
  return value;
}
AttrValue ListOf(TF_Operation* oper, const char* name) { return AttrOf(oper, name, AttrValue::kList, "list"); }

int64_t ListSize(const AttrValue::ListValue& list) {
  return int64_t{list.s_size()} + list.i_size() + list.f_size() + list.b_size() + list.type_size() + list.shape_size() +
         list.tensor_size() + list.func_size();
}

TF_AttrType KindOf(const AttrValue::ListValue& list, TF_Operation* oper, const char* name) {
  if (list.s_size()) return TF_ATTR_STRING;
  if (list.i_size()) return TF_ATTR_INT;
  if (list.f_size()) return TF_ATTR_FLOAT;
  if (list.b_size()) return TF_ATTR_BOOL;
  if (list.type_size()) return TF_ATTR_TYPE;
  if (list.shape_size()) return TF_ATTR_SHAPE;
  if (list.tensor_size()) return TF_ATTR_TENSOR;
  if (list.func_size()) return TF_ATTR_FUNC;
  const proto::OpDef op = SignatureOf(*oper);
  const proto::OpDef::AttrDef* attr = FindAttr(op, name);  // an empty list
  const std::string kind = attr ? attr->type() : "";
  if (kind == "list(int)") return TF_ATTR_INT;
  if (kind == "list(float)") return TF_ATTR_FLOAT;
  if (kind == "list(bool)") return TF_ATTR_BOOL;
  if (kind == "list(type)") return TF_ATTR_TYPE;
  if (kind == "list(shape)") return TF_ATTR_SHAPE;
  if (kind == "list(tensor)") return TF_ATTR_TENSOR;
  if (kind == "list(func)") return TF_ATTR_FUNC;
  return TF_ATTR_STRING;
}

int64_t Rank(const proto::TensorShapeProto& shape) { return shape.unknown_rank() ? -1 : shape.dim_size(); }

template <class List, class T>
void CopyList(const List& list, T* values, int max_values) {
  for (int i = 0; i < std::min(list.size(), max_values); ++i) values[i] = static_cast<T>(list.Get(i));
}

}  // namespace

TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation* oper, const char* name, TF_Status* status) {
  return Guard(status, [&] {
    const AttrValue value = AttrOf(oper, name);
    TF_AttrMetadata m{};
    m.list_size = m.total_size = -1;
    switch (value.value_case()) {
      case AttrValue::kS:
        m.type = TF_ATTR_STRING;
        m.total_size = static_cast<int64_t>(value.s().size());
        break;
      case AttrValue::kI: m.type = TF_ATTR_INT; break;
      case AttrValue::kF: m.type = TF_ATTR_FLOAT; break;
      case AttrValue::kB: m.type = TF_ATTR_BOOL; break;
      case AttrValue::kType: m.type = TF_ATTR_TYPE; break;
      case AttrValue::kShape:
        m.type = TF_ATTR_SHAPE;
        m.total_size = Rank(value.shape());
        break;
      case AttrValue::kTensor: m.type = TF_ATTR_TENSOR; break;
      case AttrValue::kPlaceholder: m.type = TF_ATTR_PLACEHOLDER; break;
      case AttrValue::kFunc: m.type = TF_ATTR_FUNC; break;
      case AttrValue::kList:
        m.is_list = 1;
        m.list_size = ListSize(value.list());
        m.type = KindOf(value.list(), oper, name);
        if (m.type == TF_ATTR_STRING) {
          m.total_size = 0;
          for (const std::string& s : value.list().s()) m.total_size += static_cast<int64_t>(s.size());
        } else if (m.type == TF_ATTR_SHAPE) {
          m.total_size = 0;
          for (const auto& s : value.list().shape()) m.total_size += std::max<int64_t>(Rank(s), 0);
        }
        break;
      default: Fail(TF_INVALID_ARGUMENT, "Attribute '", name, "' has no value set");
    }
    return m;
  });
}

void TF_OperationGetAttrString(TF_Operation* oper, const char* name, void* value, size_t max_length, TF_Status* status) {
  Guard(status, [&] {
    const AttrValue attr = AttrOf(oper, name, AttrValue::kS, "string");
    if (max_length > 0) std::memcpy(value, attr.s().data(), std::min(attr.s().size(), max_length));
  });
}

void TF_OperationGetAttrStringList(TF_Operation* oper, const char* name, void** values, size_t* lengths, int max_values, void* storage,
                                   size_t storage_size, TF_Status* status) {
  Guard(status, [&] {
    const AttrValue attr = ListOf(oper, name);
    auto* p = static_cast<char*>(storage);
    for (int i = 0; i < std::min(attr.list().s_size(), max_values); ++i) {
      const std::string& s = attr.list().s(i);
      if (s.size() > storage_size - static_cast<size_t>(p - static_cast<char*>(storage))) {
        Fail(TF_INVALID_ARGUMENT, "Not enough storage to hold the requested list of strings");
      }
      values[i] = p;
      lengths[i] = s.size();
      if (!s.empty()) std::memcpy(p, s.data(), s.size());
      p += s.size();
    }
  });
}

void TF_OperationGetAttrInt(TF_Operation* oper, const char* name, int64_t* value, TF_Status* status) {
  Guard(status, [&] { *value = AttrOf(oper, name, AttrValue::kI, "int").i(); });
}
void TF_OperationGetAttrFloat(TF_Operation* oper, const char* name, float* value, TF_Status* status) {
  Guard(status, [&] { *value = AttrOf(oper, name, AttrValue::kF, "float").f(); });
}
void TF_OperationGetAttrBool(TF_Operation* oper, const char* name, unsigned char* value, TF_Status* status) {
  Guard(status, [&] { *value = AttrOf(oper, name, AttrValue::kB, "bool").b(); });
}
void TF_OperationGetAttrType(TF_Operation* oper, const char* name, TF_DataType* value, TF_Status* status) {
  Guard(status, [&] { *value = static_cast<TF_DataType>(AttrOf(oper, name, AttrValue::kType, "type").type()); });
}
void TF_OperationGetAttrIntList(TF_Operation* oper, const char* name, int64_t* values, int max_values, TF_Status* status) {
  Guard(status, [&] { CopyList(ListOf(oper, name).list().i(), values, max_values); });
}
void TF_OperationGetAttrFloatList(TF_Operation* oper, const char* name, float* values, int max_values, TF_Status* status) {
  Guard(status, [&] { CopyList(ListOf(oper, name).list().f(), values, max_values); });
}
void TF_OperationGetAttrBoolList(TF_Operation* oper, const char* name, unsigned char* values, int max_values, TF_Status* status) {
  Guard(status, [&] { CopyList(ListOf(oper, name).list().b(), values, max_values); });
}
void TF_OperationGetAttrTypeList(TF_Operation* oper, const char* name, TF_DataType* values, int max_values, TF_Status* status) {
  Guard(status, [&] { CopyList(ListOf(oper, name).list().type(), values, max_values); });
}

void TF_OperationGetAttrShape(TF_Operation* oper, const char* name, int64_t* value, int num_dims, TF_Status* status) {
  Guard(status, [&] {
    const AttrValue attr = AttrOf(oper, name, AttrValue::kShape, "shape");
    for (int i = 0; i < std::min(attr.shape().dim_size(), num_dims); ++i) value[i] = attr.shape().dim(i).size();
  });
}
void TF_OperationGetAttrShapeList(TF_Operation* oper, const char* name, int64_t** dims, int* num_dims, int num_shapes, int64_t* storage,
                                  int storage_size, TF_Status* status) {
  Guard(status, [&] {
    const AttrValue attr = ListOf(oper, name);
    int used = 0;
    for (int i = 0; i < std::min(attr.list().shape_size(), num_shapes); ++i) {
      const auto& shape = attr.list().shape(i);
      num_dims[i] = static_cast<int>(Rank(shape));
      dims[i] = nullptr;
      if (num_dims[i] < 0) continue;
      if (num_dims[i] > storage_size - used) Fail(TF_INVALID_ARGUMENT, "Not enough storage to hold the requested list of shapes");
      dims[i] = storage + used;
      for (const auto& d : shape.dim()) storage[used++] = d.size();
    }
  });
}
void TF_OperationGetAttrTensorShapeProto(TF_Operation* oper, const char* name, TF_Buffer* value, TF_Status* status) {
  Guard(status, [&] { Fill(value, Serialise(AttrOf(oper, name, AttrValue::kShape, "shape").shape())); });
}
void TF_OperationGetAttrTensorShapeProtoList(TF_Operation* oper, const char* name, TF_Buffer** values, int max_values, TF_Status* status) {
  Guard(status, [&] {
    const AttrValue attr = ListOf(oper, name);
    for (int i = 0; i < std::min(attr.list().shape_size(), max_values); ++i) values[i] = NewBuffer(Serialise(attr.list().shape(i)));
  });
}

// The tensors of an attribute, which share memory with the graph.
static void GetTensors(TF_Operation* oper, const char* name, bool list, TF_Tensor** values, int max_values) {
  uint32_t kind = 0, is_list = 0, count = 0;
  const void* found = nullptr;
  const AttrValue attr = AttrOf(oper, name);
  if (attr.value_case() != (list ? AttrValue::kList : AttrValue::kTensor)) {
    Fail(TF_INVALID_ARGUMENT, "Value for '", name, list ? "' is not a list." : "' is not a tensor.");
  }
  if (name[0] == '_') {
    const int n = list ? attr.list().tensor_size() : 1;
    for (int i = 0; i < std::min(n, max_values); ++i) values[i] = FromThalweg(Decode(list ? attr.list().tensor(i) : attr.tensor()));
    return;
  }
  Check(tw_operation_attr(oper->op, name, &kind, &is_list, &count, &found));
  if (kind != TW_ATTR_TENSOR) Fail(TF_INVALID_ARGUMENT, "Value for '", name, "' is not a tensor.");
  for (int i = 0; i < std::min(static_cast<int>(count), max_values); ++i) {
    tw_tensor* tensor = static_cast<tw_tensor* const*>(found)[i];
    tw_tensor_retain(tensor);
    values[i] = FromThalweg(TensorRef(tensor));
  }
}
void TF_OperationGetAttrTensor(TF_Operation* oper, const char* name, TF_Tensor** value, TF_Status* status) {
  Guard(status, [&] {
    *value = nullptr;
    GetTensors(oper, name, false, value, 1);
  });
}
void TF_OperationGetAttrTensorList(TF_Operation* oper, const char* name, TF_Tensor** values, int max_values, TF_Status* status) {
  Guard(status, [&] { GetTensors(oper, name, true, values, max_values); });
}
void TF_OperationGetAttrValueProto(TF_Operation* oper, const char* name, TF_Buffer* output, TF_Status* status) {
  Guard(status, [&] { Fill(output, Serialise(AttrOf(oper, name))); });
}

static std::vector<std::string> AttrNames(TF_Operation* oper) {
  const proto::NodeDef node = NodeOf(*oper);
  std::vector<std::string> names;
  for (const auto& [name, value] : node.attr()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}
int TF_OperationGetNumAttrs(TF_Operation* oper) {
  return Guard(nullptr, [&] { return static_cast<int>(AttrNames(oper).size()); });
}
int TF_OperationGetAttrNameLength(TF_Operation* oper, int i) {
  return Guard(nullptr, [&] { return static_cast<int>(AttrNames(oper).at(static_cast<size_t>(i)).size()); });
}
void TF_OperationGetAttrName(TF_Operation* oper, int i, char* output, TF_Status* status) {
  Guard(status, [&] {
    const std::vector<std::string> names = AttrNames(oper);
    if (i < 0 || static_cast<size_t>(i) >= names.size())
      Fail(TF_OUT_OF_RANGE, "Operation only has ", std::to_string(names.size()), " attributes, can't get the ", std::to_string(i), "th");
    std::memcpy(output, names[static_cast<size_t>(i)].c_str(), names[static_cast<size_t>(i)].size() + 1);
  });
}
