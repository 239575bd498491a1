// The wire format of Protocol Buffers, as far as it is needed before a message is parsed. Threads: values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace thalweg::onnx {

// One field of a message.
struct WireField {
  uint32_t number = 0, wire = 0;
  std::string_view whole;  // with its tag
  std::string_view bytes;  // of wire type 2: the contents
  uint64_t varint = 0;     // of wire type 0
};

// Takes the first field off a message; none if it is damaged or cut off. *rest must not be empty.
std::optional<WireField> TakeField(std::string_view* rest);
std::optional<uint64_t> TakeVarint(std::string_view* rest);
void PutVarint(std::string* to, uint64_t v);
void PutBytes(std::string* to, uint32_t number, std::string_view bytes);
void PutNumber(std::string* to, uint32_t number, uint64_t v);

// Copies a ModelProto without the large raw_data of its main graph's initializers. In their place are `mapped_offset` and `mapped_bytes`
// (onnx.proto), which say where the elements lie in `file`. So parsing copies no weights. Damaged files come out damaged.
std::string WithoutWeights(std::string_view file);

}  // namespace thalweg::onnx
