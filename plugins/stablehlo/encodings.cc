#include "encodings.h"

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

namespace thalweg::stablehlo {
namespace {

constexpr int kMostNested = 64;  // entries that refer to entries
constexpr int kMostPlaces = 8;   // locations inside locations that are looked through
constexpr size_t kMostAxes = 64;
constexpr size_t kMostText = 200;
constexpr int64_t kDynamic = std::numeric_limits<int64_t>::min();

// Bytes of an element in a constant; 0: it has none.
uint64_t Bytes(Element e) {
  switch (e) {
    case Element::kNone:
    case Element::kTF32:
    case Element::kQuantised: return 0;
    case Element::kI16:
    case Element::kUI16:
    case Element::kBF16:
    case Element::kF16: return 2;
    case Element::kI32:
    case Element::kUI32:
    case Element::kF32: return 4;
    case Element::kI64:
    case Element::kUI64:
    case Element::kF64:
    case Element::kC64:
    case Element::kIndex: return 8;
    case Element::kC128: return 16;
    default: return 1;
  }
}

int Bits(Element e) {
  switch (e) {
    case Element::kBool: return 1;
    case Element::kI2:
    case Element::kUI2: return 2;
    case Element::kI4:
    case Element::kUI4:
    case Element::kF4E2M1FN: return 4;
    case Element::kF6E2M3FN:
    case Element::kF6E3M2FN: return 6;
    case Element::kTF32: return 19;
    default: return static_cast<int>(8 * Bytes(e));
  }
}

double HalfOf(uint64_t bits) {
  const int exponent = static_cast<int>((bits >> 10) & 31), mantissa = static_cast<int>(bits & 1023);
  const double sign = (bits & 0x8000) ? -1 : 1;
  if (exponent == 31) return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent ? std::ldexp(mantissa + 1024, exponent - 25) : std::ldexp(mantissa, -24));
}

double FloatOf(uint64_t bits) {
  const auto low = static_cast<uint32_t>(bits);
  float f;
  std::memcpy(&f, &low, sizeof f);
  return static_cast<double>(f);
}

double DoubleOf(uint64_t bits) {
  double d;
  std::memcpy(&d, &bits, sizeof d);
  return d;
}

// An integer of so many bits: one byte up to 8, else a signed number of variable length.
uint64_t Word(Cursor& c, int bits) { return bits <= 8 ? c.byte() : static_cast<uint64_t>(c.svarint()); }
double Real(Cursor& c) { return DoubleOf(Word(c, 64)); }

struct Deeper {
  explicit Deeper(int* d, const Cursor& at) : depth(d) {
    if (++*depth <= kMostNested) return;
    --*depth;
    at.fail("attributes and types are nested more than " + std::to_string(kMostNested) + " deep");
  }
  ~Deeper() { --*depth; }
  int* depth;
};

// Element types without parameters of VHLO, by code.
struct Code {
  uint64_t code;
  Element element;
};
constexpr Code kVhloElements[] = {
    {0, Element::kBool},        {2, Element::kBF16},        {3, Element::kF16},
    {4, Element::kF32},         {5, Element::kF64},         {6, Element::kF8E4M3FN},
    {7, Element::kF8E5M2},      {9, Element::kIndex},       {10, Element::kI4},
    {11, Element::kI8},         {12, Element::kI16},        {13, Element::kI32},
    {14, Element::kI64},        {15, Element::kUI4},        {16, Element::kUI8},
    {17, Element::kUI16},       {18, Element::kUI32},       {19, Element::kUI64},
    {27, Element::kF8E4M3FNUZ}, {28, Element::kF8E5M2FNUZ}, {29, Element::kF8E4M3B11FNUZ},
    {31, Element::kI2},         {32, Element::kUI2},        {34, Element::kTF32},
    {35, Element::kF8E4M3},     {36, Element::kF8E3M4},     {37, Element::kF4E2M1FN},
    {38, Element::kF6E2M3FN},   {39, Element::kF6E3M2FN},   {40, Element::kF8E8M0FNU},
};

Element ComplexOf(const Cursor& c, const Type& part) {
  if (part.kind == Type::Kind::kScalar && part.element == Element::kF32) return Element::kC64;
  if (part.kind == Type::Kind::kScalar && part.element == Element::kF64) return Element::kC128;
  c.fail("complex numbers of " + Text(part) + " are unknown");
}

}  // namespace

