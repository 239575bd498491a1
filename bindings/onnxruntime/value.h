// Values of clients. Numbers are in memory of the client, of an allocator or of a tensor of Thalweg, and go into a run without a copy.
// Strings are std::string here and tw_string in Thalweg, and integers of 2 and 4 bits are packed here and one a byte in Thalweg, so these
// are copied. Threads: as OrtValue, which has one writer or many readers.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "memory.h"
#include "types.h"

struct OrtValue {
  ONNXType kind = ONNX_TYPE_TENSOR;
  // The next members are used by tensors.
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<int64_t> dims;
  int64_t count = 0;
  void* data = nullptr;  // of numbers
  size_t bytes = 0;
  std::shared_ptr<void> memory;                       // keeps data; empty for memory of the client
  std::shared_ptr<std::vector<std::string>> strings;  // of a string tensor; shared, as the memory of numbers
  OrtMemoryInfo info;
  // The elements of a sequence, the keys and the values of a map, or the value of an optional that is not empty.
  std::vector<std::shared_ptr<OrtValue>> parts;
  std::shared_ptr<const OrtTypeInfo> element;  // the type of the elements, if the value has a declared one
};

namespace thalweg::ort {

using ValueRef = std::unique_ptr<OrtValue>;

// Makes a tensor in memory of the allocator, or, for NULL, of the machine. Numbers are not initialised.
ValueRef NewTensor(OrtAllocator* allocator, ONNXTensorElementDataType type, const int64_t* dims, size_t rank);
// Copies a value and all its parts.
ValueRef Copy(const OrtValue& value, OrtAllocator* allocator);
OrtTypeInfo TypeOf(const OrtValue& value);

// Tensors only; values.cc has no sequences.
TensorRef TensorToThalweg(const OrtValue& value);
// Takes a tensor that a run returned; copies it if anybody else can see its memory.
ValueRef TensorFromThalweg(TensorRef tensor);
// Writes a tensor that a run returned into the client's value; throws if type or shape differ. `name` is for the message.
void WriteTensor(TensorRef tensor, const std::string& name, OrtValue* to);

}  // namespace thalweg::ort
