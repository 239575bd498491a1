// Operations while they are translated: operands, results, attributes.
#include <algorithm>
#include <cstring>

#include "translate.h"

namespace thalweg::stablehlo {
namespace {

const char* KindName(Attribute::Kind kind) {
  constexpr const char* kNames[] = {"a unit",   "a bool",       "an integer", "a real number", "a string",        "an enum", "a type",
                                    "an array", "a dictionary", "a symbol",   "a tensor",      "an output alias", "no value"};
  return kNames[static_cast<size_t>(kind)];
}

template <class T>
int64_t Read(const Elements& e, uint64_t i) {
  T v;
  std::memcpy(&v, static_cast<const uint8_t*>(e.data) + i * sizeof(T), sizeof v);
  return static_cast<int64_t>(v);
}

// The integers of a tensor, which has at most kMostIntegers elements.
constexpr int64_t kMostIntegers = 1 << 16;

}  // namespace

Op::Op(Translation& t, const Operation& o, const Function& f) : operation(o), function(f), t_(t) {
  for (const Id id : o.operands) in_.push_back(t.find(id));
}

const Value& Op::in(size_t i) const {
  if (i >= in_.size()) fail("operand " + std::to_string(i) + " is absent");
  return in_[i];
}

const Type& Op::in_type(size_t i) const {
  in(i);
  return *function.values[operation.operands[i]];
}

std::vector<Value> Op::all() const { return in_; }

std::vector<Value> Op::some(size_t begin, size_t count) const {
  std::vector<Value> v;
  for (size_t i = 0; i < count; ++i) v.push_back(in(begin + i));
  return v;
}

const Type& Op::out_type(size_t i) const {
  if (i >= outputs()) fail("result " + std::to_string(i) + " is absent");
  return *function.values[operation.results[i]];
}

ShapeAttr Op::out_shape(size_t i) const {
  const Type& type = out_type(i);
  if (!type.tensor()) fail("result " + std::to_string(i) + " is no tensor but " + Text(type));
  return {type.dims, type.ranked};
}

void Op::out(size_t i, Value v) {
  const Type& type = out_type(i);
  if (type.kind == Type::Kind::kToken || v.token()) {
    if (!v.token() || type.kind != Type::Kind::kToken)
      fail("result " + std::to_string(i) + " is a token, or is declared as one", TW_INTERNAL);
  } else {
    const ShapeAttr declared = out_shape(i);
    if (v.dtype() != out_dtype(i)) {
      fail("result " + std::to_string(i) + " is declared as " + Text(type) + ", but " + importer::DtypeName(v.dtype()) + " comes out");
    }
    bool fits = !declared.known_rank || v.rank() < 0 || v.dims().size() == declared.dims.size();
    for (size_t k = 0; fits && declared.known_rank && v.rank() >= 0 && k < declared.dims.size(); ++k) {
      fits = declared.dims[k] < 0 || v.dims()[k] < 0 || declared.dims[k] == v.dims()[k];
    }
    if (!fits) fail("result " + std::to_string(i) + " is declared as " + Text(type) + ", but " + importer::Text(v.dims()) + " comes out");
    v = t_.shaped(v, declared);
  }
  t_.set(operation.results[i], std::move(v));
}

// ---- Attributes ----

// Newer versions write `none` for some attributes that are absent.
const Attribute* Op::attr(std::string_view name) const {
  const Attribute* a = operation.attribute(name);
  return a && a->kind == Attribute::Kind::kType && a->type->kind == Type::Kind::kNone ? nullptr : a;
}

namespace {

const Attribute& Need(const Op& op, std::string_view name) {
  const Attribute* a = op.attr(name);
  if (!a) op.fail("attribute '" + std::string(name) + "' is absent");
  return *a;
}

[[noreturn]] void Wrong(const Op& op, std::string_view name, const Attribute& a, const char* wanted) {
  op.fail("attribute '" + std::string(name) + "' is " + KindName(a.kind) + ", not " + wanted);
}

std::vector<int64_t> Integers(const Op& op, std::string_view name, const Attribute& a) {
  if (a.kind == Attribute::Kind::kInteger || a.kind == Attribute::Kind::kBool) return {a.integer};
  std::vector<int64_t> v;
  if (a.kind == Attribute::Kind::kArray) {
    for (const Attribute* one : a.array) {
      if (one->kind != Attribute::Kind::kInteger && one->kind != Attribute::Kind::kBool) Wrong(op, name, *one, "an integer");
      v.push_back(one->integer);
    }
    return v;
  }
  if (a.kind != Attribute::Kind::kElements) Wrong(op, name, a, "integers");
  int64_t n = 1;
  for (const int64_t d : a.type->dims) {
    if (__builtin_mul_overflow(n, d, &n) || n > kMostIntegers)
      op.unsupported("attribute '" + std::string(name) + "' has too many elements");
  }
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<uint64_t>(a.elements.splat ? 0 : i);
    switch (a.type->element) {
      case Element::kBool:
      case Element::kUI8: v.push_back(Read<uint8_t>(a.elements, at)); break;
      case Element::kI8: v.push_back(Read<int8_t>(a.elements, at)); break;
      case Element::kI16: v.push_back(Read<int16_t>(a.elements, at)); break;
      case Element::kUI16: v.push_back(Read<uint16_t>(a.elements, at)); break;
      case Element::kI32: v.push_back(Read<int32_t>(a.elements, at)); break;
      case Element::kUI32: v.push_back(Read<uint32_t>(a.elements, at)); break;
      case Element::kI64:
      case Element::kUI64:
      case Element::kIndex: v.push_back(Read<int64_t>(a.elements, at)); break;
      default: op.fail("attribute '" + std::string(name) + "' is " + Text(*a.type) + ", not integers");
    }
  }
  return v;
}

}  // namespace

