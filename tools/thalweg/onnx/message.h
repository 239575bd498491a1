// Writes messages of ONNX files field by field; plugins/onnx/onnx.proto has the numbers of the fields.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace thalweg::cli::onnx {

class Message {
 public:
  Message& Number(uint32_t field, uint64_t value);
  Message& Float(uint32_t field, float value);
  Message& Bytes(uint32_t field, std::string_view bytes);
  Message& Part(uint32_t field, const Message& part) { return Bytes(field, part.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// An attribute of a node.
struct Attr {
  const char* name;
  std::variant<int64_t, double, std::string, std::vector<int64_t>> value;
};
Message AttributeMessage(const Attr& attr);

// Returns ONNX's number of an element type; 0 if ONNX has no such type.
int64_t ElementType(uint32_t dtype);

}  // namespace thalweg::cli::onnx