std::string_view Encodings::string(const Cursor& at, uint64_t index) const {
  if (index >= strings_.size()) at.fail("there is no string " + std::to_string(index) + "; there are " + std::to_string(strings_.size()));
  return strings_[index];
}

const Attribute* Encodings::attribute(const Cursor& at, uint64_t index) {
  if (index >= attributes_.size()) {
    at.fail("there is no attribute " + std::to_string(index) + "; there are " + std::to_string(attributes_.size()));
  }
  Entry<Attribute>& entry = attributes_[index];
  if (entry.made) return entry.made;
  if (entry.open) at.fail("attribute " + std::to_string(index) + " refers to itself");
  const Deeper deeper(&depth_, at);
  entry.open = true;
  Cursor c = entry.bytes;
  Attribute a;
  if (!entry.binary) {
    a.kind = Attribute::Kind::kOther;
    a.text = c.text().substr(0, kMostText);
  } else if (entry.dialect == "builtin") {
    Builtin(c, &a);
  } else if (entry.dialect == "vhlo") {
    Vhlo(c, &a);
  } else {  // shardings of sdy, for instance, which say nothing to one device
    a.kind = Attribute::Kind::kOther;
    a.text = "an attribute of another dialect";
    c.take(c.left());
  }
  if (!c.empty()) c.fail(std::to_string(c.left()) + " bytes are left behind attribute " + std::to_string(index));
  made_->owned.push_back(std::move(a));
  return entry.made = &made_->owned.back();
}

const Type* Encodings::type(const Cursor& at, uint64_t index) {
  if (index >= types_.size()) at.fail("there is no type " + std::to_string(index) + "; there are " + std::to_string(types_.size()));
  Entry<Type>& entry = types_[index];
  if (entry.made) return entry.made;
  if (entry.open) at.fail("type " + std::to_string(index) + " refers to itself");
  const Deeper deeper(&depth_, at);
  entry.open = true;
  Cursor c = entry.bytes;
  Type t;
  if (!entry.binary) {
    c.fail("type " + std::to_string(index) + " is written as text, '" + std::string(c.text().substr(0, kMostText)) +
           "'; portable modules use binary types only");
  }
  if (entry.dialect == "builtin") {
    Builtin(c, &t);
  } else if (entry.dialect == "vhlo") {
    Vhlo(c, &t);
  } else {
    c.fail("a type belongs to the dialect '" + std::string(entry.dialect) + "'; portable modules use vhlo and builtin only");
  }
  if (!c.empty()) c.fail(std::to_string(c.left()) + " bytes are left behind type " + std::to_string(index));
  made_->types.push_back(std::move(t));
  return entry.made = &made_->types.back();
}

// ---- Locations ----

std::string Encodings::Place(const Cursor& at, uint64_t index, int depth) {
  if (index >= attributes_.size()) at.fail("there is no location " + std::to_string(index));
  const Entry<Attribute>& entry = attributes_[index];
  if (!entry.binary || entry.dialect != "builtin" || depth > kMostPlaces) return "";
  Cursor c = entry.bytes;
  const auto text_of = [&](uint64_t i) -> std::string {
    if (i >= attributes_.size()) c.fail("there is no attribute " + std::to_string(i));
    Cursor s = attributes_[i].bytes;
    if (!attributes_[i].binary || attributes_[i].dialect != "builtin" || s.varint() != 2) return "";
    return std::string(string(s, s.varint()).substr(0, kMostText));
  };
  switch (c.varint()) {
    case 10: return Place(c, c.varint(), depth + 1);  // a call: the callee
    case 11: {
      const std::string file = text_of(c.varint());
      return file + ":" + std::to_string(c.varint());
    }
    case 12:
    case 13: return c.varint() ? Place(c, c.varint(), depth + 1) : "";  // the first of several
    case 14: {
      const std::string name = text_of(c.varint());
      return name.empty() ? Place(c, c.varint(), depth + 1) : name;
    }
    default: return "";
  }
}

