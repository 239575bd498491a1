// The eager API: operations and their attributes. A call of a function, and of an op with functions as attributes, goes through a graph
// of its own, because an eager call of Thalweg takes no functions.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "eager.h"
#include "framework/proto/attr_value.pb.h"
#include "graph.h"
#include "ops.h"
#include "session.h"
#include "tensor.h"
#include "tensorflow/c/eager/c_api_experimental.h"

using namespace thalweg::tf;
namespace proto = thalweg::proto;
using proto::AttrValue;

// The attributes of an operation, as the client hands them from one operation to another.
struct TFE_OpAttrs {
  std::string name;  // of the op
  std::map<std::string, AttrValue> attrs;
  std::map<std::string, TensorRef> tensors;
};

struct TFE_Op {
  TFE_Context* context;
  std::string name, device;
  std::vector<TensorRef> inputs;
  std::vector<size_t> counts;  // inputs of each argument
  bool infers = true;          // whether `counts` is right: an argument of many values must be added as a list
  std::map<std::string, AttrValue> attrs;
  std::map<std::string, TensorRef> tensors;
  TFE_OpAttrs given;  // what TFE_OpGetAttrs returned last
};

namespace {

// The values of an attribute as an eager call takes them; lives as long as the call.
struct Values {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<uint8_t> bools;
  std::vector<tw_string> strings;
  std::vector<uint32_t> types;
  std::vector<std::vector<int64_t>> dims;
  std::vector<tw_shape> shapes;

  void Shape(const proto::TensorShapeProto& s) {
    std::vector<int64_t> d;
    for (const auto& dim : s.dim()) d.push_back(dim.size());
    dims.push_back(std::move(d));
    shapes.push_back({nullptr, s.unknown_rank() ? -1 : s.dim_size(), 0});
  }
  void Fill(const AttrValue& v, const std::string& kind, tw_eager_attr* out) {
    list = v.has_list() ? v.list() : AsList(v);
    out->is_list = v.has_list();
    for (const std::string& s : list.s()) strings.push_back({s.data(), s.size()});
    ints.assign(list.i().begin(), list.i().end());
    floats.assign(list.f().begin(), list.f().end());
    bools.assign(list.b().begin(), list.b().end());
    for (int t : list.type()) types.push_back(static_cast<uint32_t>(t));
    for (const auto& s : list.shape()) Shape(s);
    for (size_t i = 0; i < shapes.size(); ++i) shapes[i].dims = dims[i].data();
    if (kind == "string") Set(TW_ATTR_STRING, strings, out);
    if (kind == "int") Set(TW_ATTR_INT, ints, out);
    if (kind == "float") Set(TW_ATTR_FLOAT, floats, out);
    if (kind == "bool") Set(TW_ATTR_BOOL, bools, out);
    if (kind == "type") Set(TW_ATTR_TYPE, types, out);
    if (kind == "shape") Set(TW_ATTR_SHAPE, shapes, out);
  }

