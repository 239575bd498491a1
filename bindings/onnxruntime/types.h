// Types of values: element types, shapes with names of sizes, and types of sequences, maps and optionals. Threads: as the client's.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core.h"

struct OrtTensorTypeAndShapeInfo {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  bool has_shape = false;
  std::vector<int64_t> dims;         // -1: unknown
  std::vector<std::string> symbols;  // one for each size, "" for a size without a name
};

struct OrtMapTypeInfo {
  ONNXTensorElementDataType key = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::shared_ptr<const OrtTypeInfo> value;
};
struct OrtSequenceTypeInfo {
  std::shared_ptr<const OrtTypeInfo> element;
};
struct OrtOptionalTypeInfo {
  std::shared_ptr<const OrtTypeInfo> contained;
};

struct OrtTypeInfo {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  std::string denotation;
  OrtTensorTypeAndShapeInfo tensor;  // of a tensor
  OrtMapTypeInfo map;
  OrtSequenceTypeInfo sequence;
  OrtOptionalTypeInfo optional;
};

namespace thalweg::ort {

// "float", "int64", ... as messages name an element type.
std::string NameOf(ONNXTensorElementDataType type);
// "tensor(float)", "sequence(tensor(int64))".
std::string NameOf(const OrtTypeInfo& type);
std::string ShapeText(const std::vector<int64_t>& dims);

// Thalweg's number of an element type; TW_INVALID_TYPE if it has none.
uint32_t DtypeOf(ONNXTensorElementDataType type);
ONNXTensorElementDataType ElementOf(uint32_t dtype);
// Elements in a byte: 1, or 2 or 4 of the short integers.
unsigned PerByte(ONNXTensorElementDataType type);
// Number of elements. Throws for a negative size and for more elements than an int64_t counts.
int64_t CountOf(const int64_t* dims, size_t rank);
// Bytes of `count` elements; throws for strings, types without numbers, and sizes beyond 2^63 - 1.
size_t BytesOf(ONNXTensorElementDataType type, int64_t count);

OrtTypeInfo TensorType(ONNXTensorElementDataType type, std::vector<int64_t> dims);

}  // namespace thalweg::ort