std::string_view Encodings::location(const Cursor& at, uint64_t index) {
  if (index >= attributes_.size()) at.fail("there is no location " + std::to_string(index));
  Entry<Attribute>& entry = attributes_[index];
  if (!entry.located) {
    const std::string place = Place(at, index, 0);
    entry.located = true;
    if (!place.empty()) entry.place = made_->names.emplace_back(place);
  }
  return entry.place;
}

// ---- Parts ----

std::vector<const Attribute*> Encodings::attributes(Cursor& c) {
  std::vector<const Attribute*> all(c.count("attributes"));
  for (const Attribute*& a : all) a = attribute(c);
  return all;
}

std::vector<const Type*> Encodings::types(Cursor& c) {
  std::vector<const Type*> all(c.count("types"));
  for (const Type*& t : all) t = type(c);
  return all;
}

Dims Encodings::dims(Cursor& c) {
  Dims all(c.count("sizes"));
  if (all.size() > kMostAxes)
    c.fail("a shape has " + std::to_string(all.size()) + " axes; at most " + std::to_string(kMostAxes) + " are accepted");
  for (int64_t& d : all) {
    d = c.svarint();
    if (d == kDynamic) d = -1;
    if (d < -1) c.fail("a size of " + std::to_string(d) + " is negative");
  }
  return all;
}

void Encodings::Fields(Cursor& c, Attribute* a) {
  a->kind = Attribute::Kind::kDictionary;
  const uint64_t n = c.count("fields");
  for (uint64_t i = 0; i < n; ++i) {
    const Attribute* name = attribute(c);
    if (name->kind != Attribute::Kind::kString) c.fail("the name of a field is no string");
    a->fields.push_back({name->text, attribute(c)});
  }
}

void Encodings::Number(Cursor& c, Attribute* a, bool real) {
  a->type = type(c);
  const Element e = a->type->element;
  if (a->type->kind != Type::Kind::kScalar) c.fail("a number has the type " + Text(*a->type));
  if (real) {
    if (!IsFloat(e)) c.fail("a real number has the type " + Text(*a->type));
    const uint64_t bits = Word(c, Bits(e));
    a->kind = Attribute::Kind::kFloat;
    switch (e) {
      case Element::kF64: a->real = DoubleOf(bits); return;
      case Element::kF32: a->real = FloatOf(bits); return;
      case Element::kBF16: a->real = FloatOf(bits << 16); return;
      case Element::kF16: a->real = HalfOf(bits); return;
      default:
        a->kind = Attribute::Kind::kOther;
        a->text = "a number of another type";
        return;
    }
  }
  const bool is_signed = IsSigned(e) || e == Element::kIndex;
  if (!is_signed && !IsUnsigned(e) && e != Element::kBool) c.fail("an integer has the type " + Text(*a->type));
  const int bits = Bits(e);
  uint64_t word = Word(c, bits);
  if (bits < 64) {
    word &= (uint64_t{1} << bits) - 1;
    if (is_signed && (word >> (bits - 1))) word |= ~uint64_t{0} << bits;
  }
  a->kind = e == Element::kBool ? Attribute::Kind::kBool : Attribute::Kind::kInteger;
  a->integer = static_cast<int64_t>(word);
}

void Encodings::Enum(Cursor& c, Attribute* a, std::initializer_list<const char*> cases) {
  const uint64_t i = c.varint();
  if (i >= cases.size() || !*(cases.begin() + i)) c.fail("an enum has the unknown case " + std::to_string(i));
  a->kind = Attribute::Kind::kEnum;
  a->text = *(cases.begin() + i);
}

