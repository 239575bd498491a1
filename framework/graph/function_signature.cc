#include "framework/graph/function_signature.h"

#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/graph_def_fields.h"
#include "framework/proto/wire.h"

namespace thalweg {

using namespace graph_def;

namespace {

Status Damaged(std::string_view what, const WireReader& reader) {
  return InvalidArgument(what, " is damaged or cut short at its byte ", reader.offset());
}

StatusOr<AttrValue> Parsed(std::string_view message, uint32_t kind, bool list) {
  AttrSpec spec;
  spec.kind = kind;
  spec.list = list;
  SplatBudget budget;
  bool whole = false;
  return ParseAttr(message, spec, &budget, &whole);
}

StatusOr<HandleInfo> ReadHandle(std::string_view bytes) {
  HandleInfo handle;
  WireReader reader(bytes);
  for (WireField f; reader.Next(&f);) {
    if (f.number == kHandleType && f.type == WireField::kVarint) handle.dtype = uint32_t(f.value);
    if (f.number != kHandleShape || f.type != WireField::kBytes) continue;
    std::string message;
    PutBytesField(kShape, f.bytes, &message);
    ASSIGN_OR_RETURN(const AttrValue shape, Parsed(message, TW_ATTR_SHAPE, false));
    handle.shape = shape.shapes()[0];
  }
  return reader.ok() ? StatusOr<HandleInfo>(handle) : Damaged("what is said of a handle", reader);
}

Status ReadArg(std::string_view bytes, std::vector<StoredArg>* to) {
  StoredArg arg;
  WireReader reader(bytes);
  for (WireField f; reader.Next(&f);) {
    if (f.number == kArgType && f.type == WireField::kVarint) arg.type = uint32_t(f.value);
    if (f.type != WireField::kBytes) continue;
    if (f.number == kArgName) arg.name = f.bytes;
    if (f.number == kTypeAttr) arg.type_attr = f.bytes;
    if (f.number == kNumberAttr) arg.number_attr = f.bytes;
    if (f.number == kTypeListAttr) arg.type_list_attr = f.bytes;
    if (f.number == kHandleData && !arg.handle.known()) {
      ASSIGN_OR_RETURN(arg.handle, ReadHandle(f.bytes));
    }
  }
  to->push_back(arg);
  return reader.ok() ? Status() : Damaged(StrCat("argument ", to->size() - 1), reader);
}

Status ReadAttr(std::string_view bytes, FunctionSignature* to) {
  std::string_view name, value;
  WireReader reader(bytes);
  for (WireField f; reader.Next(&f);) {
    if (f.number == kAttrName && f.type == WireField::kBytes) name = f.bytes;
    if (f.number == kAttrDefault && f.type == WireField::kBytes) value = f.bytes;
  }
  to->attrs.push_back(name);
  if (!value.empty()) to->defaults.emplace(name, value);
  return reader.ok() ? Status() : Damaged("an attribute of the signature", reader);
}

Status ReadSignature(std::string_view bytes, FunctionSignature* to) {
  WireReader reader(bytes);
  for (WireField f; reader.Next(&f);) {
    if (f.number == kIsStateful && f.type == WireField::kVarint) to->stateful = f.value != 0;
    if (f.type != WireField::kBytes) continue;
    if (f.number == kSignatureName) to->name = f.bytes;
    if (f.number == kInputArg) RETURN_IF_ERROR(ReadArg(f.bytes, &to->args));
    if (f.number == kOutputArg) RETURN_IF_ERROR(ReadArg(f.bytes, &to->results));
    if (f.number == kSignatureAttr) RETURN_IF_ERROR(ReadAttr(f.bytes, to));
  }
  return reader.ok() ? Status() : Damaged("the signature", reader);
}

StatusOr<std::string_view> Find(std::string_view name, const AttrMessages& attrs) {
  auto it = attrs.find(name);
  if (it == attrs.end()) return InvalidArgument("nothing says what its attribute '", Shown(name), "' is");
  return std::string_view(it->second);
}

// Copies a message; `visit` may replace a bytes field, and other fields are copied as they are.
template <class Visit>
StatusOr<std::string> Rewritten(std::string_view message, std::string_view what, Visit visit) {
  std::string out;
  WireReader reader(message);
  for (WireField f; reader.Next(&f);) {
    bool done = false;
    if (f.type == WireField::kBytes) {
      ASSIGN_OR_RETURN(done, visit(f, &out));
    }
    if (!done) out += f.raw;
  }
  return reader.ok() ? StatusOr<std::string>(std::move(out)) : Damaged(what, reader);
}

constexpr int kDeepest = 100;  // nesting depth of named functions

StatusOr<std::string> Substituted(std::string_view message, const AttrMessages& attrs, int depth);

// Substitutes in a NameAttrList.
StatusOr<std::string> SubstitutedFunction(std::string_view message, const AttrMessages& attrs, int depth) {
  if (depth > kDeepest) return InvalidArgument("functions are named within each other more than ", kDeepest, " deep");
  return Rewritten(message, "a function's name", [&](const WireField& f, std::string* out) -> StatusOr<bool> {
    if (f.number != kFuncAttr) return false;
    ASSIGN_OR_RETURN(const std::string entry,
                     Rewritten(f.bytes, "a function's attribute", [&](const WireField& e, std::string* to) -> StatusOr<bool> {
                       if (e.number != kValue) return false;
                       ASSIGN_OR_RETURN(const std::string value, Substituted(e.bytes, attrs, depth + 1));
                       PutBytesField(kValue, value, to);
                       return true;
                     }));
    PutBytesField(kFuncAttr, entry, out);
    return true;
  });
}

StatusOr<std::string> Substituted(std::string_view message, const AttrMessages& attrs, int depth) {
  return Rewritten(message, "an attribute", [&](const WireField& f, std::string* out) -> StatusOr<bool> {
    if (f.number == kPlaceholder) {
      ASSIGN_OR_RETURN(const std::string_view value, Find(f.bytes, attrs));
      *out += value;
      return true;
    }
    if (f.number == kFunc) {
      ASSIGN_OR_RETURN(const std::string function, SubstitutedFunction(f.bytes, attrs, depth));
      PutBytesField(kFunc, function, out);
      return true;
    }
    if (f.number != kList) return false;
    ASSIGN_OR_RETURN(const std::string list, Rewritten(f.bytes, "a list", [&](const WireField& e, std::string* to) -> StatusOr<bool> {
                       if (e.number != kListFunc) return false;
                       ASSIGN_OR_RETURN(const std::string function, SubstitutedFunction(e.bytes, attrs, depth));
                       PutBytesField(kListFunc, function, to);
                       return true;
                     }));
    PutBytesField(kList, list, out);
    return true;
  });
}

StatusOr<NamedFunction> ReadFunction(std::string_view bytes) {
  NamedFunction found;
  WireReader reader(bytes);
  for (WireField f; reader.Next(&f);) {
    if (f.number == kFuncName && f.type == WireField::kBytes) found.name = f.bytes;
    if (f.number != kFuncAttr || f.type != WireField::kBytes) continue;
    std::string_view key, value;
    WireReader entry(f.bytes);
    for (WireField e; entry.Next(&e);) {
      if (e.number == kKey && e.type == WireField::kBytes) key = e.bytes;
      if (e.number == kValue && e.type == WireField::kBytes) value = e.bytes;
    }
    if (!entry.ok()) return Damaged("a function's attribute", entry);
    found.attrs.emplace(key, value);
  }
  return reader.ok() ? StatusOr<NamedFunction>(std::move(found)) : Damaged("a function's name", reader);
}

}  // namespace

StatusOr<FunctionSignature> FunctionSignature::Read(std::string_view function_def) {
  FunctionSignature s;
  WireReader reader(function_def);
  for (WireField f; reader.Next(&f);) {
    if (f.number == kSignature && f.type == WireField::kBytes) RETURN_IF_ERROR(ReadSignature(f.bytes, &s));
  }
  if (!reader.ok()) return Damaged("the FunctionDef", reader);
  if (s.name.empty()) return InvalidArgument("a FunctionDef has no name");
  return s;
}

StatusOr<AttrMessages> FunctionSignature::Attributes(const AttrMessages& given) const {
  AttrMessages values;
  for (std::string_view a : attrs) {
    auto it = given.find(a);
    if (it == given.end() && (it = defaults.find(a)) == defaults.end()) {
      return InvalidArgument("function '", Shown(name), "' has the attribute '", Shown(a), "', but the call does not say what it is");
    }
    values.emplace(a, it->second);
  }
  return values;
}

StatusOr<std::vector<uint32_t>> TypesOf(const StoredArg& arg, const AttrMessages& attrs) {
  if (!arg.type_list_attr.empty()) {
    ASSIGN_OR_RETURN(const std::string_view message, Find(arg.type_list_attr, attrs));
    ASSIGN_OR_RETURN(const AttrValue types, Parsed(message, TW_ATTR_TYPE, true));
    if (types.kind() == TW_ATTR_TYPE && types.is_list()) return std::vector<uint32_t>(types.types().begin(), types.types().end());
    return InvalidArgument("attribute '", Shown(arg.type_list_attr), "' is not a list of types");
  }
  uint32_t type = arg.type;
  if (!arg.type_attr.empty()) {
    ASSIGN_OR_RETURN(const std::string_view message, Find(arg.type_attr, attrs));
    ASSIGN_OR_RETURN(const AttrValue value, Parsed(message, TW_ATTR_TYPE, false));
    if (value.kind() != TW_ATTR_TYPE || value.is_list()) return InvalidArgument("attribute '", Shown(arg.type_attr), "' is not a type");
    type = value.types()[0];
  }
  if (arg.number_attr.empty()) return std::vector<uint32_t>{type};
  ASSIGN_OR_RETURN(const std::string_view message, Find(arg.number_attr, attrs));
  ASSIGN_OR_RETURN(const AttrValue n, Parsed(message, TW_ATTR_INT, false));
  constexpr int64_t kMost = 1 << 16;
  if (n.kind() != TW_ATTR_INT || n.is_list() || n.ints()[0] < 0 || n.ints()[0] > kMost) {
    return InvalidArgument("attribute '", Shown(arg.number_attr), "' is not a number of values from 0 to ", kMost);
  }
  return std::vector<uint32_t>(size_t(n.ints()[0]), type);
}

StatusOr<std::string> Substituted(std::string_view message, const AttrMessages& attrs) { return Substituted(message, attrs, 0); }

StatusOr<std::vector<NamedFunction>> FunctionsOf(std::string_view message) {
  std::vector<NamedFunction> all;
  const auto add = [&](std::string_view bytes) -> Status {
    ASSIGN_OR_RETURN(all.emplace_back(), ReadFunction(bytes));
    return Status();
  };
  WireReader reader(message);
  for (WireField f; reader.Next(&f);) {
    if (f.type != WireField::kBytes) continue;
    if (f.number == kFunc) RETURN_IF_ERROR(add(f.bytes));
    if (f.number != kList) continue;
    WireReader list(f.bytes);
    for (WireField e; list.Next(&e);) {
      if (e.number == kListFunc && e.type == WireField::kBytes) RETURN_IF_ERROR(add(e.bytes));
    }
    if (!list.ok()) return Damaged("a list of functions", list);
  }
  return reader.ok() ? StatusOr<std::vector<NamedFunction>>(std::move(all)) : Damaged("an attribute", reader);
}

}  // namespace thalweg