 private:
  template <class T>
  static void Set(uint32_t kind, const std::vector<T>& list, tw_eager_attr* out) {
    out->kind = kind;
    out->values = list.data();
    out->count = static_cast<uint32_t>(list.size());
  }
  static AttrValue::ListValue AsList(const AttrValue& v) {
    AttrValue::ListValue list;
    switch (v.value_case()) {
      case AttrValue::kS: list.add_s(v.s()); break;
      case AttrValue::kI: list.add_i(v.i()); break;
      case AttrValue::kF: list.add_f(v.f()); break;
      case AttrValue::kB: list.add_b(v.b()); break;
      case AttrValue::kType: list.add_type(v.type()); break;
      case AttrValue::kShape: *list.add_shape() = v.shape(); break;
      default: Fail(TF_UNIMPLEMENTED, "an eager call with an attribute of this kind");
    }
    return list;
  }
  AttrValue::ListValue list;  // the strings' bytes
};

std::string KindOf(const proto::OpDef& op, const std::string& attr) {
  const proto::OpDef::AttrDef* def = FindAttr(op, attr);
  if (!def) Fail(TF_INVALID_ARGUMENT, "Attr name '", attr, "' is not in op '", op.name(), "'");
  const std::string& type = def->type();
  return type.rfind("list(", 0) == 0 ? type.substr(5, type.size() - 6) : type;
}

bool HasFunctions(const TFE_Op& op) {
  return std::any_of(op.attrs.begin(), op.attrs.end(),
                     [](const auto& a) { return a.second.has_func() || (a.second.has_list() && a.second.list().func_size() > 0); });
}

// The name of a variable. As in TensorFlow, all without a name are one, which has the name of its op, and kAnonymous makes a new one with
// each call; it lives as long as its context.
constexpr std::string_view kAnonymous = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";
AttrValue VariableName(const TFE_Op& op) {
  static std::atomic<uint64_t> last{0};
  const auto given = op.attrs.find("shared_name");
  AttrValue name;
  name.set_s(given == op.attrs.end() || given->second.s().empty() ? op.name : given->second.s());
  if (name.s() == kAnonymous) name.set_s("anonymous_" + std::to_string(++last));
  return name;
}

std::vector<TensorRef> RunOp(TFE_Op* op, const proto::OpDef& def) {
  const bool variable = op->name == "VarHandleOp";
  if (variable && !op->attrs.count("shared_name")) op->attrs["shared_name"].set_s("");
  std::vector<tw_tensor*> inputs;
  for (const TensorRef& t : op->inputs) inputs.push_back(t.get());
  std::vector<tw_eager_attr> attrs;
  std::vector<std::unique_ptr<Values>> values;
  for (const auto& [name, value] : op->attrs) {
    if (name[0] == '_') continue;
    tw_eager_attr& attr = attrs.emplace_back(tw_eager_attr{name.c_str(), nullptr, 0, 0, 0, 0});
    values.push_back(std::make_unique<Values>());
    values.back()->Fill(variable && name == "shared_name" ? VariableName(*op) : value, KindOf(def, name), &attr);
  }
  std::vector<tw_tensor*> tensors;
  tensors.reserve(op->tensors.size());
  for (const auto& [name, tensor] : op->tensors) {
    tensors.push_back(tensor.get());
    attrs.push_back({name.c_str(), &tensors.back(), TW_ATTR_TENSOR, 0, 1, 0});
  }
  // A list takes its length from an attribute or the inputs; the call says if the room is too small.
  size_t room = 64;
  for (const auto& [name, value] : op->attrs) {
    if (value.has_i() && value.i() > 0 && value.i() < 100000) room = std::max(room, static_cast<size_t>(value.i()) + 64);
    if (value.has_list()) room = std::max(room, static_cast<size_t>(value.list().type_size()) + 64);
  }
  std::vector<tw_tensor*> outputs(room + op->inputs.size());
  tw_eager_call call{};
  call.size = sizeof call;
  call.op = op->name.c_str();
  call.inputs = inputs.data();
  call.attrs = attrs.data();
  call.device = op->device.empty() ? nullptr : op->device.c_str();
  call.n_inputs = static_cast<uint32_t>(inputs.size());
  call.n_attrs = static_cast<uint32_t>(attrs.size());
  call.n_outputs = static_cast<uint32_t>(outputs.size());
  Check(tw_eager_run(op->context->eager.get(), &call, outputs.data()));
  std::vector<TensorRef> results;
  for (tw_tensor* t : outputs) {
    if (t) results.emplace_back(t);
  }
  return results;
}

// Runs the op, or the function, as the only operation of a graph.
std::vector<TensorRef> RunGraph(TFE_Op* op) {
  TF_Graph graph;
  {
    const std::lock_guard lock(op->context->mu);
    for (const auto& [name, def] : op->context->functions) AddFunction(&graph, def);
  }
  std::unique_ptr<TF_Status, void (*)(TF_Status*)> status(TF_NewStatus(), TF_DeleteStatus);
  const auto check = [&] {
    if (status->code != TF_OK) throw Error{status->code, status->message};
  };
  std::vector<TF_Output> feeds;
  for (size_t i = 0; i < op->inputs.size(); ++i) {
    TF_OperationDescription* d = TF_NewOperation(&graph, "Placeholder", ("input_" + std::to_string(i)).c_str());
    TF_SetAttrType(d, "dtype", static_cast<TF_DataType>(tw_tensor_dtype(op->inputs[i].get())));
    feeds.push_back({TF_FinishOperation(d, status.get()), 0});
    check();
  }
  TF_OperationDescription* d = TF_NewOperation(&graph, op->name.c_str(), "call");
  for (const TF_Output& feed : feeds) TF_AddInput(d, feed);
  for (const auto& [name, value] : op->attrs) {
    const std::string bytes = Serialise(value);
    TF_SetAttrValueProto(d, name.c_str(), bytes.data(), bytes.size(), status.get());
  }
  TF_Operation* call = TF_FinishOperation(d, status.get());
  check();
  std::vector<TF_Output> fetches;
  for (int i = 0; i < TF_OperationNumOutputs(call); ++i) fetches.push_back({call, i});
  const std::string container = "container=" + op->context->container;
  const char* options[] = {"trust_imported=true", container.c_str()};
  tw_session* session = nullptr;
  Check(tw_session_create(graph.graph, options, 2, &session));
  const SessionRef owner(session);
  Step step(graph, feeds.data(), static_cast<int>(feeds.size()), fetches.data(), static_cast<int>(fetches.size()), &call, 1);
  for (const TensorRef& t : op->inputs) step.fed.push_back(Share(t).release());
  Check(tw_session_run(session, &step.signature, step.fed.data(), nullptr, step.fetched.data()));
  std::vector<TensorRef> results;
  for (tw_tensor*& t : step.fetched) results.emplace_back(std::exchange(t, nullptr));
  return results;
}

template <class F>
void SetAttr(TFE_Op* op, const char* name, F&& fill) {
  AttrValue value;
  fill(&value);
  op->attrs[name] = std::move(value);
}

void FillShape(const int64_t* dims, int num_dims, proto::TensorShapeProto* shape) {
  if (num_dims < 0) shape->set_unknown_rank(true);
  for (int i = 0; i < num_dims; ++i) shape->add_dim()->set_size(dims[i]);
}

}  // namespace