void Encodings::Constant(Cursor& c, Attribute* a) {
  a->kind = Attribute::Kind::kElements;
  a->type = type(c);
  const std::string_view data = c.take(c.varint());
  if (!a->type->tensor() || !a->type->static_shape()) c.fail("a constant has the type " + Text(*a->type));
  Element e = a->type->element;
  if (e == Element::kQuantised) e = a->type->quantised->storage;
  const uint64_t size = Bytes(e);
  if (!size) c.fail("a constant has the type " + Text(*a->type));
  // An upper bound that still says whether the data fit: more elements than bytes can only be a splat or bits.
  uint64_t n = 1;
  for (const int64_t d : a->type->dims) {
    if (__builtin_mul_overflow(n, static_cast<uint64_t>(d), &n))
      c.fail("the sizes of a constant of type " + Text(*a->type) + " are too large");
  }
  Elements& made = a->elements;
  made.keep = made_->bytes;
  const auto own = [&](uint64_t bytes) {
    auto copy = std::make_shared<std::vector<uint8_t>>(bytes);
    uint8_t* to = copy->data();
    made.data = to;
    made.bytes = bytes;
    made.keep = std::move(copy);
    return to;
  };
  if (e == Element::kBool) {
    // Bits, or bytes in some versions. A splat of true is a byte of ones.
    const auto bit = [&](uint64_t i) { return static_cast<uint8_t>((static_cast<uint8_t>(data[i / 8]) >> (i % 8)) & 1); };
    if (data.size() == 1 && (n > 8 || static_cast<uint8_t>(data[0]) == 0xff || data[0] == 0)) {
      made.splat = n != 1;
      *own(1) = data[0] != 0;
    } else if (data.size() == n / 8 + (n % 8 != 0)) {
      uint8_t* to = own(n);
      for (uint64_t i = 0; i < n; ++i) to[i] = bit(i);
    } else if (data.size() == n) {
      uint8_t* to = own(n);
      for (uint64_t i = 0; i < n; ++i) to[i] = data[i] != 0;
    } else {
      c.fail("a constant of type " + Text(*a->type) + " has " + std::to_string(data.size()) + " bytes");
    }
    return;
  }
  made.splat = n != 1 && data.size() == size;
  if (!made.splat && (n > data.size() || n * size != data.size())) {
    c.fail("a constant of type " + Text(*a->type) + " has " + std::to_string(data.size()) + " bytes");
  }
  made.data = data.data();
  made.bytes = data.size();
  if (e == Element::kI2 || e == Element::kI4) {  // the bits above are not defined
    uint8_t* to = own(data.size());
    const int shift = 8 - Bits(e);
    for (size_t i = 0; i < data.size(); ++i)
      to[i] = static_cast<uint8_t>(static_cast<int8_t>(static_cast<uint8_t>(data[i]) << shift) >> shift);
    return;
  }
  const uint64_t alignment = size < 8 ? size : 8;
  if (!data.empty() && reinterpret_cast<uintptr_t>(data.data()) % alignment) std::memcpy(own(data.size()), data.data(), data.size());
}

void Encodings::Quantise(Cursor& c, Type* t, bool per_axis) {
  auto q = std::make_shared<Quantised>();
  q->is_signed = (c.varint() & 1) != 0;
  const Type *storage = type(c), *expressed = type(c);
  if (storage->kind != Type::Kind::kScalar || expressed->kind != Type::Kind::kScalar)
    c.fail("a quantised element is made of " + Text(*storage));
  q->storage = storage->element;
  q->expressed = expressed->element;
  if (q->storage == Element::kQuantised) c.fail("a quantised element is made of quantised elements");
  if (per_axis) {
    q->axis = static_cast<int64_t>(c.varint());
    if (q->axis < 0 || static_cast<size_t>(q->axis) >= kMostAxes) c.fail("elements are quantised along axis " + std::to_string(q->axis));
  } else {
    q->scales = {Real(c)};
    q->zero_points = {c.svarint()};
  }
  q->storage_min = c.svarint();
  q->storage_max = c.svarint();
  if (per_axis) {
    q->scales.resize(c.count("scales"));
    for (double& s : q->scales) s = Real(c);
    q->zero_points.resize(c.count("zero points"));
    for (int64_t& z : q->zero_points) z = c.svarint();
    if (q->scales.size() != q->zero_points.size()) c.fail("a quantised element has other numbers of scales and zero points");
  }
  t->kind = Type::Kind::kScalar;
  t->element = Element::kQuantised;
  t->quantised = std::move(q);
}

void Encodings::Tensor(Cursor& c, Type* t) {
  t->kind = Type::Kind::kTensor;
  t->dims = dims(c);
  const Type* element = type(c);
  if (element->kind != Type::Kind::kScalar) c.fail("a tensor has elements of type " + Text(*element));
  t->element = element->element;
  t->quantised = element->quantised;
}

