#include "framework/graph/attr_spec.h"

#include <algorithm>
#include <limits>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"

namespace thalweg {
namespace {

// Attribute kinds as the grammar spells them.
struct KindName {
  std::string_view name;
  uint32_t kind;
};
constexpr KindName kKinds[] = {{"type", TW_ATTR_TYPE},     {"int", TW_ATTR_INT},     {"float", TW_ATTR_FLOAT},   {"bool", TW_ATTR_BOOL},
                               {"string", TW_ATTR_STRING}, {"shape", TW_ATTR_SHAPE}, {"tensor", TW_ATTR_TENSOR}, {"func", TW_ATTR_FUNC}};

std::string_view KindText(uint32_t kind) {
  for (const KindName& k : kKinds) {
    if (k.kind == kind) return k.name;
  }
  return "nothing";
}

// Formats the allowed values, for messages: "float, int32" or "\"SAME\", \"VALID\"".
std::string AllowedText(const AttrSpec& spec) {
  std::string s;
  for (uint32_t t : spec.types) s += StrCat(s.empty() ? "" : ", ", DTypeName(t));
  for (const std::string& t : spec.strings) s += StrCat(s.empty() ? "" : ", ", "\"", t, "\"");
  return s;
}

class AttrParser {
 public:
  explicit AttrParser(Scanner* in) : in_(*in) {}

  // Parses "A: KIND [>= n] [= default] [since minor]".
  AttrSpec Read(std::string name) {
    in_.Expect(":", "after the attribute's name");
    AttrSpec a;
    a.name = std::move(name);
    Kind(&a, false);
    size_t column = in_.column();
    if (in_.Take(">=")) {
      if (a.kind != TW_ATTR_INT && !a.list) in_.Fail(column, StrCat("only an int or a list has a least value, not a ", KindText(a.kind)));
      a.has_min = true;
      a.min = in_.ExpectInt("the least value");
    }
    if (in_.Take("=")) {
      column = in_.column();
      a.default_value = a.list ? DefaultList(a) : Default(a);
      a.has_default = true;
      if (in_.ok()) {
        Status allowed = CheckAttr(a, a.default_value);
        if (!allowed.ok()) in_.Fail(column, StrCat("the default: ", Message(allowed)));
      }
    }
    if (in_.TakeKeyword("since")) {
      column = in_.column();
      int64_t since = in_.ExpectInt("the minor version");
      if (since < 0 || since > std::numeric_limits<uint32_t>::max()) in_.Fail(column, StrCat("minor version ", since, " is out of range"));
      a.since = uint32_t(since);
      if (a.since > 0 && !a.has_default)
        in_.Fail(column, "an attribute that came later needs a default, for the kernels that do not know it");
    }
    return a;
  }

 private:
  void Kind(AttrSpec* a, bool in_list) {
    size_t column = in_.column();
    if (in_.Take("{")) {
      Choice(a);
      return;
    }
    std::string_view word = in_.ExpectWord("an attribute's kind");
    if (!in_.ok()) return;
    if (word == "list") {
      if (in_list) in_.Fail(column, "a list of lists is no attribute kind");
      in_.Expect("(", "after list");
      a->list = true;
      Kind(a, true);
      in_.Expect(")", "after the kind of a list's values");
      return;
    }
    for (const KindName& k : kKinds) {
      if (k.name == word) a->kind = k.kind;
    }
    if (!a->kind) {
      in_.Fail(column,
               StrCat("'", word, "' is no attribute kind; there are type, int, float, bool, string, shape, tensor, func, list(kind), ",
                      "{types} and {\"texts\"}"));
    }
  }

  // Parses {float, int32} or {"SAME", "VALID"} after the opening brace.
  void Choice(AttrSpec* a) {
    a->kind = in_.Peek() == '"' ? TW_ATTR_STRING : TW_ATTR_TYPE;
    do {
      size_t column = in_.column();
      if (a->kind == TW_ATTR_STRING) {
        std::string s = in_.ExpectQuoted("an allowed text");
        if (std::find(a->strings.begin(), a->strings.end(), s) != a->strings.end())
          in_.Fail(column, StrCat("\"", s, "\" stands here twice"));
        a->strings.push_back(std::move(s));
      } else {
        uint32_t t = Type();
        if (in_.ok() && std::find(a->types.begin(), a->types.end(), t) != a->types.end())
          in_.Fail(column, StrCat(DTypeName(t), " stands here twice"));
        a->types.push_back(t);
      }
    } while (in_.ok() && in_.Take(","));
    in_.Expect("}", "or ',' after an allowed value");
  }

  uint32_t Type() {
    size_t column = in_.column();
    std::string_view word = in_.ExpectWord("an element type");
    uint32_t t = DTypeByName(word);
    if (in_.ok() && t == TW_INVALID_TYPE) in_.FailUnknown(column, StrCat("'", word, "' is no element type"));
    return t;
  }

  bool Bool() {
    if (in_.TakeKeyword("true")) return true;
    if (!in_.TakeKeyword("false") && in_.ok()) in_.Fail(in_.column(), "expected true or false");
    return false;
  }

  // Parses "unknown" or [2, ?, 3]; _ and -1 also stand for an unknown size.
  Shape ShapeValue() {
    if (in_.TakeKeyword("unknown")) return Shape();
    std::vector<int64_t> dims;
    in_.Expect("[", "or unknown as the default of a shape");
    if (!in_.ok() || in_.Take("]")) return Shape(std::move(dims));
    do {
      size_t column = in_.column();
      int64_t d = in_.Take("?") || in_.TakeKeyword("_") ? -1 : in_.ExpectInt("a size");
      if (d < -1) in_.Fail(column, StrCat("size ", d, " is negative"));
      dims.push_back(d);
    } while (in_.ok() && in_.Take(","));
    in_.Expect("]", "or ',' after a size");
    return Shape(std::move(dims));
  }

