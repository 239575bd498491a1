#include "json_tensor.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base64.h"
#include "datatype.h"
#include "http_error.h"
#include "parse_json.h"
#include "utf8.h"

namespace thalweg::cli::serve {
namespace {

using nlohmann::json;

constexpr uint64_t kMostEmpty = 64 << 10;  // lists that are written of an output without values, whose sizes a request may choose

constexpr uint64_t kHeapBlock = 16;  // the heap's own share of a block

// Returns the number of elements; nothing for more than there can be.
std::optional<uint64_t> CountOfDims(const std::vector<int64_t>& dims) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  uint64_t count = 1;
  for (const int64_t dim : dims) {
    if (__builtin_mul_overflow(count, uint64_t(dim), &count)) return std::nullopt;
  }
  return count;
}

// ---- Reading ----

// Appends the leaves of nested lists as elements of a tensor.
class Reader {
 public:
  Reader(uint32_t dtype, const std::vector<int64_t>& dims, bool base64, const std::string& where, Charge* charge)
      : dtype_(dtype), base64_(base64), where_(where), charge_(charge) {
    charge->Add(TensorBytes(dtype, CountOfDims(dims).value_or(UINT64_MAX)));
    tw_tensor* made = nullptr;
    tw::raise(tw_tensor_create(dtype, dims.data(), uint32_t(dims.size()), &made));
    tensor_ = tw::Tensor::adopt(made);
    if (dtype != TW_STRING) to_ = static_cast<char*>(tw_tensor_mutable_data(made));
    left_ = tensor_.count();
  }
  // REQUIRES: the lists hold as many values as the tensor.
  void Add(const json& value) {
    if (value.is_array()) {
      for (const json& item : value) Add(item);
      return;
    }
    if (left_ == 0) Wrong(where_, "there are more values than the shape has");
    --left_;
    Element(value);
    ++at_;
  }
  tw::Tensor Take() {
    if (left_ > 0) Wrong(where_, "there are " + std::to_string(at_) + " values where the shape has " + std::to_string(at_ + left_));
    return std::move(tensor_);
  }

 private:
  [[noreturn]] void Not(const json& value) const {
    Wrong(where_, "value " + std::to_string(at_) + " is " + Shown(value) + ", which is no " + DatatypeName(dtype_));
  }
  template <class T>
  void Store(T value) {
    std::memcpy(to_, &value, sizeof(T));
    to_ += sizeof(T);
  }
  template <class T>
  void Integer(const json& value) {
    if (value.is_number_unsigned()) {
      const uint64_t number = value.get<uint64_t>();
      if (number > uint64_t(std::numeric_limits<T>::max())) Not(value);
      return Store(T(number));
    }
    if (!value.is_number_integer()) Not(value);
    const int64_t number = value.get<int64_t>();
    // A negative number here: the parser makes all others unsigned.
    if (std::is_unsigned_v<T> || number < int64_t(std::numeric_limits<T>::min())) Not(value);
    Store(T(number));
  }
  double Real(const json& value) const {
    if (!value.is_number()) Not(value);
    return value.get<double>();
  }
  void Element(const json& value) {
    switch (dtype_) {
      case TW_BOOL: return value.is_boolean() ? Store(uint8_t(value.get<bool>())) : Not(value);
      case TW_UINT8: return Integer<uint8_t>(value);
      case TW_UINT16: return Integer<uint16_t>(value);
      case TW_UINT32: return Integer<uint32_t>(value);
      case TW_UINT64: return Integer<uint64_t>(value);
      case TW_INT8: return Integer<int8_t>(value);
      case TW_INT16: return Integer<int16_t>(value);
      case TW_INT32: return Integer<int32_t>(value);
      case TW_INT64: return Integer<int64_t>(value);
      case TW_DOUBLE: return Store(Real(value));
      case TW_FLOAT: return Float(value, float(Real(value)));
      case TW_HALF: {
        const uint16_t half = FloatToHalf(float(Real(value)));
        if ((half & 0x7fff) == 0x7c00) Not(value);
        return Store(half);
      }
      case TW_BFLOAT16: {
        const uint16_t bits = FloatToBfloat16(float(Real(value)));
        if ((bits & 0x7fff) == 0x7f80) Not(value);
        return Store(bits);
      }
      default: return Text(value);
    }
  }
  void Float(const json& value, float number) {
    if (std::isinf(number)) Not(value);  // the text was finite
    Store(number);
  }
  void Text(const json& value) {
    if (value.is_string()) return Set(value.get_ref<const std::string&>());
    const json* packed = base64_ && value.is_object() && value.size() == 1 ? Member(value, "b64") : nullptr;
    if (!packed || !packed->is_string()) Not(value);
    const auto& text = packed->get_ref<const std::string&>();
    charge_->Add(FromBase64Bytes(text));
    const auto decoded = FromBase64(text);
    if (!decoded) Wrong(where_, "value " + std::to_string(at_) + ": " + Shown(*packed) + " is no base64");
    Set(*decoded);
    charge_->Remove(FromBase64Bytes(text));
  }
  void Set(std::string_view bytes) {
    charge_->Add(bytes.size() + kHeapBlock);
    tw::raise(tw_tensor_set_string(tensor_.c(), at_, bytes.data(), bytes.size()));
  }

