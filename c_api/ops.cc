// The list of a runtime's ops.
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/base/dtype.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/function_shapes.h"
#include "framework/json/json.h"
#include "framework/proto/wire.h"
#include "thalweg/op.h"

struct tw_ops {
  std::shared_ptr<thalweg::Runtime> runtime;  // owns the schemas
  std::vector<const thalweg::OpSchema*> ops;
  std::vector<std::vector<const thalweg::KernelDef*>> kernels;
  std::set<std::shared_ptr<const void>> plugins;  // keeps them loaded
};

static const thalweg::OpSchema* At(const tw_ops* ops, uint32_t i) { return i < tw_ops_count(ops) ? ops->ops[i] : nullptr; }

tw_status* tw_ops_create(tw_runtime* runtime, tw_ops** out_ops) {
  NEED(out_ops);
  return thalweg::Enter([&]() -> thalweg::Status {
    auto list = std::make_unique<tw_ops>();
    ASSIGN_OR_RETURN(list->runtime, thalweg::RuntimeOf(runtime));
    list->ops = list->runtime->registry().Ops();
    for (const thalweg::OpSchema* op : list->ops) {
      list->kernels.push_back(list->runtime->registry().Kernels(op->name));
      list->plugins.insert(op->in_graphs.lock());
      for (const thalweg::KernelDef* k : list->kernels.back()) list->plugins.insert(k->in_plans.lock());
    }
    *out_ops = list.release();
    return thalweg::Status();
  });
}

void tw_ops_destroy(tw_ops* ops) { delete ops; }

uint32_t tw_ops_count(const tw_ops* ops) { return ops ? uint32_t(ops->ops.size()) : 0; }

const char* tw_ops_name(const tw_ops* ops, uint32_t i) { return At(ops, i) ? At(ops, i)->name.c_str() : nullptr; }

const char* tw_ops_schema(const tw_ops* ops, uint32_t i) { return At(ops, i) ? At(ops, i)->text.c_str() : nullptr; }

const char* tw_ops_doc(const tw_ops* ops, uint32_t i) { return At(ops, i) ? At(ops, i)->doc.c_str() : nullptr; }

const char* tw_ops_plugin(const tw_ops* ops, uint32_t i) { return At(ops, i) ? At(ops, i)->plugin.c_str() : nullptr; }

const char* tw_ops_no_gradient(const tw_ops* ops, uint32_t i) { return At(ops, i) ? At(ops, i)->no_gradient.c_str() : nullptr; }

uint32_t tw_ops_kernel_count(const tw_ops* ops, uint32_t i) { return At(ops, i) ? uint32_t(ops->kernels[i].size()) : 0; }

const char* tw_ops_kernel(const tw_ops* ops, uint32_t i, uint32_t k) {
  return k < tw_ops_kernel_count(ops, i) ? ops->kernels[i][k]->spec.text.c_str() : nullptr;
}