// ---- MLIR's builtin dialect ----

void Encodings::Builtin(Cursor& c, Attribute* a) {
  const uint64_t code = c.varint();
  switch (code) {
    case 0:
      a->kind = Attribute::Kind::kArray;
      a->array = attributes(c);
      return;
    case 1: Fields(c, a); return;
    case 2:
    case 3:
      a->kind = Attribute::Kind::kString;
      a->text = string(c, c.varint());
      if (code == 3) a->type = type(c);
      return;
    case 4:
    case 5: {
      const Attribute* name = attribute(c);
      if (name->kind != Attribute::Kind::kString) c.fail("the name of a symbol is no string");
      a->kind = Attribute::Kind::kSymbol;
      a->text = name->text;
      if (code == 5) a->array = attributes(c);
      return;
    }
    case 6:
      a->kind = Attribute::Kind::kType;
      a->type = type(c);
      return;
    case 7: a->kind = Attribute::Kind::kUnit; return;
    case 8: Number(c, a, false); return;
    case 9: Number(c, a, true); return;
    case 18: Constant(c, a); return;
    default:
      // Locations among others: nothing in an operation refers to them but its place.
      a->kind = Attribute::Kind::kOther;
      a->text = "another attribute of MLIR";
      c.take(c.left());
  }
}

void Encodings::Builtin(Cursor& c, Type* t) {
  const uint64_t code = c.varint();
  const auto scalar = [&](Element e) {
    t->kind = Type::Kind::kScalar;
    t->element = e;
  };
  switch (code) {
    case 0: {
      const uint64_t v = c.varint(), width = v >> 2;
      const bool is_unsigned = (v & 3) == 2;
      switch (width) {
        case 1: scalar(Element::kBool); return;
        case 2: scalar(is_unsigned ? Element::kUI2 : Element::kI2); return;
        case 4: scalar(is_unsigned ? Element::kUI4 : Element::kI4); return;
        case 8: scalar(is_unsigned ? Element::kUI8 : Element::kI8); return;
        case 16: scalar(is_unsigned ? Element::kUI16 : Element::kI16); return;
        case 32: scalar(is_unsigned ? Element::kUI32 : Element::kI32); return;
        case 64: scalar(is_unsigned ? Element::kUI64 : Element::kI64); return;
        default: c.fail("integers of " + std::to_string(width) + " bits are unknown");
      }
    }
    case 1: scalar(Element::kIndex); return;
    case 2:
      t->kind = Type::Kind::kFunction;
      t->types = types(c);
      t->results = types(c);
      return;
    case 3: scalar(Element::kBF16); return;
    case 4: scalar(Element::kF16); return;
    case 5: scalar(Element::kF32); return;
    case 6: scalar(Element::kF64); return;
    case 9: scalar(ComplexOf(c, *type(c))); return;
    case 12: t->kind = Type::Kind::kNone; return;
    case 13: Tensor(c, t); return;
    case 15:
      t->kind = Type::Kind::kTuple;
      t->types = types(c);
      return;
    default: c.fail("MLIR type " + std::to_string(code) + " is unknown in a portable module");
  }
}

// ---- VHLO ----