int64_t Op::i(std::string_view name) const {
  const std::vector<int64_t> v = Integers(*this, name, Need(*this, name));
  if (v.size() != 1) fail("attribute '" + std::string(name) + "' has " + std::to_string(v.size()) + " elements, not one");
  return v[0];
}
int64_t Op::i(std::string_view name, int64_t otherwise) const { return has(name) ? i(name) : otherwise; }

bool Op::flag(std::string_view name, bool otherwise) const {
  const Attribute* a = attr(name);
  return a ? a->kind == Attribute::Kind::kUnit || i(name) != 0 : otherwise;
}

double Op::f(std::string_view name) const {
  const Attribute& a = Need(*this, name);
  if (a.kind == Attribute::Kind::kInteger) return static_cast<double>(a.integer);
  if (a.kind != Attribute::Kind::kFloat) Wrong(*this, name, a, "a real number");
  return a.real;
}

std::string Op::s(std::string_view name) const {
  const Attribute& a = Need(*this, name);
  if (a.kind != Attribute::Kind::kString && a.kind != Attribute::Kind::kSymbol && a.kind != Attribute::Kind::kEnum) {
    Wrong(*this, name, a, "a string");
  }
  return std::string(a.text);
}
std::string Op::s(std::string_view name, std::string_view otherwise) const { return has(name) ? s(name) : std::string(otherwise); }

std::vector<int64_t> Op::ints(std::string_view name) const { return Integers(*this, name, Need(*this, name)); }
std::vector<int64_t> Op::ints(std::string_view name, std::vector<int64_t> otherwise) const { return has(name) ? ints(name) : otherwise; }

std::vector<std::string> Op::strings(std::string_view name) const {
  std::vector<std::string> v;
  const Attribute* a = attr(name);
  if (!a) return v;
  if (a->kind != Attribute::Kind::kArray) Wrong(*this, name, *a, "an array");
  for (const Attribute* one : a->array) {
    if (one->kind != Attribute::Kind::kString && one->kind != Attribute::Kind::kSymbol && one->kind != Attribute::Kind::kEnum) {
      Wrong(*this, name, *one, "a string");
    }
    v.emplace_back(one->text);
  }
  return v;
}

const Type& Op::type(std::string_view name) const {
  const Attribute& a = Need(*this, name);
  if (a.kind != Attribute::Kind::kType) Wrong(*this, name, a, "a type");
  return *a.type;
}

Value Op::tensor(std::string_view name) const {
  const Attribute& a = Need(*this, name);
  if (a.kind != Attribute::Kind::kElements) Wrong(*this, name, a, "a tensor");
  const uint32_t dtype = DtypeOf(a.type->element);
  if (a.elements.splat) return t_.fill(Tensor(dtype, {}, a.elements.data, a.elements.keep), a.type->dims);
  return t_.constant(Tensor(dtype, a.type->dims, a.elements.data, a.elements.keep));
}

const Block& Op::body(size_t i) const {
  if (i >= bodies() || operation.regions[i].operations.empty()) fail("region " + std::to_string(i) + " is absent or empty");
  return operation.regions[i];
}

void Op::fail(const std::string& text, uint32_t code) const {
  const std::string place = operation.location.empty() ? "" : " ('" + std::string(operation.location) + "')";
  throw Error{code, std::string(operation.name) + " at byte " + std::to_string(operation.offset) + place + ": " + text};
}

}  // namespace thalweg::stablehlo