static void Begin(TFE_Op* op, TFE_Context* context, const char* name) {
  const std::string wanted = OrEmpty(name);
  if (!TFE_ContextHasFunction(context, wanted.c_str())) NeedOp(wanted);
  op->context = context;
  op->name = wanted;
}
TFE_Op* TFE_NewOp(TFE_Context* context, const char* name, TF_Status* status) {
  return Guard(status, [&] {
    auto op = std::make_unique<TFE_Op>();
    Begin(op.get(), context, name);
    return op.release();
  });
}
void TFE_OpReset(TFE_Op* op, const char* name, const char* device, TF_Status* status) {
  Guard(status, [&] {
    op->inputs.clear();
    op->counts.clear();
    op->infers = true;
    op->attrs.clear();
    op->tensors.clear();
    op->device = OrEmpty(device);
    Begin(op, op->context, name);
  });
}
void TFE_DeleteOp(TFE_Op* op) { delete op; }
const char* TFE_OpGetName(const TFE_Op* op, TF_Status* status) {
  return Guard(status, [&] { return op->name.c_str(); });
}
TFE_Context* TFE_OpGetContext(const TFE_Op* op, TF_Status* status) {
  return Guard(status, [&] { return op->context; });
}

void TFE_OpSetDevice(TFE_Op* op, const char* device, TF_Status* status) {
  Guard(status, [&] { op->device = FullName(*op->context, OrEmpty(device)); });
}
const char* TFE_OpGetDevice(const TFE_Op* op, TF_Status* status) {
  return Guard(status, [&] { return op->device.c_str(); });
}

static bool Many(const proto::OpDef::ArgDef& arg) { return !arg.number_attr().empty() || !arg.type_list_attr().empty(); }

