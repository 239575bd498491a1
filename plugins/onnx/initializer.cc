// From TensorProto to constants. Sizes are compared with the bytes that are there before memory is taken.
#include <algorithm>
#include <cstring>

#include "model.h"

namespace thalweg::onnx {
namespace {

using proto::TensorProto;

constexpr int64_t kMostSparse = 64 << 20;  // bytes of a sparse tensor as a dense one

[[noreturn]] void Fail(const TensorProto& t, const std::string& text, uint32_t code = TW_INVALID_ARGUMENT) {
  throw Error{code, "tensor '" + t.name() + "': " + text};
}

int BitsOf(int32_t type) {
  switch (type) {
    case TensorProto::INT4:
    case TensorProto::UINT4: return 4;
    case TensorProto::INT2:
    case TensorProto::UINT2: return 2;
    default: return 0;
  }
}

// One element a byte from packed elements of `bits` bits, the first in the low bits.
Tensor Unpack(const TensorProto& t, uint32_t dtype, const Dims& dims, const uint8_t* packed, int bits) {
  Tensor made(dtype, dims);
  auto* to = static_cast<uint8_t*>(made.mutable_data());
  const bool is_signed = t.data_type() == TensorProto::INT4 || t.data_type() == TensorProto::INT2;
  const int per_byte = 8 / bits, mask = (1 << bits) - 1;
  for (int64_t i = 0; i < made.count(); ++i) {
    int v = (packed[i / per_byte] >> (bits * static_cast<int>(i % per_byte))) & mask;
    if (is_signed && v > mask / 2) v -= mask + 1;
    to[i] = static_cast<uint8_t>(v);
  }
  return made;
}

Tensor FromRaw(const TensorProto& t, uint32_t dtype, const Dims& dims, std::string_view raw, std::shared_ptr<const void> keep) {
  const auto count = static_cast<uint64_t>(CountOf(dims));
  const int bits = BitsOf(t.data_type());
  const uint64_t wanted = bits ? (count * static_cast<uint64_t>(bits) + 7) / 8 : count * ElementBytes(dtype);
  if (raw.size() != wanted) {
    Fail(t, "has " + std::to_string(raw.size()) + " bytes, but " + DtypeName(dtype) + Text(dims) + " needs " + std::to_string(wanted));
  }
  if (bits) return Unpack(t, dtype, dims, reinterpret_cast<const uint8_t*>(raw.data()), bits);
  const uint32_t align = ElementBytes(dtype) > 8 ? 8 : ElementBytes(dtype);
  if (keep && align && reinterpret_cast<uintptr_t>(raw.data()) % align == 0 && count > 0)
    return Tensor(dtype, dims, raw.data(), std::move(keep));
  Tensor made(dtype, dims);
  if (count) std::memcpy(made.mutable_data(), raw.data(), raw.size());
  return made;
}

// Elements of a typed field, each converted to the element type's bytes.
template <class To, class Field>
Tensor FromField(const TensorProto& t, uint32_t dtype, const Dims& dims, const Field& field, int per_element = 1) {
  const int64_t count = CountOf(dims);
  if (field.size() / per_element != count || field.size() % per_element) {
    Fail(t, "has " + std::to_string(field.size() / per_element) + " elements, but its shape is " + Text(dims));
  }
  Tensor made(dtype, dims);
  auto* to = static_cast<To*>(made.mutable_data());
  for (int i = 0; i < field.size(); ++i) to[i] = static_cast<To>(field.Get(i));
  return made;
}

uint64_t NumberOf(const TensorProto& t, const proto::StringStringEntryProto& entry) {
  uint64_t number = 0;
  if (entry.value().empty() || entry.value().size() > 19) Fail(t, "external data has the " + entry.key() + " '" + entry.value() + "'");
  for (const char c : entry.value()) {
    if (c < '0' || c > '9') Fail(t, "external data has the " + entry.key() + " '" + entry.value() + "'");
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number;
}

// A path that stays in the model's folder: relative, without "..".
void CheckLocation(const TensorProto& t, const std::string& location) {
  if (location.empty()) Fail(t, "external data names no file");
  bool outside = location[0] == '/' || location.find('\\') != std::string::npos || location.find('\0') != std::string::npos ||
                 location.find("://") != std::string::npos;
  for (size_t at = 0; at <= location.size();) {
    size_t end = location.find('/', at);
    if (end == std::string::npos) end = location.size();
    outside |= location.compare(at, end - at, "..") == 0;
    at = end + 1;
  }
  if (outside) Fail(t, "external data lies in '" + location + "', outside of the model's folder", TW_PERMISSION_DENIED);
}

Tensor FromExternal(const TensorProto& t, uint32_t dtype, const Dims& dims, const OpenExternal& external) {
  std::string location;
  uint64_t offset = 0, length = 0;
  for (const proto::StringStringEntryProto& entry : t.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = NumberOf(t, entry);
    if (entry.key() == "length") length = NumberOf(t, entry);
  }
  CheckLocation(t, location);
  if (!external) Fail(t, "its data lies in the file '" + location + "'; load the model from its folder, not from bytes", TW_NOT_FOUND);
  const auto count = static_cast<uint64_t>(CountOf(dims));
  const int bits = BitsOf(t.data_type());
  const uint64_t wanted = bits ? (count * static_cast<uint64_t>(bits) + 7) / 8 : count * ElementBytes(dtype);
  if (length && length != wanted) {
    Fail(t, "external data has a length of " + std::to_string(length) + " bytes, but " + DtypeName(dtype) + Text(dims) + " needs " +
                std::to_string(wanted));
  }
  if (wanted == 0) return Tensor(dtype, dims);
  const Bytes file = external(location);
  if (offset > file.size || wanted > file.size - offset) {
    Fail(t, "external data needs " + std::to_string(wanted) + " bytes from " + std::to_string(offset) + " of '" + location +
                "', which has " + std::to_string(file.size));
  }
  return FromRaw(t, dtype, dims, {file.data + offset, wanted}, file.keep);
}

}  // namespace

uint32_t DtypeOf(int32_t type) {
  switch (type) {
    case TensorProto::FLOAT: return TW_FLOAT;
    case TensorProto::UINT8: return TW_UINT8;
    case TensorProto::INT8: return TW_INT8;
    case TensorProto::UINT16: return TW_UINT16;
    case TensorProto::INT16: return TW_INT16;
    case TensorProto::INT32: return TW_INT32;
    case TensorProto::INT64: return TW_INT64;
    case TensorProto::STRING: return TW_STRING;
    case TensorProto::BOOL: return TW_BOOL;
    case TensorProto::FLOAT16: return TW_HALF;
    case TensorProto::DOUBLE: return TW_DOUBLE;
    case TensorProto::UINT32: return TW_UINT32;
    case TensorProto::UINT64: return TW_UINT64;
    case TensorProto::COMPLEX64: return TW_COMPLEX64;
    case TensorProto::COMPLEX128: return TW_COMPLEX128;
    case TensorProto::BFLOAT16: return TW_BFLOAT16;
    case TensorProto::FLOAT8E4M3FN: return TW_FLOAT8_E4M3FN;
    case TensorProto::FLOAT8E4M3FNUZ: return TW_FLOAT8_E4M3FNUZ;
    case TensorProto::FLOAT8E5M2: return TW_FLOAT8_E5M2;
    case TensorProto::FLOAT8E5M2FNUZ: return TW_FLOAT8_E5M2FNUZ;
    case TensorProto::UINT4: return TW_UINT4;
    case TensorProto::INT4: return TW_INT4;
    case TensorProto::UINT2: return TW_UINT2;
    case TensorProto::INT2: return TW_INT2;
    case TensorProto::FLOAT4E2M1: throw Error{TW_UNIMPLEMENTED, "the element type float4e2m1 is not supported"};
    case TensorProto::FLOAT8E8M0: throw Error{TW_UNIMPLEMENTED, "the element type float8e8m0 is not supported"};
    default: throw Error{TW_INVALID_ARGUMENT, "element type " + std::to_string(type) + " is unknown"};
  }
}

Tensor TensorOf(const TensorProto& t, const std::shared_ptr<const void>& keep, const OpenExternal& external) {
  const uint32_t dtype = DtypeOf(t.data_type());
  const Dims dims(t.dims().begin(), t.dims().end());
  if (t.dims_size() > 64) Fail(t, "has " + std::to_string(t.dims_size()) + " axes; at most 64 are accepted");
  const int64_t count = CountOf(dims);
  if (t.has_segment()) Fail(t, "is one segment of a tensor, which is not supported", TW_UNIMPLEMENTED);
  if (t.data_location() == TensorProto::EXTERNAL) {
    if (dtype == TW_STRING) Fail(t, "strings cannot be external data");
    return FromExternal(t, dtype, dims, external);
  }
  if (t.has_mapped_offset()) {
    if (dtype == TW_STRING) Fail(t, "strings cannot be raw data");
    const Bytes file = external ? external("") : Bytes();
    if (t.mapped_offset() > file.size || t.mapped_bytes() > file.size - t.mapped_offset()) Fail(t, "its elements lie outside of the file");
    return FromRaw(t, dtype, dims, {file.data + t.mapped_offset(), t.mapped_bytes()}, file.keep);
  }
  if (t.has_raw_data()) {
    if (dtype == TW_STRING) Fail(t, "strings cannot be raw data");
    return FromRaw(t, dtype, dims, t.raw_data(), keep);
  }
  switch (dtype) {
    case TW_FLOAT: return FromField<float>(t, dtype, dims, t.float_data());
    case TW_COMPLEX64: return FromField<float>(t, dtype, dims, t.float_data(), 2);
    case TW_DOUBLE: return FromField<double>(t, dtype, dims, t.double_data());
    case TW_COMPLEX128: return FromField<double>(t, dtype, dims, t.double_data(), 2);
    case TW_INT64: return FromField<int64_t>(t, dtype, dims, t.int64_data());
    case TW_UINT32: return FromField<uint32_t>(t, dtype, dims, t.uint64_data());
    case TW_UINT64: return FromField<uint64_t>(t, dtype, dims, t.uint64_data());
    case TW_INT32: return FromField<int32_t>(t, dtype, dims, t.int32_data());
    case TW_HALF:
    case TW_BFLOAT16:
    case TW_INT16:
    case TW_UINT16: return FromField<uint16_t>(t, dtype, dims, t.int32_data());
    case TW_STRING: {
      if (t.string_data_size() != count) {
        Fail(t, "has " + std::to_string(t.string_data_size()) + " elements, but its shape is " + Text(dims));
      }
      return Tensor::String(dims, {t.string_data().begin(), t.string_data().end()});
    }
    case TW_INT4:
    case TW_UINT4:
    case TW_INT2:
    case TW_UINT2: {  // packed bytes, one an int32
      std::string packed;
      for (const int32_t v : t.int32_data()) packed.push_back(static_cast<char>(v));
      return FromRaw(t, dtype, dims, packed, nullptr);
    }
    default: return FromField<uint8_t>(t, dtype, dims, t.int32_data());
  }
}

Tensor TensorOf(const proto::SparseTensorProto& t, const std::shared_ptr<const void>& keep, const OpenExternal& external) {
  const Tensor values = TensorOf(t.values(), keep, external), indices = TensorOf(t.indices(), keep, external);
  const Dims dims(t.dims().begin(), t.dims().end());
  const int64_t count = CountOf(dims);
  // A sparse tensor is small in its file, whatever its dims say.
  if (count * static_cast<int64_t>(std::max(1u, ElementBytes(values.dtype()))) > kMostSparse) {
    Fail(t.values(), "a sparse tensor of shape " + Text(dims) + " is too large", TW_RESOURCE_EXHAUSTED);
  }
  if (values.dtype() == TW_STRING || indices.dtype() != TW_INT64 || values.rank() != 1 || indices.rank() < 1 || indices.rank() > 2 ||
      indices.dims()[0] != values.count() || (indices.rank() == 2 && indices.dims()[1] != t.dims_size())) {
    Fail(t.values(), "a sparse tensor needs numbers [n] and int64 indices [n] or [n, " + std::to_string(t.dims_size()) + "]");
  }
  Tensor made(values.dtype(), dims);
  const uint32_t bytes = ElementBytes(values.dtype());
  for (int64_t i = 0; i < values.count(); ++i) {
    int64_t at = 0;
    if (indices.rank() == 1) {
      at = indices.integer(i);
    } else {
      for (int a = 0; a < t.dims_size(); ++a) {
        const int64_t index = indices.integer(i * t.dims_size() + a);
        if (index < 0 || index >= t.dims(a))
          Fail(t.values(), "a sparse tensor has the index " + std::to_string(index) + " at axis " + std::to_string(a));
        at = at * t.dims(a) + index;
      }
    }
    if (at < 0 || at >= count)
      Fail(t.values(), "a sparse tensor has the index " + std::to_string(at) + ", but " + std::to_string(count) + " elements");
    std::memcpy(static_cast<char*>(made.mutable_data()) + at * bytes, values.as<char>() + i * bytes, bytes);
  }
  return made;
}

}  // namespace thalweg::onnx