void Encodings::Vhlo(Cursor& c, Attribute* a) {
  const uint64_t code = c.varint();
  switch (code) {
    case 1:
      a->kind = Attribute::Kind::kArray;
      a->array = attributes(c);
      return;
    case 2:
      a->kind = Attribute::Kind::kBool;
      a->integer = static_cast<int64_t>(c.varint());
      if (a->integer != 0 && a->integer != 1) c.fail("a bool is " + std::to_string(a->integer));
      return;
    case 3: Enum(c, a, {"EQ", "NE", "GE", "GT", "LE", "LT"}); return;
    case 4: Enum(c, a, {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}); return;
    case 5:
      Enum(c, a,
           {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
            "API_VERSION_TYPED_FFI"});
      return;
    case 6: Fields(c, a); return;
    case 7: Enum(c, a, {"FFT", "IFFT", "RFFT", "IRFFT"}); return;
    case 8: Number(c, a, true); return;
    case 9: Number(c, a, false); return;
    case 10: {
      a->kind = Attribute::Kind::kAlias;
      const auto indices = [&] {
        Attribute list;
        list.kind = Attribute::Kind::kArray;
        const uint64_t n = c.count("indices");
        for (uint64_t i = 0; i < n; ++i) {
          Attribute index;
          index.kind = Attribute::Kind::kInteger;
          index.integer = c.svarint();
          list.array.push_back(&made_->owned.emplace_back(std::move(index)));
        }
        a->array.push_back(&made_->owned.emplace_back(std::move(list)));
      };
      indices();
      a->integer = c.svarint();
      indices();
      return;
    }
    case 11: Enum(c, a, {"DEFAULT", "HIGH", "HIGHEST"}); return;
    case 12: Enum(c, a, {"DEFAULT", "THREE_FRY", "PHILOX"}); return;
    case 13: Enum(c, a, {nullptr, "UNIFORM", "NORMAL"}); return;
    case 14:
      a->kind = Attribute::Kind::kString;
      a->text = string(c, c.varint());
      return;
    case 15: Constant(c, a); return;
    case 16: Enum(c, a, {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}); return;
    case 17:
      a->kind = Attribute::Kind::kType;
      a->type = type(c);
      return;
    case 18: {  // the bounds of a tensor's sizes: read as its encoding
      a->kind = Attribute::Kind::kOther;
      a->text = "bounds of a type";
      const uint64_t n = c.count("bounds");
      for (uint64_t i = 0; i < n; ++i) c.svarint();
      return;
    }
    case 19: Enum(c, a, {"DEFAULT", "HIGHEST", "TOLERANCE"}); return;
    default:
      if (code > 25) {
        c.fail("VHLO attribute " + std::to_string(code) +
               " is unknown; versions up to 1.20 of StableHLO are supported, export the model for "
               "one of them");
      }
      // Accuracies and positions on meshes of devices.
      a->kind = Attribute::Kind::kOther;
      a->text = code == 20 ? "the accuracy of a result" : "a mesh of devices";
      c.take(c.left());
  }
}

void Encodings::Vhlo(Cursor& c, Type* t) {
  const uint64_t code = c.varint();
  for (const Code& known : kVhloElements) {
    if (known.code != code) continue;
    t->kind = Type::Kind::kScalar;
    t->element = known.element;
    return;
  }
  switch (code) {
    case 1:
      t->kind = Type::Kind::kScalar;
      t->element = ComplexOf(c, *type(c));
      return;
    case 8:
      t->kind = Type::Kind::kFunction;
      t->types = types(c);
      t->results = types(c);
      return;
    case 20: Tensor(c, t); return;
    case 21: {
      const uint64_t encoding = c.varint();
      Tensor(c, t);
      if (encoding >= attributes_.size()) c.fail("there is no attribute " + std::to_string(encoding));
      Cursor e = attributes_[encoding].bytes;
      if (attributes_[encoding].binary && attributes_[encoding].dialect == "vhlo" && e.varint() == 18) {
        t->bounds = dims(e);
        if (t->bounds.size() != t->dims.size())
          c.fail("a tensor of type " + Text(*t) + " has " + std::to_string(t->bounds.size()) + " bounds");
      }
      return;
    }
    case 22: t->kind = Type::Kind::kToken; return;
    case 23:
      t->kind = Type::Kind::kTuple;
      t->types = types(c);
      return;
    case 24: Quantise(c, t, false); return;
    case 25: {
      const Type* element = type(c);
      t->kind = Type::Kind::kTensor;
      t->ranked = false;
      t->element = element->element;
      t->quantised = element->quantised;
      return;
    }
    case 26:
    case 33: t->kind = Type::Kind::kNone; return;
    case 30: Quantise(c, t, true); return;
    case 41:
      Tensor(c, t);
      t->kind = Type::Kind::kBuffer;
      return;
    case 42:  // the result of an op that has been started
      t->kind = Type::Kind::kTuple;
      t->types = types(c);
      return;
    default:
      c.fail("VHLO type " + std::to_string(code) +
             " is unknown; versions up to 1.20 of StableHLO are supported, export the model for one of "
             "them");
  }
}

}  // namespace thalweg::stablehlo