// Notes the inputs of the next argument.
static void Count(TFE_Op* op, size_t inputs, bool list) {
  const proto::OpDef* def = FindOp(op->name);
  const auto next = static_cast<int>(op->counts.size());
  op->infers = op->infers && def && next < def->input_arg_size() && Many(def->input_arg(next)) == list;
  op->counts.push_back(inputs);
}
void TFE_OpAddInput(TFE_Op* op, TFE_TensorHandle* input, TF_Status* status) {
  Guard(status, [&] {
    Need(input);
    op->inputs.push_back(Share(input->tensor));
    Count(op, 1, false);
  });
}
void TFE_OpAddInputList(TFE_Op* op, TFE_TensorHandle** inputs, int num_inputs, TF_Status* status) {
  Guard(status, [&] {
    for (int i = 0; i < num_inputs; ++i) Need(inputs[i]);
    for (int i = 0; i < num_inputs; ++i) op->inputs.push_back(Share(inputs[i]->tensor));
    Count(op, static_cast<size_t>(num_inputs), true);
  });
}
int TFE_OpGetFlatInputCount(const TFE_Op* op, TF_Status* status) {
  return Guard(status, [&] { return static_cast<int>(op->inputs.size()); });
}
TFE_TensorHandle* TFE_OpGetFlatInput(const TFE_Op* op, int index, TF_Status* status) {
  return Guard(status, [&] {
    if (index < 0 || static_cast<size_t>(index) >= op->inputs.size()) Fail(TF_OUT_OF_RANGE, "there is no input ", std::to_string(index));
    return NewHandle(Share(op->inputs[static_cast<size_t>(index)]));
  });
}

static TF_AttrType AttrTypeOf(const proto::OpDef& op, const char* attr, unsigned char* is_list) {
  static const std::map<std::string, TF_AttrType> kinds = {{"string", TF_ATTR_STRING}, {"int", TF_ATTR_INT},   {"float", TF_ATTR_FLOAT},
                                                           {"bool", TF_ATTR_BOOL},     {"type", TF_ATTR_TYPE}, {"shape", TF_ATTR_SHAPE},
                                                           {"tensor", TF_ATTR_TENSOR}, {"func", TF_ATTR_FUNC}};
  const TF_AttrType kind = kinds.at(KindOf(op, OrEmpty(attr)));
  *is_list = FindAttr(op, attr)->type().rfind("list(", 0) == 0;
  return kind;
}
TF_AttrType TFE_OpGetAttrType(TFE_Op* op, const char* attr, unsigned char* is_list, TF_Status* status) {
  return Guard(status, [&] { return AttrTypeOf(NeedOp(op->name), attr, is_list); });
}
TF_AttrType TFE_OpNameGetAttrType(TFE_Context*, const char* name, const char* attr, unsigned char* is_list, TF_Status* status) {
  return Guard(status, [&] { return AttrTypeOf(NeedOp(OrEmpty(name)), attr, is_list); });
}

