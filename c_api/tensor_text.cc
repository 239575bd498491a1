// Tensors as text for people: nested brackets, numbers that read back as the same value, quoted strings.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/base/dtype.h"
#include "framework/base/small_float.h"
#include "framework/json/utf8.h"
#include "framework/runtime/devices/device.h"
#include "framework/tensor/tensor.h"
#include "thalweg/tensor.h"

namespace thalweg {
namespace {

template <class T>
void AppendNumber(T value, std::string* out) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;  // shortest text that reads back as the value
  out->append(text, end);
}

template <class T>
T At(const void* data, uint64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

void AppendQuoted(std::string_view s, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  *out += '"';
  while (!s.empty()) {
    const auto byte = static_cast<unsigned char>(s[0]);
    const size_t length = Utf8Length(s);
    if (byte == '"' || byte == '\\')
      (*out += '\\') += s[0];
    else if (byte == '\n')
      *out += "\\n";
    else if (length == 0 || byte < 0x20 || byte == 0x7f)
      ((*out += "\\x") += kHex[byte >> 4]) += kHex[byte & 15];
    else
      *out += s.substr(0, length);
    s.remove_prefix(std::max<size_t>(length, 1));
  }
  *out += '"';
}

template <class T>
void AppendComplex(const void* data, uint64_t i, std::string* out) {
  const T im = At<T>(data, 2 * i + 1);
  AppendNumber(At<T>(data, 2 * i), out);
  if (!std::signbit(im)) *out += '+';
  AppendNumber(im, out);
  *out += 'j';
}

void AppendElement(uint32_t dtype, const void* data, uint64_t i, std::string* out) {
  switch (dtype) {
    case TW_FLOAT: return AppendNumber(At<float>(data, i), out);
    case TW_DOUBLE: return AppendNumber(At<double>(data, i), out);
    case TW_HALF:
    case TW_BFLOAT16: return AppendNumber(Decode(At<uint16_t>(data, i), *FindSmallFloat(dtype)), out);
    case TW_FLOAT8_E5M2:
    case TW_FLOAT8_E4M3FN:
    case TW_FLOAT8_E4M3FNUZ:
    case TW_FLOAT8_E4M3B11FNUZ:
    case TW_FLOAT8_E5M2FNUZ: return AppendNumber(Decode(At<uint8_t>(data, i), *FindSmallFloat(dtype)), out);
    case TW_BOOL: *out += At<uint8_t>(data, i) ? "true" : "false"; return;
    case TW_INT8:
    case TW_QINT8:
    case TW_INT4:
    case TW_INT2: return AppendNumber(int32_t{At<int8_t>(data, i)}, out);
    case TW_UINT8:
    case TW_QUINT8:
    case TW_UINT4:
    case TW_UINT2: return AppendNumber(uint32_t{At<uint8_t>(data, i)}, out);
    case TW_INT16:
    case TW_QINT16: return AppendNumber(At<int16_t>(data, i), out);
    case TW_UINT16:
    case TW_QUINT16: return AppendNumber(At<uint16_t>(data, i), out);
    case TW_INT32:
    case TW_QINT32: return AppendNumber(At<int32_t>(data, i), out);
    case TW_UINT32: return AppendNumber(At<uint32_t>(data, i), out);
    case TW_INT64: return AppendNumber(At<int64_t>(data, i), out);
    case TW_UINT64: return AppendNumber(At<uint64_t>(data, i), out);
    case TW_COMPLEX64: return AppendComplex<float>(data, i, out);
    case TW_COMPLEX128: return AppendComplex<double>(data, i, out);
    case TW_STRING: {
      const auto s = At<tw_string>(data, i);
      return AppendQuoted(std::string_view(s.data, s.size), out);
    }
    default:
      *out += '<';
      *out += DTypeName(dtype);
      *out += '>';
  }
}

// Writes elements in order, with brackets.
std::string Text(const tw_view& v, uint64_t max_elements) {
  std::string out;
  const void* data = static_cast<const char*>(v.data) + v.offset;
  if (v.rank == 0) {
    AppendElement(v.dtype, data, 0, &out);
    return out;
  }
  if (v.count == 0) return "[]";
  const uint64_t shown = max_elements ? std::min(max_elements, v.count) : v.count;
  // Returns how many axes begin at element i, the first element of their blocks.
  const auto opening = [&](uint64_t i) {
    int32_t axes = 0;
    uint64_t block = 1;
    for (int32_t axis = v.rank - 1; axis >= 0; --axis) {
      block *= uint64_t(v.dims[axis]);
      if (i % block != 0) break;
      ++axes;
    }
    return axes;
  };
  for (uint64_t i = 0; i < shown; ++i) {
    const size_t axes = size_t(opening(i));
    if (i > 0) out.append(axes, ']').append(", ");
    out.append(i == 0 ? size_t(v.rank) : axes, '[');
    AppendElement(v.dtype, data, i, &out);
  }
  if (shown < v.count) return out + ", ...";
  return out.append(size_t(v.rank), ']');
}

}  // namespace
}  // namespace thalweg

tw_status* tw_tensor_text(const tw_tensor* tensor, uint64_t max_elements, tw_buffer** out_text) {
  NEED(tensor);
  NEED(out_text);
  return thalweg::Enter([&]() -> thalweg::Status {
    if (!thalweg::LiesOnHost(*tensor))
      return thalweg::FailedPrecondition("the tensor lies on a device; copy it with tw_tensor_to_host first");
    *out_text = thalweg::MakeBuffer(thalweg::Text(tensor->view, max_elements));
    return thalweg::Status();
  });
}