  AttrValue Default(const AttrSpec& a) {
    switch (a.kind) {
      case TW_ATTR_INT: return AttrValue::Int(in_.ExpectInt("the default"));
      case TW_ATTR_FLOAT: return AttrValue::Float(in_.ExpectFloat("the default"));
      case TW_ATTR_BOOL: return AttrValue::Bool(Bool());
      case TW_ATTR_STRING: return AttrValue::String(in_.ExpectQuoted("the default"));
      case TW_ATTR_TYPE: return AttrValue::Type(Type());
      case TW_ATTR_SHAPE: return AttrValue::OfShape(ShapeValue());
      case TW_ATTR_FUNC: return AttrValue::Func(in_.ExpectQuoted("the default function's name"));
      default: in_.Fail(in_.column(), StrCat("a ", KindText(a.kind), " has no default")); return AttrValue();
    }
  }

  template <class T, class F>
  std::vector<T> Items(F one) {
    std::vector<T> items;
    if (in_.Take("]")) return items;
    do {
      items.push_back(T(one()));
    } while (in_.ok() && in_.Take(","));
    in_.Expect("]", "or ',' after a value");
    return items;
  }

  AttrValue DefaultList(const AttrSpec& a) {
    size_t column = in_.column();
    if (!in_.Expect("[", "before the values of a default list")) return AttrValue();
    switch (a.kind) {
      case TW_ATTR_INT: return AttrValue::Ints(Items<int64_t>([&] { return in_.ExpectInt("a value"); }));
      case TW_ATTR_FLOAT: return AttrValue::Floats(Items<double>([&] { return in_.ExpectFloat("a value"); }));
      case TW_ATTR_BOOL: return AttrValue::Bools(Items<uint8_t>([&] { return Bool(); }));
      case TW_ATTR_STRING: return AttrValue::Strings(Items<std::string>([&] { return in_.ExpectQuoted("a value"); }));
      case TW_ATTR_TYPE: return AttrValue::Types(Items<uint32_t>([&] { return Type(); }));
      case TW_ATTR_SHAPE: return AttrValue::Shapes(Items<Shape>([&] { return ShapeValue(); }));
      case TW_ATTR_FUNC: return AttrValue::Funcs(Items<std::string>([&] { return in_.ExpectQuoted("a function's name"); }));
      default:
        if (in_.Take("]")) return AttrValue::EmptyList(a.kind);
        in_.Fail(column, StrCat("a list of ", KindText(a.kind), "s can only be empty by default"));
        return AttrValue();
    }
  }

  Scanner& in_;
};

Status CheckType(const AttrSpec& spec, uint32_t t) {
  if (!FindDType(t)) return InvalidArgument("attribute '", spec.name, "': type ", t, " is no element type");
  if (spec.types.empty() || std::find(spec.types.begin(), spec.types.end(), t) != spec.types.end()) return Status();
  return InvalidArgument("attribute '", spec.name, "' is ", DTypeName(t), " but must be one of ", AllowedText(spec));
}

Status CheckString(const AttrSpec& spec, const std::string& s) {
  if (spec.strings.empty() || std::find(spec.strings.begin(), spec.strings.end(), s) != spec.strings.end()) return Status();
  return InvalidArgument("attribute '", spec.name, "' is \"", Shown(s), "\" but must be one of ", AllowedText(spec));
}

Status CheckShape(const AttrSpec& spec, const Shape& s) {
  if (s.rank() > kMaxRank) return InvalidArgument("attribute '", spec.name, "': rank ", s.rank(), " is more than ", kMaxRank);
  for (int64_t d : s.dims()) {
    if (d < -1) return InvalidArgument("attribute '", spec.name, "': size ", d, " is negative; -1 stands for an unknown one");
  }
  return Status();
}

}  // namespace

AttrSpec ReadAttrSpec(std::string name, Scanner* in) { return AttrParser(in).Read(std::move(name)); }

Status CheckAttr(const AttrSpec& spec, const AttrValue& value) {
  if (value.kind() != spec.kind || value.is_list() != spec.list) {
    return InvalidArgument("attribute '", spec.name, "' is ", value.text(), " but must be ",
                           spec.list                  ? "a list of "
                           : spec.kind == TW_ATTR_INT ? "an "
                                                      : "a ",
                           KindText(spec.kind), spec.list ? "s" : "");
  }
  if (spec.has_min && spec.list && int64_t(value.count()) < spec.min) {
    return InvalidArgument("attribute '", spec.name, "' has ", value.count(), " values but needs at least ", spec.min);
  }
  if (spec.has_min && !spec.list && value.ints()[0] < spec.min) {
    return InvalidArgument("attribute '", spec.name, "' is ", value.ints()[0], " but must be at least ", spec.min);
  }
  for (uint32_t i = 0; i < value.count(); ++i) {
    if (spec.kind == TW_ATTR_TYPE) RETURN_IF_ERROR(CheckType(spec, value.types()[i]));
    if (spec.kind == TW_ATTR_STRING) RETURN_IF_ERROR(CheckString(spec, value.strings()[i]));
    if (spec.kind == TW_ATTR_SHAPE) RETURN_IF_ERROR(CheckShape(spec, value.shapes()[i]));
  }
  return Status();
}

}  // namespace thalweg
