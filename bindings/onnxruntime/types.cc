#include "types.h"

#include <algorithm>

namespace thalweg::ort {
namespace {

struct ElementRow {
  ONNXTensorElementDataType type;
  uint32_t dtype;
  const char* name;
  unsigned bytes, per_byte;
};

#define ELEMENT(name) ONNX_TENSOR_ELEMENT_DATA_TYPE_##name
constexpr ElementRow kElements[] = {
    {ELEMENT(FLOAT), TW_FLOAT, "float", 4, 1},
    {ELEMENT(UINT8), TW_UINT8, "uint8", 1, 1},
    {ELEMENT(INT8), TW_INT8, "int8", 1, 1},
    {ELEMENT(UINT16), TW_UINT16, "uint16", 2, 1},
    {ELEMENT(INT16), TW_INT16, "int16", 2, 1},
    {ELEMENT(INT32), TW_INT32, "int32", 4, 1},
    {ELEMENT(INT64), TW_INT64, "int64", 8, 1},
    {ELEMENT(STRING), TW_STRING, "string", 0, 1},
    {ELEMENT(BOOL), TW_BOOL, "bool", 1, 1},
    {ELEMENT(FLOAT16), TW_HALF, "float16", 2, 1},
    {ELEMENT(DOUBLE), TW_DOUBLE, "double", 8, 1},
    {ELEMENT(UINT32), TW_UINT32, "uint32", 4, 1},
    {ELEMENT(UINT64), TW_UINT64, "uint64", 8, 1},
    {ELEMENT(COMPLEX64), TW_COMPLEX64, "complex64", 8, 1},
    {ELEMENT(COMPLEX128), TW_COMPLEX128, "complex128", 16, 1},
    {ELEMENT(BFLOAT16), TW_BFLOAT16, "bfloat16", 2, 1},
    {ELEMENT(FLOAT8E4M3FN), TW_FLOAT8_E4M3FN, "float8e4m3fn", 1, 1},
    {ELEMENT(FLOAT8E4M3FNUZ), TW_FLOAT8_E4M3FNUZ, "float8e4m3fnuz", 1, 1},
    {ELEMENT(FLOAT8E5M2), TW_FLOAT8_E5M2, "float8e5m2", 1, 1},
    {ELEMENT(FLOAT8E5M2FNUZ), TW_FLOAT8_E5M2FNUZ, "float8e5m2fnuz", 1, 1},
    {ELEMENT(UINT4), TW_UINT4, "uint4", 1, 2},
    {ELEMENT(INT4), TW_INT4, "int4", 1, 2},
    {ELEMENT(UINT2), TW_UINT2, "uint2", 1, 4},
    {ELEMENT(INT2), TW_INT2, "int2", 1, 4},
};
#undef ELEMENT

const ElementRow* RowOf(ONNXTensorElementDataType type) {
  for (const ElementRow& row : kElements) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

}  // namespace

std::string NameOf(ONNXTensorElementDataType type) {
  const ElementRow* row = RowOf(type);
  return row ? row->name : "element type " + std::to_string(static_cast<int>(type));
}

std::string NameOf(const OrtTypeInfo& type) {
  switch (type.kind) {
    case ONNX_TYPE_TENSOR: return Text("tensor(", NameOf(type.tensor.type), ")");
    case ONNX_TYPE_SEQUENCE: return Text("sequence(", type.sequence.element ? NameOf(*type.sequence.element) : "", ")");
    case ONNX_TYPE_MAP: return Text("map(", NameOf(type.map.key), ",", type.map.value ? NameOf(*type.map.value) : "", ")");
    case ONNX_TYPE_OPTIONAL: return Text("optional(", type.optional.contained ? NameOf(*type.optional.contained) : "", ")");
    default: return "unknown";
  }
}

std::string ShapeText(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

uint32_t DtypeOf(ONNXTensorElementDataType type) {
  const ElementRow* row = RowOf(type);
  return row ? row->dtype : uint32_t{TW_INVALID_TYPE};
}

ONNXTensorElementDataType ElementOf(uint32_t dtype) {
  for (const ElementRow& row : kElements) {
    if (row.dtype == dtype) return row.type;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

unsigned PerByte(ONNXTensorElementDataType type) {
  const ElementRow* row = RowOf(type);
  return row ? row->per_byte : 1;
}

int64_t CountOf(const int64_t* dims, size_t rank) {
  if (rank > 0) Need(dims, "shape");
  int64_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) Fail(ORT_INVALID_ARGUMENT, "size ", std::to_string(dims[i]), " of axis ", std::to_string(i), " is negative");
  }
  if (std::find(dims, dims + rank, 0) != dims + rank) return 0;
  for (size_t i = 0; i < rank; ++i) {
    if (__builtin_mul_overflow(count, dims[i], &count)) Fail(ORT_INVALID_ARGUMENT, "the shape has more elements than 2^63 - 1");
  }
  return count;
}

size_t BytesOf(ONNXTensorElementDataType type, int64_t count) {
  const ElementRow* row = RowOf(type);
  if (!row || row->bytes == 0) Fail(ORT_INVALID_ARGUMENT, "a tensor of ", NameOf(type), " has no size in bytes");
  if (row->per_byte > 1) return (static_cast<size_t>(count) + row->per_byte - 1) / row->per_byte;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count, int64_t{row->bytes}, &bytes)) Fail(ORT_INVALID_ARGUMENT, "the tensor has more bytes than 2^63 - 1");
  return static_cast<size_t>(bytes);
}

OrtTypeInfo TensorType(ONNXTensorElementDataType type, std::vector<int64_t> dims) {
  OrtTypeInfo info;
  info.kind = ONNX_TYPE_TENSOR;
  info.tensor.type = type;
  info.tensor.has_shape = true;
  info.tensor.symbols.resize(dims.size());
  info.tensor.dims = std::move(dims);
  return info;
}

namespace api {

// ---- Tensors ----

OrtStatus* CreateTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = new OrtTensorTypeAndShapeInfo;
  });
}
void ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo* info) { delete info; }
OrtStatus* SetTensorElementType(OrtTensorTypeAndShapeInfo* info, ONNXTensorElementDataType type) {
  return Guard(__func__, [&] { Need(info, "info")->type = type; });
}
OrtStatus* SetDimensions(OrtTensorTypeAndShapeInfo* info, const int64_t* dims, size_t count) {
  return Guard(__func__, [&] {
    Need(info, "info");
    if (count > 0) Need(dims, "dim_values");
    info->dims.assign(dims, dims + count);
    info->symbols.assign(count, "");
    info->has_shape = true;
  });
}
OrtStatus* SetSymbolicDimensions(OrtTensorTypeAndShapeInfo* info, const char** names, size_t count) {
  return Guard(__func__, [&] {
    if (count != Need(info, "info")->dims.size()) {
      Fail(ORT_INVALID_ARGUMENT, std::to_string(count), " names for ", std::to_string(info->dims.size()), " axes");
    }
    for (size_t i = 0; i < count; ++i) info->symbols[i] = Need(Need(names, "dim_params")[i], "dim_params[i]");
  });
}
OrtStatus* GetTensorElementType(const OrtTensorTypeAndShapeInfo* info, ONNXTensorElementDataType* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(info, "info")->type;
  });
}
OrtStatus* GetDimensionsCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(info, "info")->dims.size();
  });
}
OrtStatus* GetDimensions(const OrtTensorTypeAndShapeInfo* info, int64_t* dims, size_t count) {
  return Guard(__func__, [&] {
    const size_t n = std::min(count, Need(info, "info")->dims.size());
    if (n > 0) Need(dims, "dim_values");
    std::copy_n(info->dims.begin(), n, dims);
  });
}
OrtStatus* GetSymbolicDimensions(const OrtTensorTypeAndShapeInfo* info, const char** names, size_t count) {
  return Guard(__func__, [&] {
    const size_t n = std::min(count, Need(info, "info")->symbols.size());
    for (size_t i = 0; i < n; ++i) Need(names, "dim_params")[i] = info->symbols[i].c_str();
  });
}
OrtStatus* GetTensorShapeElementCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) {
  return Guard(__func__, [&] {
    size_t& count = Result(out);
    if (!Need(info, "info")->has_shape) return;  // 0, as ONNX Runtime says of an unknown shape
    const auto& dims = info->dims;
    if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; })) {
      Fail(ORT_FAIL, "shape ", ShapeText(dims), " has a size that is unknown");
    }
    count = static_cast<size_t>(CountOf(dims.data(), dims.size()));
  });
}
bool TensorTypeAndShape_HasShape(const OrtTensorTypeAndShapeInfo* info) { return info && info->has_shape; }