void TFE_OpSetAttrString(TFE_Op* op, const char* name, const void* value, size_t length) {
  SetAttr(op, name, [&](AttrValue* v) { v->set_s(value, length); });
}
void TFE_OpSetAttrInt(TFE_Op* op, const char* name, int64_t value) {
  SetAttr(op, name, [&](AttrValue* v) { v->set_i(value); });
}
void TFE_OpSetAttrFloat(TFE_Op* op, const char* name, float value) {
  SetAttr(op, name, [&](AttrValue* v) { v->set_f(value); });
}
void TFE_OpSetAttrBool(TFE_Op* op, const char* name, unsigned char value) {
  SetAttr(op, name, [&](AttrValue* v) { v->set_b(value != 0); });
}
void TFE_OpSetAttrType(TFE_Op* op, const char* name, TF_DataType value) {
  SetAttr(op, name, [&](AttrValue* v) { v->set_type(static_cast<proto::DataType>(value)); });
}
void TFE_OpSetAttrShape(TFE_Op* op, const char* name, const int64_t* dims, const int num_dims, TF_Status* status) {
  Guard(status, [&] { SetAttr(op, name, [&](AttrValue* v) { FillShape(dims, num_dims, v->mutable_shape()); }); });
}
void TFE_OpSetAttrFunction(TFE_Op* op, const char* name, const TFE_Op* value) {
  SetAttr(op, name, [&](AttrValue* v) {
    v->mutable_func()->set_name(value->name);
    for (const auto& [key, attr] : value->attrs) (*v->mutable_func()->mutable_attr())[key] = attr;
  });
}
void TFE_OpSetAttrFunctionName(TFE_Op* op, const char* name, const char* data, size_t length) {
  SetAttr(op, name, [&](AttrValue* v) { v->mutable_func()->set_name(data, length); });
}
void TFE_OpSetAttrTensor(TFE_Op* op, const char* name, TF_Tensor* tensor, TF_Status* status) {
  Guard(status, [&] { op->tensors[name] = ToThalweg(*tensor); });
}
void TFE_OpSetAttrStringList(TFE_Op* op, const char* name, const void* const* values, const size_t* lengths, int n) {
  SetAttr(op, name, [&](AttrValue* v) {
    v->mutable_list();
    for (int i = 0; i < n; ++i) v->mutable_list()->add_s(values[i], lengths[i]);
  });
}
void TFE_OpSetAttrIntList(TFE_Op* op, const char* name, const int64_t* values, int n) {
  SetAttr(op, name, [&](AttrValue* v) { v->mutable_list()->mutable_i()->Add(values, values + n); });
}
void TFE_OpSetAttrFloatList(TFE_Op* op, const char* name, const float* values, int n) {
  SetAttr(op, name, [&](AttrValue* v) { v->mutable_list()->mutable_f()->Add(values, values + n); });
}
void TFE_OpSetAttrBoolList(TFE_Op* op, const char* name, const unsigned char* values, int n) {
  SetAttr(op, name, [&](AttrValue* v) {
    v->mutable_list();
    for (int i = 0; i < n; ++i) v->mutable_list()->add_b(values[i] != 0);
  });
}
void TFE_OpSetAttrTypeList(TFE_Op* op, const char* name, const TF_DataType* values, int n) {
  SetAttr(op, name, [&](AttrValue* v) {
    v->mutable_list();
    for (int i = 0; i < n; ++i) v->mutable_list()->add_type(static_cast<proto::DataType>(values[i]));
  });
}
void TFE_OpSetAttrShapeList(TFE_Op* op, const char* name, const int64_t** dims, const int* num_dims, int n, TF_Status* status) {
  Guard(status, [&] {
    SetAttr(op, name, [&](AttrValue* v) {
      v->mutable_list();
      for (int i = 0; i < n; ++i) FillShape(dims[i], num_dims[i], v->mutable_list()->add_shape());
    });
  });
}
void TFE_OpSetAttrFunctionList(TFE_Op* op, const char* name, const TFE_Op** values, int n) {
  SetAttr(op, name, [&](AttrValue* v) {
    v->mutable_list();
    for (int i = 0; i < n; ++i) v->mutable_list()->add_func()->set_name(values[i]->name);
  });
}
void TFE_OpSetAttrValueProto(const TFE_Op* op, const char* name, const void* bytes, size_t n, TF_Status* status) {
  Guard(status, [&] {
    AttrValue value;
    Parse(bytes, n, "AttrValue proto", &value);
    const_cast<TFE_Op*>(op)->attrs[name] = std::move(value);
  });
}

// The attributes that follow from the inputs.
static std::map<std::string, AttrValue> InferredAttrs(const TFE_Op& op) {
  std::map<std::string, AttrValue> attrs;
  const proto::OpDef* def = op.infers ? FindOp(op.name) : nullptr;
  if (!def) return attrs;
  size_t at = 0;
  for (size_t k = 0; k < op.counts.size(); ++k) {
    const auto& arg = def->input_arg(static_cast<int>(k));
    if (!arg.number_attr().empty()) attrs[arg.number_attr()].set_i(static_cast<int64_t>(op.counts[k]));
    if (!arg.type_list_attr().empty()) attrs[arg.type_list_attr()].mutable_list();
    for (size_t i = 0; i < op.counts[k]; ++i) {
      const auto type = static_cast<proto::DataType>(tw_tensor_dtype(op.inputs[at++].get()));
      if (!arg.type_list_attr().empty()) attrs[arg.type_list_attr()].mutable_list()->add_type(type);
      if (!arg.type_attr().empty()) attrs[arg.type_attr()].set_type(type);
    }
  }
  return attrs;
}

