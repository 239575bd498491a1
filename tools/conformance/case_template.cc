#include "tools/conformance/case_template.h"

#include <algorithm>
#include <map>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/strings.h"
#include "framework/json/json.h"
#include "thalweg/plugin/resource.h"

namespace thalweg::conformance {
namespace {

uint32_t FirstType(const AttrSpec& spec) {
  if (spec.has_default && !spec.list) return spec.default_value.types()[0];
  const bool any = spec.types.empty() || std::find(spec.types.begin(), spec.types.end(), uint32_t{TW_FLOAT}) != spec.types.end();
  return any ? uint32_t{TW_FLOAT} : spec.types[0];
}

std::string TensorText(uint32_t dtype, const std::string& shape) {
  const std::string head = StrCat("{\"dtype\": \"", DTypeName(dtype), "\", \"shape\": ", shape, ", ");
  switch (dtype) {
    case TW_STRING: return head + "\"values\": [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]}";
    case TW_FLOAT:
    case TW_DOUBLE:
    case TW_HALF:
    case TW_BFLOAT16:
    case TW_COMPLEX64:
    case TW_COMPLEX128: return head + "\"range\": [-1, 1]}";
    default: return head + "\"range\": [0, 1]}";
  }
}

std::string AttrText(const AttrSpec& a) {
  switch (a.kind) {
    case TW_ATTR_INT: return StrCat(a.has_min && !a.list ? std::max<int64_t>(a.min, 1) : 1);
    case TW_ATTR_FLOAT: return "0.5";
    case TW_ATTR_BOOL: return "false";
    case TW_ATTR_STRING: return JsonQuote(a.strings.empty() ? "text" : a.strings[0]);
    case TW_ATTR_TYPE: return JsonQuote(DTypeName(FirstType(a)));
    case TW_ATTR_SHAPE: return "[2, 3]";
    case TW_ATTR_TENSOR: return TensorText(TW_FLOAT, "[2, 3]");
    default: return "\"name\"";
  }
}

// Returns true if the inputs determine the attribute.
bool IsInferred(const OpSchema& op, const std::string& attr) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](const ArgSpec& a) { return a.type_attr == attr || a.list_attr == attr || a.number_attr == attr; });
}

// Returns the shape of an argument as text. Equal names have equal sizes, different names different ones.
std::string ShapeText(const ArgSpec& arg, std::map<std::string, int64_t>* sizes) {
  if (!arg.has_dims) return "[2, 3]";
  std::string text;
  const auto add = [&](const std::string& size) { text += StrCat(text.empty() ? "" : ", ", size); };
  for (const DimPattern& d : arg.dims) {
    switch (d.kind) {
      case DimPattern::kSize: add(StrCat(d.size)); break;
      case DimPattern::kName: add(StrCat(sizes->emplace(d.name, int64_t(sizes->size()) + 2).first->second)); break;
      case DimPattern::kStar: add("2, 3"); break;
      case DimPattern::kAny: add("2"); break;
    }
  }
  return StrCat("[", text, "]");
}

std::string InputText(const OpSchema& op, const ArgSpec& arg, std::map<std::string, int64_t>* sizes) {
  if (arg.dtype == TW_RESOURCE) {
    const bool variable = arg.resource.empty() || arg.resource == TW_VARIABLE_TYPE;
    if (!variable) return StrCat("{\"made_by\": ", JsonQuote(StrCat("op without inputs that makes ", arg.resource)), "}");
    return StrCat("{\"variable\": ", TensorText(TW_FLOAT, "[2, 3]"), "}");
  }
  const int type = op.FindAttr(arg.type_attr);
  const uint32_t dtype = type >= 0 ? FirstType(op.attrs[size_t(type)]) : arg.dtype ? arg.dtype : uint32_t{TW_FLOAT};
  return TensorText(dtype, ShapeText(arg, sizes));
}

}  // namespace

std::string CaseTemplate(const OpSchema& op) {
  std::string attrs, inputs;
  for (const AttrSpec& a : op.attrs) {
    if (a.has_default || IsInferred(op, a.name)) continue;
    const std::string value = AttrText(a);
    attrs += StrCat(attrs.empty() ? "" : ", ", JsonQuote(a.name), ": ", a.list ? StrCat("[", value, "]") : value);
  }
  std::map<std::string, int64_t> sizes;
  for (const ArgSpec& arg : op.inputs) {
    const bool several = !arg.number_attr.empty() || !arg.list_attr.empty();
    for (int i = 0; i < (several ? 2 : 1); ++i) inputs += StrCat(inputs.empty() ? "" : ", ", InputText(op, arg, &sizes));
  }
  return StrCat("{", attrs.empty() ? "" : StrCat("\"attrs\": {", attrs, "}, "), "\"inputs\": [", inputs, "]}");
}

}  // namespace thalweg::conformance
