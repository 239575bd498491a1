#include "tests/fuzz/op/use.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "tests/fuzz/broken.h"

namespace thalweg::fuzz {
namespace {

// Limit for all inputs together, so that a use of any op ends soon under a sanitizer.
constexpr int64_t kMostElements = 1 << 13;
constexpr int kMostAxes = 12;

constexpr int64_t kEdges[] = {INT64_MIN,
                              INT64_MIN + 1,
                              INT64_MAX,
                              INT64_MAX - 1,
                              INT32_MIN,
                              int64_t{INT32_MIN} - 1,
                              INT32_MAX,
                              int64_t{INT32_MAX} + 1,
                              int64_t{1} << 32,
                              -(int64_t{1} << 32),
                              int64_t{1} << 40,
                              int64_t{1} << 62,
                              -100,
                              255,
                              256,
                              1000,
                              32767,
                              -32768,
                              65536,
                              (int64_t{1} << 53) + 1};
constexpr int64_t kLengths[] = {INT32_MAX, int64_t{1} << 31, int64_t{1} << 40, int64_t{1} << 54, int64_t{1} << 59, 1000, 4096, 255};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRealEdges[] = {kInfinity,
                                 -kInfinity,
                                 std::numeric_limits<double>::quiet_NaN(),
                                 -0.0,
                                 3.4028234663852886e38,
                                 -3.4028234663852886e38,
                                 1.1754943508222875e-38,
                                 1e-45,
                                 -1e-45,
                                 1.7976931348623157e308,
                                 65504,
                                 6e-8,
                                 1e10,
                                 1e-10,
                                 0.1,
                                 -1.0 / 3,
                                 2147483648.0,
                                 9007199254740993.0,
                                 1e300,
                                 4.9e-324,
                                 -1e30,
                                 20,
                                 -20,
                                 88.8};
constexpr const char* kTexts[] = {"",
                                  "a",
                                  "1",
                                  "-2.5",
                                  "text",
                                  "abc,def",
                                  "0x1f",
                                  "nan",
                                  "YWJj",
                                  "%d",
                                  "\xff\xfe",
                                  "na\xc3\xafve",
                                  "1e400",
                                  "(",
                                  "[a-z]+",
                                  "\\1",
                                  "ij,jk->ik",
                                  "ii->i",
                                  "...i->...",
                                  "NHWC",
                                  "SAME",
                                  "..",
                                  "/etc/passwd",
                                  "v0",
                                  "a b  c",
                                  "99999999999999999999",
                                  " 7 ",
                                  "*"};

class Reader {
 public:
  Reader(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  size_t at() const { return at_; }
  uint8_t Byte() { return at_ < size_ ? data_[at_++] : 0; }
  uint64_t Bytes(int n) {
    uint64_t v = 0;
    for (int i = 0; i < n; ++i) v |= uint64_t{Byte()} << 8 * i;
    return v;
  }
  int64_t Number() {
    const uint8_t b = Byte();
    return b < 208 ? b - 16 : b == 255 ? int64_t(Bytes(8)) : kEdges[(b - 208) % std::size(kEdges)];
  }
  double Real(bool* plain) {
    const uint8_t b = Byte();
    if (b >= 224) *plain = false;
    return b < 224 ? (b - 112) / 8.0 : kRealEdges[(b - 224) % std::size(kRealEdges)];
  }
  std::string Text() {
    const uint8_t b = Byte();
    if (b < 128) return kTexts[b % std::size(kTexts)];
    std::string text(b - 128, '\0');
    for (char& c : text) c = char(Byte());
    return text;
  }
  int64_t Length() {
    const uint8_t b = Byte();
    return b < 248 ? b : kLengths[b - 248];
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

template <class T>
T Clamped(int64_t v) {
  if constexpr (sizeof(T) == 8) return T(v);
  return T(std::clamp<int64_t>(v, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

uint16_t Half(double value) {
  const _Float16 h = _Float16(value);
  uint16_t bits;
  std::memcpy(&bits, &h, 2);
  return bits;
}

uint16_t Bfloat16(double value) {
  const float f = float(value);
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return uint16_t(bits >> 16 | (f != f));
}

template <class T>
void Store(unsigned char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// Reads one element from the bytes.
void ReadElement(Reader* in, uint32_t dtype, unsigned char* at, bool* plain) {
  switch (dtype) {
    case TW_FLOAT: return Store(at, float(in->Real(plain)));
    case TW_DOUBLE: return Store(at, in->Real(plain));
    case TW_HALF: return Store(at, Half(in->Real(plain)));
    case TW_BFLOAT16: return Store(at, Bfloat16(in->Real(plain)));
    case TW_COMPLEX64: Store(at, float(in->Real(plain))); return Store(at + 4, float(in->Real(plain)));
    case TW_COMPLEX128: Store(at, in->Real(plain)); return Store(at + 8, in->Real(plain));
    case TW_BOOL: return Store(at, uint8_t(in->Byte() & 1));
    case TW_INT32:
    case TW_QINT32: return Store(at, Clamped<int32_t>(in->Number()));
    case TW_INT64:
    case TW_UINT64: return Store(at, in->Number());
    case TW_UINT32: return Store(at, Clamped<uint32_t>(in->Number()));
    case TW_INT16:
    case TW_QINT16: return Store(at, Clamped<int16_t>(in->Number()));
    case TW_UINT16:
    case TW_QUINT16: return Store(at, Clamped<uint16_t>(in->Number()));
    case TW_INT8:
    case TW_QINT8: return Store(at, Clamped<int8_t>(in->Number()));
    case TW_INT4: return Store(at, int8_t(std::clamp<int64_t>(in->Number(), -8, 7)));
    case TW_INT2: return Store(at, int8_t(std::clamp<int64_t>(in->Number(), -2, 1)));
    case TW_UINT4: return Store(at, uint8_t(std::clamp<int64_t>(in->Number(), 0, 15)));
    case TW_UINT2: return Store(at, uint8_t(std::clamp<int64_t>(in->Number(), 0, 3)));
    case TW_UINT8:
    case TW_QUINT8: return Store(at, Clamped<uint8_t>(in->Number()));
    default: return Store(at, in->Byte());  // 8-bit floats
  }
}

void Fill(Reader* in, uint32_t dtype, tw_tensor* t, bool* plain) {
  const uint64_t given = in->Byte(), count = tw_tensor_count(t), bytes = tw_dtype_bytes(dtype);
  if (dtype == TW_STRING) {
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < given; ++i) texts.push_back(in->Text());
    for (uint64_t i = 0; i < count && given; ++i) {
      const std::string& text = texts[i % given];
      Must(tw_tensor_set_string(t, i, text.data(), text.size()), "setting a string");
    }
    return;
  }
  std::vector<unsigned char> elements(given * bytes);
  for (uint64_t i = 0; i < given; ++i) ReadElement(in, dtype, elements.data() + i * bytes, plain);
  auto* data = static_cast<unsigned char*>(tw_tensor_mutable_data(t));
  for (uint64_t i = 0; i < count && given; ++i) std::memcpy(data + i * bytes, elements.data() + i % given * bytes, bytes);
}

// Reads sizes with at most `most` elements; if a size is 0, the other axes may have any length.
std::vector<int64_t> ReadDims(Reader* in, int64_t most) {
  std::vector<int64_t> dims(in->Byte() % (kMostAxes + 1));
  for (int64_t& d : dims) d = in->Length();
  const bool empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
  int64_t left = empty ? int64_t{1} << 59 : std::max<int64_t>(most, 1);
  for (int64_t& d : dims) {
    if (d > left) d = empty ? left : 1 + d % std::min<int64_t>(left, 7);
    if (d > 0) left /= d;
  }
  return dims;
}

class UseReader {
 public:
  UseReader(const uint8_t* data, size_t size) : in_(data, size) {}

  Use Read(const std::vector<OpSchema>& ops, size_t* taken) {
    const uint32_t hash = uint32_t(in_.Bytes(4));
    const auto found = std::lower_bound(ops.begin(), ops.end(), hash, [](const OpSchema& op, uint32_t h) { return op.hash < h; });
    use_.op = found == ops.end() ? &ops[0] : &*found;
    for (const AttrSchema& a : use_.op->attrs) ReadAttr(a);
    for (const Argument& x : use_.op->inputs) ReadInputs(x);
    *taken = in_.at();
    return std::move(use_);
  }

 private:
  void ReadAttr(const AttrSchema& a) {
    using Role = AttrSchema::Role;
    AttrValue v;
    v.schema = &a;
    const bool given = a.role == Role::kType     ? ReadType(a, &v)
                       : a.role == Role::kTypes  ? ReadTypes(a, &v)
                       : a.role == Role::kNumber ? ReadCount(a, &v)
                                                 : ReadValue(a, &v);
    if (given) use_.attrs.push_back(std::move(v));
  }

  bool ReadType(const AttrSchema& a, AttrValue* v) {
    const uint8_t b = in_.Byte();
    const uint32_t dtype = b & 128 ? 1 + (b & 63) % 32 : a.types[(b & 63) % a.types.size()];
    types_[a.name] = {dtype};
    v->types = {dtype};
    return !(b & 64);
  }

  bool ReadTypes(const AttrSchema& a, AttrValue* v) {
    const uint8_t b = in_.Byte();
    for (int n = b & 7; n > 0; --n) v->types.push_back(a.types[in_.Byte() % a.types.size()]);
    types_[a.name] = v->types;
    return !(b & 8);
  }

  bool ReadCount(const AttrSchema& a, AttrValue* v) {
    const uint8_t b = in_.Byte();
    counts_[a.name] = b & 15;
    v->numbers = {b & 32 ? in_.Number() : b & 15};
    return !(b & 16);
  }

  bool ReadValue(const AttrSchema& a, AttrValue* v) {
    const uint8_t b = in_.Byte();
    if (b == 0) return false;
    const int n = a.list ? in_.Byte() % 16 : 1;
    if (a.kind == "shape" && !a.list) {
      v->unknown = b == 255;
      for (int i = (b - 1) % 16; i > 0; --i) v->numbers.push_back(in_.Number());
    }
    for (int i = 0; i < n && a.kind == "shape" && a.list; ++i) {
      std::vector<int64_t> dims;
      for (int k = b > 127 ? in_.Byte() % 16 : 0; k > 0; --k) dims.push_back(in_.Number());
      v->shapes.push_back(std::move(dims));
    }
    v->unknown = v->unknown || (a.kind == "shape" && a.list && b <= 127);
    if (a.kind == "tensor")
      v->tensor = ReadTensor(types_.count("dtype") ? DtypeOf("dtype") : uint32_t{TW_UINT8}, nullptr);  // uint8: a colour
    for (int i = 0; i < n; ++i) {
      if (a.kind == "int") v->numbers.push_back(in_.Number());
      if (a.kind == "bool") v->numbers.push_back(in_.Byte() & 1);
      if (a.kind == "float") v->reals.push_back(in_.Real(&use_.plain));
      if (a.kind == "string" || a.kind == "func") v->texts.push_back(a.texts.empty() || b > 127 ? in_.Text() : Choice(a.texts));
    }
    return true;
  }

  const std::string& Choice(const std::vector<std::string>& texts) { return texts[in_.Byte() % texts.size()]; }

  uint32_t DtypeOf(const std::string& attr, size_t i = 0) const {
    const auto found = types_.find(attr);
    return found == types_.end() || found->second.empty() ? uint32_t{TW_FLOAT} : found->second[i % found->second.size()];
  }

  void ReadInputs(const Argument& x) {
    const auto types = types_.find(x.list_attr);
    size_t n = 1;
    if (!x.number_attr.empty()) n = size_t(counts_[x.number_attr]);
    if (types != types_.end()) n = types->second.size();
    for (size_t i = 0; i < n; ++i) {
      const uint32_t told = x.dtype ? x.dtype : types != types_.end() ? types->second[i] : DtypeOf(x.type_attr);
      use_.inputs.push_back(told == TW_RESOURCE || x.is_ref ? ReadHandle(x, told) : told == TW_VARIANT ? ReadList(x) : ReadPlain(x, told));
    }
  }

  Input ReadList(const Argument& x) {
    Input input;
    input.argument = &x;
    input.is_list = true;
    const uint8_t b = in_.Byte();
    input.making = Making(b % uint8_t(Making::kCount));
    input.knows_shape = b & 4;
    const uint32_t told = DtypeOf("element_dtype");
    input.value = ReadTensor(!(b & 8) ? told : told == TW_INT32 ? uint32_t{TW_DOUBLE} : uint32_t{TW_INT32}, &input.known);
    return input;
  }

  Input ReadPlain(const Argument& x, uint32_t told) {
    Input input;
    input.argument = &x;
    const uint8_t b = in_.Byte();
    input.value = ReadTensor(b == 0 ? told : 1 + (b - 1) % 32u, &input.known);
    return input;
  }

  // Returns the first attribute of the op that gives types.
  std::string FirstType() const {
    for (const AttrSchema& a : use_.op->attrs) {
      if (types_.contains(a.name)) return a.name;
    }
    return "";
  }

  // The variable has the type that the op declares; most ops use one of these names for it.
  Input ReadHandle(const Argument& x, uint32_t told) {
    Input input;
    input.argument = &x;
    input.state = State(in_.Byte() % uint8_t(State::kCount));
    if (!x.is_ref) told = types_.contains("dtype") ? DtypeOf("dtype") : DtypeOf("T");
    if (!x.opens.empty() && !types_.empty()) told = DtypeOf(FirstType());
    if (input.state == State::kOtherType) told = told == TW_INT32 ? TW_DOUBLE : TW_INT32;
    input.value = ReadTensor(told, &input.known);
    return input;
  }

  // Returns null for types of which no program can make tensors.
  Tensor ReadTensor(uint32_t dtype, uint8_t* known) {
    const uint8_t b = in_.Byte();
    if (known) *known = b;
    const std::vector<int64_t> dims = ReadDims(&in_, left_);
    tw_tensor* t = nullptr;
    if (Take(tw_tensor_create(dtype, dims.data(), uint32_t(dims.size()), &t)) != TW_OK) return nullptr;
    left_ -= int64_t(tw_tensor_count(t));
    Fill(&in_, dtype, t, &use_.plain);
    return Tensor(t);
  }

  Reader in_;
  Use use_;
  std::map<std::string, std::vector<uint32_t>> types_;  // by the attribute that gives them
  std::map<std::string, int64_t> counts_;
  int64_t left_ = kMostElements;
};

std::string Shown(const tw_tensor* t) {
  if (!t) return "nothing";
  std::string out = std::string(tw_dtype_name(tw_tensor_dtype(t))) + "[";
  for (uint32_t i = 0; i < tw_tensor_rank(t); ++i) out += (i ? ", " : "") + std::to_string(tw_tensor_dim(t, i));
  tw_buffer* text = nullptr;
  Must(tw_tensor_text(t, 40, &text), "a tensor's text");
  out += "] " + std::string(static_cast<const char*>(tw_buffer_data(text)), size_t(tw_buffer_bytes(text)));
  tw_buffer_release(text);
  return out;
}

}  // namespace

Use ReadUse(const std::vector<OpSchema>& ops, const uint8_t* data, size_t size, size_t* taken) {
  return UseReader(data, size).Read(ops, taken);
}

std::string Shown(const Use& use) {
  std::string out = use.op->name + "(";
  for (const Input& x : use.inputs) {
    out += "\n  " + x.argument->name + " (known " + std::to_string(x.known) + "): ";
    if (x.IsHandle())
      out += (x.argument->opens.empty() ? "variable" : x.argument->opens) + ", state " + std::to_string(int(x.state)) + ", of ";
    if (x.is_list) out += "list, making " + std::to_string(int(x.making)) + (x.knows_shape ? ", with its shape, of " : ", of ");
    out += Shown(x.value.get());
  }
  for (const AttrValue& a : use.attrs) {
    out += "\n  " + a.schema->name + " =";
    for (int64_t v : a.numbers) out += " " + std::to_string(v);
    for (double v : a.reals) out += " " + std::to_string(v);
    for (const std::string& v : a.texts) out += " '" + v + "'";
    for (uint32_t v : a.types) out += std::string(" ") + tw_dtype_name(v);
    if (a.tensor) out += " " + Shown(a.tensor.get());
    if (a.unknown) out += " of unknown rank";
  }
  return out + ")";
}

}  // namespace thalweg::fuzz