// ---- All types ----

void ReleaseTypeInfo(OrtTypeInfo* info) { delete info; }
OrtStatus* GetOnnxTypeFromTypeInfo(const OrtTypeInfo* info, ONNXType* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(info, "type_info")->kind;
  });
}
OrtStatus* GetDenotationFromTypeInfo(const OrtTypeInfo* info, const char** const out, size_t* bytes) {
  return Guard(__func__, [&] {
    const char*& text = Result(out, "denotation");
    size_t& length = Result(bytes, "len");
    text = Need(info, "type_info")->denotation.c_str();
    length = info->denotation.size();
  });
}
// The casts give NULL for another type.
OrtStatus* CastTypeInfoToTensorInfo(const OrtTypeInfo* info, const OrtTensorTypeAndShapeInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(info, "type_info")->kind == ONNX_TYPE_TENSOR ? &info->tensor : nullptr;
  });
}
OrtStatus* CastTypeInfoToMapTypeInfo(const OrtTypeInfo* info, const OrtMapTypeInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(info, "type_info")->kind == ONNX_TYPE_MAP ? &info->map : nullptr;
  });
}
OrtStatus* CastTypeInfoToSequenceTypeInfo(const OrtTypeInfo* info, const OrtSequenceTypeInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(info, "type_info")->kind == ONNX_TYPE_SEQUENCE ? &info->sequence : nullptr;
  });
}
OrtStatus* CastTypeInfoToOptionalTypeInfo(const OrtTypeInfo* info, const OrtOptionalTypeInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(info, "type_info")->kind == ONNX_TYPE_OPTIONAL ? &info->optional : nullptr;
  });
}
OrtStatus* GetMapKeyType(const OrtMapTypeInfo* info, ONNXTensorElementDataType* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(info, "map_type_info")->key;
  });
}
OrtStatus* GetMapValueType(const OrtMapTypeInfo* info, OrtTypeInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = new OrtTypeInfo(*Need(Need(info, "map_type_info")->value.get(), "value type"));
  });
}
OrtStatus* GetSequenceElementType(const OrtSequenceTypeInfo* info, OrtTypeInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = new OrtTypeInfo(*Need(Need(info, "sequence_type_info")->element.get(), "element type"));
  });
}
OrtStatus* GetOptionalContainedTypeInfo(const OrtOptionalTypeInfo* info, OrtTypeInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = new OrtTypeInfo(*Need(Need(info, "optional_type_info")->contained.get(), "contained type"));
  });
}
// ONNX Runtime lets a client release these although casts give parts of a type.
void ReleaseMapTypeInfo(OrtMapTypeInfo*) {}
void ReleaseSequenceTypeInfo(OrtSequenceTypeInfo*) {}

}  // namespace api
}  // namespace thalweg::ort
