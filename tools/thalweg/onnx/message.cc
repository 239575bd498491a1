#include "message.h"

#include <cstring>

#include "framework/proto/wire.h"
#include "thalweg/types.h"

namespace thalweg::cli::onnx {

Message& Message::Number(uint32_t field, uint64_t value) {
  PutVarintField(field, value, &bytes_);
  return *this;
}

Message& Message::Float(uint32_t field, float value) {
  PutVarint(field << 3 | WireField::kFixed32, &bytes_);
  char bits[sizeof value];
  std::memcpy(bits, &value, sizeof value);
  bytes_.append(bits, sizeof bits);
  return *this;
}

Message& Message::Bytes(uint32_t field, std::string_view bytes) {
  PutBytesField(field, bytes, &bytes_);
  return *this;
}

Message AttributeMessage(const Attr& attr) {
  enum : uint32_t { kName = 1, kFloat = 2, kInt = 3, kString = 4, kInts = 8, kType = 20 };
  enum : uint64_t { kTypeFloat = 1, kTypeInt = 2, kTypeString = 3, kTypeInts = 7 };
  Message m;
  m.Bytes(kName, attr.name);
  if (const auto* number = std::get_if<int64_t>(&attr.value)) return m.Number(kInt, uint64_t(*number)).Number(kType, kTypeInt);
  if (const auto* real = std::get_if<double>(&attr.value)) return m.Float(kFloat, float(*real)).Number(kType, kTypeFloat);
  if (const auto* text = std::get_if<std::string>(&attr.value)) return m.Bytes(kString, *text).Number(kType, kTypeString);
  for (const int64_t value : std::get<std::vector<int64_t>>(attr.value)) m.Number(kInts, uint64_t(value));
  return m.Number(kType, kTypeInts);
}

int64_t ElementType(uint32_t dtype) {
  switch (dtype) {
    case TW_FLOAT: return 1;
    case TW_UINT8: return 2;
    case TW_INT8: return 3;
    case TW_UINT16: return 4;
    case TW_INT16: return 5;
    case TW_INT32: return 6;
    case TW_INT64: return 7;
    case TW_STRING: return 8;
    case TW_BOOL: return 9;
    case TW_HALF: return 10;
    case TW_DOUBLE: return 11;
    case TW_UINT32: return 12;
    case TW_UINT64: return 13;
    case TW_COMPLEX64: return 14;
    case TW_COMPLEX128: return 15;
    case TW_BFLOAT16: return 16;
    default: return 0;
  }
}

}  // namespace thalweg::cli::onnx