namespace {

using thalweg::AttrSpec;
using thalweg::AttrValue;
using thalweg::Json;

const char* KindText(uint32_t kind) {
  switch (kind) {
    case TW_ATTR_INT: return "int";
    case TW_ATTR_FLOAT: return "float";
    case TW_ATTR_BOOL: return "bool";
    case TW_ATTR_STRING: return "string";
    case TW_ATTR_TYPE: return "type";
    case TW_ATTR_SHAPE: return "shape";
    case TW_ATTR_TENSOR: return "tensor";
    default: return "func";
  }
}

// Returns the double with the fewest digits that rounds to the same float: 0.2, not
// 0.20000000298023224.
double FewestDigits(double v) {
  if (!(std::fabs(v) <= double(std::numeric_limits<float>::max()))) return v;
  char digits[32];
  const char* end = std::to_chars(digits, digits + sizeof(digits), float(v)).ptr;
  std::from_chars(digits, end, v);
  return v;
}

// Adds entry k of the value; a single value has entry 0 only.
void AddEntry(const AttrValue& v, uint32_t k, std::string_view key, Json* json) {
  switch (v.kind()) {
    case TW_ATTR_INT: json->Number(key, v.ints()[k]); break;
    case TW_ATTR_FLOAT: json->Real(key, FewestDigits(v.floats()[k])); break;
    case TW_ATTR_BOOL: json->Bool(key, v.bools()[k] != 0); break;
    case TW_ATTR_TYPE: json->Text(key, thalweg::DTypeName(v.types()[k])); break;
    case TW_ATTR_SHAPE: {
      const thalweg::Shape& shape = v.shapes()[k];
      if (shape.rank() < 0) {
        json->Raw(key, "null");
        break;
      }
      json->Array(key);
      for (int64_t d : shape.dims()) json->Number("", d);
      json->End();
      break;
    }
    case TW_ATTR_TENSOR: json->Text(key, v.text()); break;
    default: json->Text(key, v.strings()[k]);  // function names, too
  }
}

void AddArgs(const std::vector<thalweg::ArgSpec>& args, std::string_view key, Json* json) {
  json->Array(key);
  for (const thalweg::ArgSpec& a : args) {
    json->Object().Text("name", a.name);
    if (a.dtype) json->Text("type", thalweg::DTypeName(a.dtype));
    if (!a.type_attr.empty()) json->Text("type_attr", a.type_attr);
    if (!a.list_attr.empty()) json->Text("list_attr", a.list_attr);
    if (!a.number_attr.empty()) json->Text("number_attr", a.number_attr);
    if (a.ref) json->Bool("ref", true);
    if (!a.resource.empty()) json->Text("resource", a.resource);
    json->End();
  }
  json->End();
}

void AddAttr(const AttrSpec& a, Json* json) {
  json->Object().Text("name", a.name).Text("kind", KindText(a.kind)).Bool("list", a.list);
  if (a.has_default && a.list) {
    json->Array("default");
    for (uint32_t k = 0; k < a.default_value.count(); ++k) AddEntry(a.default_value, k, "", json);
    json->End();
  } else if (a.has_default) {
    AddEntry(a.default_value, 0, "default", json);
  }
  if (!a.types.empty() || !a.strings.empty()) {
    json->Array("allowed");
    for (uint32_t t : a.types) json->Text("", thalweg::DTypeName(t));
    for (const std::string& s : a.strings) json->Text("", s);
    json->End();
  }
  if (a.has_min) json->Number("minimum", a.min);
  json->End();
}

// Numbers of the fields of OpDef, its parts and AttrValue.
enum OpDefField : uint32_t { kOpName = 1, kInput = 2, kOutput = 3, kAttr = 4, kSummary = 5, kStateful = 17, kCommutative = 18 };
enum ArgDefField : uint32_t { kArgName = 1, kArgType = 3, kTypeAttr = 4, kNumberAttr = 5, kListAttr = 6, kIsRef = 16 };
enum AttrDefField : uint32_t { kAttrName = 1, kAttrType = 2, kDefault = 3, kHasMinimum = 5, kMinimum = 6, kAllowed = 7 };

std::string ArgMessage(const thalweg::ArgSpec& a) {
  std::string out;
  thalweg::PutBytesField(kArgName, a.name, &out);
  if (a.dtype) thalweg::PutVarintField(kArgType, a.ref ? a.dtype % TW_REF : a.dtype, &out);
  if (!a.type_attr.empty()) thalweg::PutBytesField(kTypeAttr, a.type_attr, &out);
  if (!a.number_attr.empty()) thalweg::PutBytesField(kNumberAttr, a.number_attr, &out);
  if (!a.list_attr.empty()) thalweg::PutBytesField(kListAttr, a.list_attr, &out);
  if (a.ref) thalweg::PutVarintField(kIsRef, 1, &out);
  return out;
}

thalweg::StatusOr<std::string> AttrMessage(const AttrSpec& a) {
  std::string out;
  thalweg::PutBytesField(kAttrName, a.name, &out);
  const std::string kind = KindText(a.kind);
  thalweg::PutBytesField(kAttrType, a.list ? "list(" + kind + ")" : kind, &out);
  if (a.has_default) {
    ASSIGN_OR_RETURN(const std::string value, thalweg::SerializeAttr(a.default_value));
    thalweg::PutBytesField(kDefault, value, &out);
  }
  if (a.has_min) {
    thalweg::PutVarintField(kHasMinimum, 1, &out);
    thalweg::PutVarintField(kMinimum, uint64_t(a.min), &out);
  }
  if (!a.types.empty() || !a.strings.empty()) {
    ASSIGN_OR_RETURN(const std::string allowed,
                     thalweg::SerializeAttr(a.types.empty() ? AttrValue::Strings(a.strings) : AttrValue::Types(a.types)));
    thalweg::PutBytesField(kAllowed, allowed, &out);
  }
  return out;
}

}  // namespace

