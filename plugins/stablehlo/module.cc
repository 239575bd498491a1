#include "module.h"

#include <algorithm>

namespace thalweg::stablehlo {
namespace {

constexpr size_t kMostText = 200;  // of a type in a message: tuples share their parts, so a short file can hold a type with a long text

struct Known {
  const char* name;
  uint32_t dtype;  // 0: we have none
};

// In the order of Element.
constexpr Known kElements[] = {
    {"none", 0},
    {"i1", TW_BOOL},
    {"i2", TW_INT2},
    {"i4", TW_INT4},
    {"i8", TW_INT8},
    {"i16", TW_INT16},
    {"i32", TW_INT32},
    {"i64", TW_INT64},
    {"ui2", TW_UINT2},
    {"ui4", TW_UINT4},
    {"ui8", TW_UINT8},
    {"ui16", TW_UINT16},
    {"ui32", TW_UINT32},
    {"ui64", TW_UINT64},
    {"f4E2M1FN", 0},
    {"f6E2M3FN", 0},
    {"f6E3M2FN", 0},
    {"f8E3M4", 0},
    {"f8E4M3", 0},
    {"f8E4M3FN", TW_FLOAT8_E4M3FN},
    {"f8E4M3FNUZ", TW_FLOAT8_E4M3FNUZ},
    {"f8E4M3B11FNUZ", TW_FLOAT8_E4M3B11FNUZ},
    {"f8E5M2", TW_FLOAT8_E5M2},
    {"f8E5M2FNUZ", TW_FLOAT8_E5M2FNUZ},
    {"f8E8M0FNU", 0},
    {"bf16", TW_BFLOAT16},
    {"f16", TW_HALF},
    {"tf32", 0},
    {"f32", TW_FLOAT},
    {"f64", TW_DOUBLE},
    {"complex<f32>", TW_COMPLEX64},
    {"complex<f64>", TW_COMPLEX128},
    {"index", 0},
    {"!quant.uniform", 0},
};
static_assert(sizeof kElements / sizeof *kElements == static_cast<size_t>(Element::kQuantised) + 1);

const Known& KnownOf(Element element) { return kElements[static_cast<size_t>(element)]; }

void Append(std::string* text, const Type& type);

void AppendList(std::string* text, const std::vector<const Type*>& types) {
  for (size_t i = 0; i < types.size() && text->size() < kMostText; ++i) {
    if (i) *text += ", ";
    Append(text, *types[i]);
  }
}

void Append(std::string* text, const Type& type) {
  if (text->size() >= kMostText) return;
  switch (type.kind) {
    case Type::Kind::kTensor:
    case Type::Kind::kBuffer:
      *text += type.kind == Type::Kind::kTensor ? "tensor<" : "memref<";
      if (!type.ranked) *text += "*x";
      for (const int64_t d : type.dims) *text += (d < 0 ? "?" : std::to_string(d)) + "x";
      *text += std::string(Name(type.element)) + ">";
      break;
    case Type::Kind::kScalar: *text += Name(type.element); break;
    case Type::Kind::kToken: *text += "!stablehlo.token"; break;
    case Type::Kind::kNone: *text += "none"; break;
    case Type::Kind::kTuple:
      *text += "tuple<";
      AppendList(text, type.types);
      *text += ">";
      break;
    case Type::Kind::kFunction:
      *text += "(";
      AppendList(text, type.types);
      *text += ") -> (";
      AppendList(text, type.results);
      *text += ")";
      break;
  }
}

}  // namespace

bool Type::static_shape() const {
  return ranked && std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d >= 0; });
}

std::string Printable(std::string_view text) {
  std::string clean(text);
  for (char& c : clean) {
    if (static_cast<uint8_t>(c) < 32 || static_cast<uint8_t>(c) > 126) c = '_';
  }
  return clean;
}

std::string Text(const Type& type) {
  std::string text;
  Append(&text, type);
  if (text.size() > kMostText) text = text.substr(0, kMostText) + "...";
  return text;
}

const char* Name(Element element) { return KnownOf(element).name; }

uint32_t DtypeOf(Element element) {
  const Known& known = KnownOf(element);
  if (!known.dtype) throw Error{TW_UNIMPLEMENTED, std::string("tensors of ") + known.name + " are not supported"};
  return known.dtype;
}

bool IsComplex(Element e) { return e == Element::kC64 || e == Element::kC128; }
bool IsFloat(Element e) { return e >= Element::kF4E2M1FN && e <= Element::kF64; }
bool IsSigned(Element e) { return e >= Element::kI2 && e <= Element::kI64; }
bool IsUnsigned(Element e) { return e >= Element::kUI2 && e <= Element::kUI64; }

const Attribute* Find(const std::vector<Field>& fields, std::string_view name) {
  for (const Field& f : fields) {
    if (f.name == name) return f.value;
  }
  return nullptr;
}

const Attribute* Operation::attribute(std::string_view attribute_name) const {
  const Attribute* own = Find(attributes, attribute_name);
  return own || !dictionary ? own : Find(dictionary->fields, attribute_name);
}

const Function* Module::find(std::string_view name) const {
  const auto found = named.find(name);
  return found == named.end() ? nullptr : found->second;
}

}  // namespace thalweg::stablehlo
