#include "tests/fuzz/op/op_schema.h"

#include <algorithm>

#include "plugins/common/json_value.h"
#include "tests/fuzz/broken.h"
#include "thalweg/op.h"
#include "thalweg/tensor.h"

namespace thalweg::fuzz {
namespace {

using common::JsonValue;

constexpr uint32_t kTypes = 32;  // type numbers are 1 to kTypes

// The schema calls every variant the same; names tell them apart.
Variant VariantOf(const std::string& name) {
  const auto has = [&name](const char* part) { return name.find(part) != std::string::npos; };
  return has("dataset") || has("Dataset") ? Variant::kDataset : has("optional") || has("Optional") ? Variant::kOptional : Variant::kList;
}

Argument ReadArgument(const JsonValue& v) {
  Argument a;
  a.name = v["name"].text();
  a.variant = VariantOf(a.name);
  a.type_attr = v["type_attr"].text();
  a.list_attr = v["list_attr"].text();
  a.number_attr = v["number_attr"].text();
  if (v.has("type")) a.dtype = tw_dtype_find(v["type"].text().c_str());
  a.is_ref = v["ref"].yes();
  if (v.has("resource") && v["resource"].text() != "variable") a.opens = v["resource"].text();
  return a;
}

AttrSchema ReadAttr(const JsonValue& v, const std::vector<Argument>& inputs) {
  AttrSchema a;
  a.name = v["name"].text();
  a.kind = v["kind"].text();
  a.list = v["list"].yes();
  a.has_default = v.has("default");
  for (const Argument& x : inputs) {
    if (x.number_attr == a.name) a.role = AttrSchema::Role::kNumber;
  }
  if (a.kind == "type") a.role = a.list ? AttrSchema::Role::kTypes : AttrSchema::Role::kType;
  for (const JsonValue& choice : v["allowed"].items()) {
    if (a.kind == "type") a.types.push_back(tw_dtype_find(choice.text().c_str()));
    if (a.kind == "string") a.texts.push_back(choice.text());
  }
  for (uint32_t t = 1; t <= kTypes && a.kind == "type" && v["allowed"].items().empty(); ++t) a.types.push_back(t);
  return a;
}

bool IsHandle(const Argument& x) { return x.is_ref || x.dtype == TW_RESOURCE; }

OpSchema ReadOp(const JsonValue& v) {
  OpSchema op;
  op.name = v["name"].text();
  op.hash = HashOf(op.name);
  op.makes = VariantOf(op.name);
  op.stateful = v["stateful"].yes();
  op.touches = !v["touches"].text().empty();
  op.has_kernels = !v["kernels"].items().empty();
  op.differs = op.name == "TensorSummary";  // its result has the name of the operation
  for (const JsonValue& k : v["kernels"].items()) op.differs = op.differs || k.text().find("nondeterministic") != std::string::npos;
  for (const JsonValue& x : v["inputs"].items()) op.inputs.push_back(ReadArgument(x));
  std::vector<Argument> outputs;
  for (const JsonValue& y : v["outputs"].items()) outputs.push_back(ReadArgument(y));
  for (const JsonValue& a : v["attrs"].items()) op.attrs.push_back(ReadAttr(a, op.inputs));
  const auto has = [&op](const char* name) {
    return std::any_of(op.attrs.begin(), op.attrs.end(), [name](const AttrSchema& a) { return a.name == name; });
  };
  const bool handles = std::any_of(op.inputs.begin(), op.inputs.end(), IsHandle) || std::any_of(outputs.begin(), outputs.end(), IsHandle);
  op.makes_other =
      std::any_of(outputs.begin(), outputs.end(), [](const Argument& y) { return !y.opens.empty(); }) || (has("shared_name") && !handles);
  op.calls_program = has("token");
  op.crosses = has("send_device");
  op.only_takes = outputs.empty() && op.inputs.size() == 1 && op.inputs[0].dtype == TW_VARIANT;
  return op;
}

}  // namespace

bool OpSchema::IsRandom() const { return differs || (stateful && std::none_of(inputs.begin(), inputs.end(), IsHandle)); }

// FNV-1a.
uint32_t HashOf(const std::string& name) {
  uint32_t h = 2166136261u;
  for (char c : name) h = (h ^ uint8_t(c)) * 16777619u;
  return h;
}

std::vector<OpSchema> ReadSchemas(tw_runtime* runtime) {
  tw_ops* ops = nullptr;
  Must(tw_ops_create(runtime, &ops), "listing the ops");
  std::vector<OpSchema> all;
  for (uint32_t i = 0; i < tw_ops_count(ops); ++i) {
    tw_buffer* json = nullptr;
    Must(tw_ops_json(ops, i, &json), "an op's schema");
    all.push_back(ReadOp(JsonValue::Parse({static_cast<const char*>(tw_buffer_data(json)), size_t(tw_buffer_bytes(json))})));
    tw_buffer_release(json);
  }
  tw_ops_destroy(ops);
  std::sort(all.begin(), all.end(), [](const OpSchema& a, const OpSchema& b) { return a.hash < b.hash; });
  return all;
}

}  // namespace thalweg::fuzz