tw_status* tw_ops_message(const tw_ops* ops, uint32_t i, tw_buffer** out_bytes) {
  NEED(ops);
  NEED(out_bytes);
  return thalweg::Enter([&]() -> thalweg::Status {
    const thalweg::OpSchema* op = At(ops, i);
    if (!op) return thalweg::Error(absl::StatusCode::kOutOfRange, "there are ", ops->ops.size(), " ops, none with number ", i);
    std::string out;
    thalweg::PutBytesField(kOpName, op->name, &out);
    for (const thalweg::ArgSpec& a : op->inputs) thalweg::PutBytesField(kInput, ArgMessage(a), &out);
    for (const thalweg::ArgSpec& a : op->outputs) thalweg::PutBytesField(kOutput, ArgMessage(a), &out);
    for (const AttrSpec& a : op->attrs) {
      ASSIGN_OR_RETURN(const std::string message, AttrMessage(a));
      thalweg::PutBytesField(kAttr, message, &out);
    }
    if (!op->doc.empty()) thalweg::PutBytesField(kSummary, op->doc, &out);
    if (op->stateful) thalweg::PutVarintField(kStateful, 1, &out);
    if (op->commutative) thalweg::PutVarintField(kCommutative, 1, &out);
    *out_bytes = thalweg::MakeBuffer(std::move(out));
    return thalweg::Status();
  });
}

tw_status* tw_ops_json(const tw_ops* ops, uint32_t i, tw_buffer** out_json) {
  NEED(ops);
  NEED(out_json);
  return thalweg::Enter([&]() -> thalweg::Status {
    const thalweg::OpSchema* op = At(ops, i);
    if (!op) return thalweg::Error(absl::StatusCode::kOutOfRange, "there are ", ops->ops.size(), " ops, none with number ", i);
    Json json;
    json.Object().Text("name", op->name).Text("doc", op->doc).Text("plugin", op->plugin).Text("schema", op->text);
    json.Bool("stateful", op->stateful).Text("touches", thalweg::TouchesText(op->touches));
    const bool has_gradient = op->def.gradient || thalweg::CallsFunctions(*op);
    json.Text("gradient", has_gradient ? "yes" : op->no_gradient.empty() ? "missing" : "none");
    json.Text("no_gradient", op->no_gradient).Array("kernels");
    for (const thalweg::KernelDef* k : ops->kernels[i]) json.Text("", k->spec.text);
    json.End().Array("kernel_plugins");
    for (const thalweg::KernelDef* k : ops->kernels[i]) json.Text("", k->plugin);
    json.End();
    AddArgs(op->inputs, "inputs", &json);
    AddArgs(op->outputs, "outputs", &json);
    json.Array("attrs");
    for (const AttrSpec& a : op->attrs) AddAttr(a, &json);
    json.End().End();
    *out_json = thalweg::MakeBuffer(json.text());
    return thalweg::Status();
  });
}