const TFE_OpAttrs* TFE_OpGetAttrs(const TFE_Op* op) {
  return Guard(nullptr, [&]() -> const TFE_OpAttrs* {
    TFE_OpAttrs& given = const_cast<TFE_Op*>(op)->given;
    given = {op->name, op->attrs, {}};
    for (const auto& [name, tensor] : op->tensors) given.tensors.emplace(name, Share(tensor));
    for (auto& [name, value] : InferredAttrs(*op)) given.attrs.emplace(name, std::move(value));
    return &given;
  });
}
void TFE_OpAddAttrs(TFE_Op* op, const TFE_OpAttrs* attrs) {
  for (const auto& [name, value] : attrs->attrs) op->attrs.emplace(name, value);
  for (const auto& [name, tensor] : attrs->tensors) op->tensors.emplace(name, Share(tensor));
}
void TFE_OpAttrsSerialize(const TFE_OpAttrs* attrs, TF_Buffer* buffer, TF_Status* status) {
  Guard(status, [&] {
    proto::NameAttrList list;
    list.set_name(attrs->name);
    for (const auto& [name, value] : attrs->attrs) (*list.mutable_attr())[name] = value;
    for (const auto& [name, tensor] : attrs->tensors) *(*list.mutable_attr())[name].mutable_tensor() = Encode(tensor.get());
    Fill(buffer, Serialise(list));
  });
}

// The number of values of an argument, from the attributes that are set and, for inputs, from the inputs that are there.
static int ArgLength(TFE_Op* op, const std::string& name, bool input) {
  const proto::OpDef& def = NeedOp(op->name);
  proto::NodeDef node;
  for (const auto& [key, value] : op->attrs) (*node.mutable_attr())[key] = value;
  int single = 0, lists = 0;
  for (const auto& arg : def.input_arg()) (Many(arg) ? lists : single) += 1;
  const int left = static_cast<int>(op->inputs.size()) - single;
  const proto::OpDef::ArgDef* only = nullptr;
  for (const auto& arg : def.input_arg()) {
    if (Many(arg)) only = &arg;
  }
  const bool inferred = lists == 1 && left >= 0 && !op->inputs.empty();
  for (const auto& arg : input ? def.input_arg() : def.output_arg()) {
    if (arg.name() != name) continue;
    const std::string& length = arg.number_attr().empty() ? arg.type_list_attr() : arg.number_attr();
    if (length.empty()) return 1;
    if (node.attr().count(length)) return static_cast<int>(Length(arg, node));
    if (inferred && length == (only->number_attr().empty() ? only->type_list_attr() : only->number_attr())) return left;
    Fail(TF_INVALID_ARGUMENT, "Unable to find attr '", length, "'");
  }
  Fail(TF_INVALID_ARGUMENT, input ? "Input '" : "Output '", name, "' not found");
}
int TFE_OpGetInputLength(TFE_Op* op, const char* name, TF_Status* status) {
  int n = -1;
  Guard(status, [&] { n = ArgLength(op, OrEmpty(name), true); });
  return n;
}
int TFE_OpGetOutputLength(TFE_Op* op, const char* name, TF_Status* status) {
  int n = -1;
  Guard(status, [&] { n = ArgLength(op, OrEmpty(name), false); });
  return n;
}

void TFE_Execute(TFE_Op* op, TFE_TensorHandle** retvals, int* num_retvals, TF_Status* status) {
  Guard(status, [&] {
    const proto::OpDef* def = FindOp(op->name);
    std::vector<TensorRef> results = def && !HasFunctions(*op) ? RunOp(op, *def) : RunGraph(op);
    if (static_cast<size_t>(*num_retvals) < results.size()) {
      Fail(TF_INVALID_ARGUMENT, "Expecting ", std::to_string(results.size()), " outputs, but *num_retvals is ",
           std::to_string(*num_retvals));
    }
    *num_retvals = static_cast<int>(results.size());
    for (size_t i = 0; i < results.size(); ++i) retvals[i] = NewHandle(std::move(results[i]));
  });
}