  const uint32_t dtype_;
  const bool base64_;
  const std::string& where_;
  Charge* const charge_;
  tw::Tensor tensor_;
  char* to_ = nullptr;
  uint64_t at_ = 0, left_ = 0;
};

uint64_t Leaves(const json& value) {
  if (!value.is_array()) return 1;
  uint64_t n = 0;
  for (const json& item : value) n += Leaves(item);
  return n;
}

// Checks that the lists at `depth` and below have the sizes of dims.
void CheckSizes(const json& value, const std::vector<int64_t>& dims, size_t depth, const std::string& where) {
  if (depth == dims.size()) {
    if (value.is_array()) Wrong(where, "the lists are not equally deep");
    return;
  }
  if (!value.is_array()) Wrong(where, "the lists are not equally deep: " + Shown(value) + " stands beside a list");
  if (int64_t(value.size()) != dims[depth]) {
    Wrong(where, "lists of " + std::to_string(dims[depth]) + " and of " + std::to_string(value.size()) + " values stand side by side");
  }
  for (const json& item : value) CheckSizes(item, dims, depth + 1, where);
}

// ---- Writing ----

template <class T>
void WriteReal(T value, ChargedText* out) {
  if (std::isnan(value)) {
    *out += "NaN";
  } else if (std::isinf(value)) {
    *out += value < 0 ? "-Infinity" : "Infinity";
  } else {
    char buffer[32];
    const std::string_view text(buffer, size_t(std::to_chars(buffer, buffer + sizeof(buffer), value).ptr - buffer));
    *out += text;
    // Without this a reader would take 1 for an integer.
    if (text.find_first_of(".e") == std::string_view::npos) *out += ".0";
  }
}

template <class T>
T Get(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

void WriteInteger(auto value, ChargedText* out) {
  char text[24];
  out->Append({text, size_t(std::to_chars(text, text + sizeof(text), value).ptr - text)});
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t n = Utf8Length(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

class Writer {
 public:
  enum class Strings { kUtf8Alone, kBase64IfNeeded, kBase64 };
  Writer(const Part& part, Strings strings, const std::string& where, ChargedText* out)
      : part_(part),
        strings_(strings),
        where_(where),
        out_(out),
        from_(part.tensor.dtype() == TW_STRING ? nullptr : part.data()),
        bytes_(part.element_bytes()) {}
  void List(uint64_t begin, uint64_t n) {
    *out_ += '[';
    for (uint64_t i = 0; i < n; ++i) {
      if (i) *out_ += ", ";
      Element(begin + i);
    }
    *out_ += ']';
  }
  // Writes the `n` elements from `begin` on as lists of the axes from `axis` on.
  void Nested(size_t axis, uint64_t begin, uint64_t n) {
    if (axis == part_.dims.size()) return Element(begin);
    if (axis + 1 == part_.dims.size()) return List(begin, n);
    const auto rows = uint64_t(part_.dims[axis]);
    if (n == 0) CountEmpty(rows);
    *out_ += '[';
    for (uint64_t i = 0; i < rows; ++i) {
      if (i) *out_ += ", ";
      Nested(axis + 1, begin + i * (n / rows), n / rows);
    }
    *out_ += ']';
  }

 private:
  void Element(uint64_t i) {
    if (!from_) return Text(i);  // NULL plus an offset is undefined
    const char* from = from_ + i * bytes_;
    switch (part_.tensor.dtype()) {
      case TW_BOOL: *out_ += *from ? "true" : "false"; return;
      case TW_UINT8: return WriteInteger(Get<uint8_t>(from), out_);
      case TW_UINT16: return WriteInteger(Get<uint16_t>(from), out_);
      case TW_UINT32: return WriteInteger(Get<uint32_t>(from), out_);
      case TW_UINT64: return WriteInteger(Get<uint64_t>(from), out_);
      case TW_INT8: return WriteInteger(Get<int8_t>(from), out_);
      case TW_INT16: return WriteInteger(Get<int16_t>(from), out_);
      case TW_INT32: return WriteInteger(Get<int32_t>(from), out_);
      case TW_INT64: return WriteInteger(Get<int64_t>(from), out_);
      case TW_DOUBLE: return WriteReal(Get<double>(from), out_);
      case TW_FLOAT: return WriteReal(Get<float>(from), out_);
      case TW_HALF: return WriteReal(HalfToFloat(Get<uint16_t>(from)), out_);
      case TW_BFLOAT16: return WriteReal(Bfloat16ToFloat(Get<uint16_t>(from)), out_);
      default: Wrong(where_, std::string("JSON has no form for its type ") + DatatypeName(part_.tensor.dtype()));
    }
  }
  void CountEmpty(uint64_t lists) {
    if (lists <= kMostEmpty - empty_) {
      empty_ += lists;
      return;
    }
    Wrong(where_, "its shape is " + DimsText(part_.dims) + ", which has no values and too many lists for JSON; ask for it by /v2");
  }
  void Text(uint64_t i) {
    const char* data = nullptr;
    uint64_t bytes = 0;
    tw::raise(tw_tensor_get_string(part_.tensor.c(), part_.first + i, &data, &bytes));
    const std::string_view text(data, bytes);
    const bool utf8 = strings_ != Strings::kBase64 && IsUtf8(text);
    if (!utf8 && strings_ == Strings::kUtf8Alone) {
      Wrong(where_, "value " + std::to_string(i) + " is no UTF-8, which JSON requires; ask for it as binary data");
    }
    if (utf8) return AppendJsonString(text, out_);
    *out_ += "{\"b64\": \"";
    AppendBase64(text, out_);
    *out_ += "\"}";
  }

  const Part& part_;
  const Strings strings_;
  const std::string& where_;
  ChargedText* const out_;
  const char* const from_;  // the values; NULL for strings
  const uint64_t bytes_;
  uint64_t empty_ = 0;  // lists without values so far
};

}  // namespace

tw::Tensor ReadData(const json& data, uint32_t dtype, const std::vector<int64_t>& dims, const std::string& where, Charge* charge) {
  if (!data.is_array()) Wrong(where, "data is " + Shown(data) + " where a list is expected");
  // The size is that of the values that came before memory of that size is taken.
  const std::optional<uint64_t> count = CountOfDims(dims);
  const uint64_t came = Leaves(data);
  if (came != count) {
    Wrong(where, "data has " + std::to_string(came) + " values; shape " + DimsText(dims) + " needs " +
                     (!count        ? "more than there can be"
                      : *count == 0 ? "none"
                                    : std::to_string(*count)));
  }
  const bool nested = std::any_of(data.begin(), data.end(), [](const json& item) { return item.is_array(); });
  if (nested) CheckSizes(data, dims, 0, where);
  Reader reader(dtype, dims, false, where, charge);
  reader.Add(data);
  return reader.Take();
}

tw::Tensor ReadNested(const json& value, uint32_t dtype, const tw_shape& expected, const std::string& where, Charge* charge) {
  std::vector<int64_t> dims;
  for (const json* at = &value; at->is_array(); at = &at->front()) {
    dims.push_back(int64_t(at->size()));
    if (!at->empty()) continue;
    // Nothing says what an empty list would hold.
    for (auto axis = int32_t(dims.size()); axis < expected.rank; ++axis) dims.push_back(std::max<int64_t>(expected.dims[axis], 0));
    CheckSizes(value, dims, 0, where);
    return Reader(dtype, dims, true, where, charge).Take();
  }
  CheckSizes(value, dims, 0, where);
  Reader reader(dtype, dims, true, where, charge);
  reader.Add(value);
  return reader.Take();
}

void AppendJsonString(std::string_view text, ChargedText* out) {
  static constexpr const char* kDigits = "0123456789abcdef";
  *out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': *out += "\\\""; break;
      case '\\': *out += "\\\\"; break;
      case '\b': *out += "\\b"; break;
      case '\f': *out += "\\f"; break;
      case '\n': *out += "\\n"; break;
      case '\r': *out += "\\r"; break;
      case '\t': *out += "\\t"; break;
      default:
        if (uint8_t(c) >= 0x20) {
          *out += c;
        } else {
          *out += "\\u00";
          *out += kDigits[uint8_t(c) >> 4];
          *out += kDigits[uint8_t(c) & 15];
        }
    }
  }
  *out += '"';
}

void WriteFlat(const Part& part, const std::string& where, ChargedText* out) {
  Writer(part, Writer::Strings::kUtf8Alone, where, out).List(0, part.count);
}

void WriteNested(const Part& part, bool base64, const std::string& where, ChargedText* out) {
  Writer(part, base64 ? Writer::Strings::kBase64 : Writer::Strings::kBase64IfNeeded, where, out).Nested(0, 0, part.count);
}

void WriteRow(const Part& part, int64_t row, bool base64, const std::string& where, ChargedText* out) {
  const uint64_t n = part.count / uint64_t(part.dims[0]);
  Writer(part, base64 ? Writer::Strings::kBase64 : Writer::Strings::kBase64IfNeeded, where, out).Nested(1, uint64_t(row) * n, n);
}

}  // namespace thalweg::cli::serve
