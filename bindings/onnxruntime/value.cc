#include "value.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace thalweg::ort {
namespace {

bool IsString(const OrtValue& v) { return v.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING; }

bool IsSigned(ONNXTensorElementDataType type) {
  return type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4 || type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2;
}

// From `per_byte` integers a byte, the first in the low bits, to one a byte.
void Unpack(const uint8_t* from, int64_t count, unsigned per_byte, bool is_signed, uint8_t* to) {
  const unsigned bits = 8 / per_byte;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<unsigned>(i % per_byte) * bits;
    const unsigned value = (unsigned{from[i / per_byte]} >> at) & ((1u << bits) - 1);
    const bool negative = is_signed && (value >> (bits - 1));
    to[i] = static_cast<uint8_t>(negative ? value | (0xffu << bits) : value);
  }
}
void Pack(const uint8_t* from, int64_t count, unsigned per_byte, uint8_t* to) {
  const unsigned bits = 8 / per_byte;
  std::memset(to, 0, (static_cast<size_t>(count) + per_byte - 1) / per_byte);
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<unsigned>(i % per_byte) * bits;
    to[i / per_byte] = static_cast<uint8_t>(to[i / per_byte] | (unsigned{from[i] & ((1u << bits) - 1)} << at));
  }
}

const OrtValue& Tensor(const OrtValue* value) {
  if (Need(value, "value")->kind != ONNX_TYPE_TENSOR) Fail(ORT_INVALID_ARGUMENT, "the value is no tensor but a ", NameOf(TypeOf(*value)));
  return *value;
}
OrtValue& Tensor(OrtValue* value) { return const_cast<OrtValue&>(Tensor(static_cast<const OrtValue*>(value))); }

template <class Value>
Value& Strings(Value* value) {
  Value& tensor = Tensor(value);
  if (!IsString(tensor)) Fail(ORT_INVALID_ARGUMENT, "the tensor has elements of type ", NameOf(tensor.type), ", not string");
  return tensor;
}

size_t IndexIn(const OrtValue& tensor, size_t index) {
  if (index < tensor.strings->size()) return index;
  Fail(ORT_INVALID_ARGUMENT, "element ", std::to_string(index), " is out of bounds: the tensor has ",
       std::to_string(tensor.strings->size()));
}

// A tensor over memory of the client.
ValueRef Over(const OrtMemoryInfo& info, void* data, size_t bytes, const int64_t* dims, size_t rank, ONNXTensorElementDataType type) {
  auto value = std::make_unique<OrtValue>();
  value->type = type;
  value->count = CountOf(dims, rank);
  value->dims.assign(dims, dims + rank);
  if (DtypeOf(type) == TW_INVALID_TYPE) Fail(ORT_NOT_IMPLEMENTED, "tensors of ", NameOf(type), " are not offered");
  if (IsString(*value)) Fail(ORT_INVALID_ARGUMENT, "a tensor of strings cannot use the client's memory; use CreateTensorAsOrtValue");
  value->bytes = BytesOf(type, value->count);
  if (value->bytes > bytes) {
    Fail(ORT_INVALID_ARGUMENT, "not enough space: expected ", std::to_string(value->bytes), " bytes for shape ", ShapeText(value->dims),
         " of ", NameOf(type), ", got ", std::to_string(bytes));
  }
  if (value->bytes > 0) Need(data, "p_data");
  value->data = data;
  value->info = info;
  return value;
}

// ONNX Runtime's maps are sorted by key, and the first of equal keys stays.
template <class Key>
std::vector<size_t> SortedKeys(const Key* keys, int64_t count) {
  std::map<Key, size_t> order;
  for (int64_t i = 0; i < count; ++i) order.emplace(keys[i], static_cast<size_t>(i));
  std::vector<size_t> at;
  for (const auto& entry : order) at.push_back(entry.second);
  return at;
}

std::shared_ptr<OrtValue> Picked(const OrtValue& from, const std::vector<size_t>& at) {
  const int64_t count = static_cast<int64_t>(at.size());
  std::shared_ptr<OrtValue> to = NewTensor(nullptr, from.type, &count, 1);
  const size_t bytes = IsString(from) ? 0 : BytesOf(from.type, 1);
  for (size_t i = 0; i < at.size(); ++i) {
    if (IsString(from)) {
      (*to->strings)[i] = (*from.strings)[at[i]];
    } else {
      std::memcpy(static_cast<char*>(to->data) + i * bytes, static_cast<const char*>(from.data) + at[i] * bytes, bytes);
    }
  }
  return to;
}

ValueRef NewMap(const OrtValue& keys, const OrtValue& values) {
  const auto one_of = [](const OrtValue& v, std::initializer_list<ONNXTensorElementDataType> types, const char* what) {
    Tensor(&v);
    if (std::find(types.begin(), types.end(), v.type) != types.end()) return;
    Fail(ORT_NOT_IMPLEMENTED, what, " of a map cannot be ", NameOf(v.type),
         "; keys are int64 or string, values int64, float, double or string");
  };
  one_of(keys, {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING}, "keys");
  one_of(values,
         {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
          ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING},
         "values");
  if (keys.dims.size() != 1 || keys.dims != values.dims) {
    Fail(ORT_INVALID_ARGUMENT, "keys and values of a map are two tensors of one axis and equal length, not of shapes ",
         ShapeText(keys.dims), " and ", ShapeText(values.dims));
  }
  const auto at =
      IsString(keys) ? SortedKeys(keys.strings->data(), keys.count) : SortedKeys(static_cast<const int64_t*>(keys.data), keys.count);
  auto map = std::make_unique<OrtValue>();
  map->kind = ONNX_TYPE_MAP;
  map->parts = {Picked(keys, at), Picked(values, at)};
  return map;
}

ValueRef NewSequence(const OrtValue* const* in, size_t count) {
  if (count == 0) Fail(ORT_INVALID_ARGUMENT, "a sequence needs at least one value, from which it takes the type");
  auto sequence = std::make_unique<OrtValue>();
  sequence->kind = ONNX_TYPE_SEQUENCE;
  OrtTypeInfo first = TypeOf(*Need(in[0], "in[0]"));
  if (first.kind != ONNX_TYPE_TENSOR && first.kind != ONNX_TYPE_MAP) {
    Fail(ORT_NOT_IMPLEMENTED, "a sequence has tensors or maps, not values of type ", NameOf(first));
  }
  for (size_t i = 0; i < count; ++i) {
    const std::string type = NameOf(TypeOf(*Need(in[i], "in[i]")));
    if (type != NameOf(first)) {
      Fail(ORT_INVALID_ARGUMENT, "value ", std::to_string(i), " of the sequence is a ", type, ", but the first is a ", NameOf(first));
    }
    sequence->parts.push_back(Copy(*in[i], nullptr));
  }
  if (first.kind == ONNX_TYPE_TENSOR) first.tensor = {first.tensor.type, false, {}, {}};
  sequence->element = std::make_shared<const OrtTypeInfo>(std::move(first));
  return sequence;
}

}  // namespace

ValueRef NewTensor(OrtAllocator* allocator, ONNXTensorElementDataType type, const int64_t* dims, size_t rank) {
  if (!allocator) allocator = CpuAllocator();
  if (DtypeOf(type) == TW_INVALID_TYPE) Fail(ORT_NOT_IMPLEMENTED, "tensors of ", NameOf(type), " are not offered");
  auto value = std::make_unique<OrtValue>();
  value->type = type;
  value->count = CountOf(dims, rank);
  value->dims.assign(dims, dims + rank);
  if (const OrtMemoryInfo* info = allocator->Info ? allocator->Info(allocator) : nullptr) value->info = *info;
  if (IsString(*value)) {
    value->strings = std::make_shared<std::vector<std::string>>(static_cast<size_t>(value->count));
    return value;
  }
  value->bytes = BytesOf(type, value->count);
  void* data = Allocate(allocator, value->bytes);
  value->memory = std::shared_ptr<void>(data, [allocator](void* p) { allocator->Free(allocator, p); });
  value->data = data;
  return value;
}

ValueRef Copy(const OrtValue& value, OrtAllocator* allocator) {
  if (value.kind == ONNX_TYPE_TENSOR) {
    ValueRef copy = NewTensor(allocator, value.type, value.dims.data(), value.dims.size());
    if (IsString(value)) *copy->strings = *value.strings;
    if (value.bytes > 0) std::memcpy(copy->data, value.data, value.bytes);
    return copy;
  }
  auto copy = std::make_unique<OrtValue>();
  copy->kind = value.kind;
  copy->element = value.element;
  for (const auto& part : value.parts) copy->parts.push_back(Copy(*part, allocator));
  return copy;
}

OrtTypeInfo TypeOf(const OrtValue& value) {
  if (value.kind == ONNX_TYPE_TENSOR) return TensorType(value.type, value.dims);
  OrtTypeInfo info;
  info.kind = value.kind;
  auto element = value.element;
  if (!element && !value.parts.empty()) element = std::make_shared<const OrtTypeInfo>(TypeOf(*value.parts.back()));
  if (value.kind == ONNX_TYPE_MAP) info.map = {value.parts[0]->type, element};
  if (value.kind == ONNX_TYPE_SEQUENCE) info.sequence = {element};
  if (value.kind == ONNX_TYPE_OPTIONAL) info.optional = {element};
  return info;
}

TensorRef TensorToThalweg(const OrtValue& v) {
  const auto rank = static_cast<uint32_t>(v.dims.size());
  const uint32_t dtype = DtypeOf(v.type);
  tw_tensor* made = nullptr;
  if (IsString(v)) {
    Check(tw_tensor_create(dtype, v.dims.data(), rank, &made));
    TensorRef owner(made);
    for (size_t i = 0; i < v.strings->size(); ++i) {
      const std::string& text = (*v.strings)[i];
      Check(tw_tensor_set_string(made, i, text.data(), text.size()));
    }
    return owner;
  }
  const unsigned per_byte = PerByte(v.type);
  if (per_byte > 1) {
    Check(tw_tensor_create(dtype, v.dims.data(), rank, &made));
    TensorRef owner(made);
    if (v.count == 0) return owner;
    auto* to = static_cast<uint8_t*>(tw_tensor_mutable_data(made));
    Unpack(static_cast<const uint8_t*>(v.data), v.count, per_byte, IsSigned(v.type), to);
    return owner;
  }
  const size_t size = BytesOf(v.type, 1);
  // 16 bytes are two numbers of 8.
  const bool aligned = reinterpret_cast<uintptr_t>(v.data) % std::min<size_t>(size, 8) == 0;
  if (!aligned || v.count == 0) {
    Check(tw_tensor_create_copy(dtype, v.dims.data(), rank, v.count > 0 ? v.data : nullptr, v.bytes, &made));
    return TensorRef(made);
  }
  // A holder that outlives the run keeps memory that is not the client's.
  auto keep = std::make_unique<std::shared_ptr<void>>(v.memory);
  const auto release = [](void* user) { delete static_cast<std::shared_ptr<void>*>(user); };
  Check(tw_tensor_create_from_const(dtype, v.dims.data(), rank, v.data, v.bytes, release, keep.release(), &made));
  return TensorRef(made);
}

ValueRef TensorFromThalweg(TensorRef tensor) {
  tw_tensor* t = tensor.get();
  const ONNXTensorElementDataType type = ElementOf(tw_tensor_dtype(t));
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) {
    const char* name = tw_dtype_name(tw_tensor_dtype(t));
    Fail(ORT_NOT_IMPLEMENTED, "a result has type ", name ? name : "unknown", ", which ONNX Runtime does not have");
  }
  const bool numbers = type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING && PerByte(type) == 1;
  void* data = numbers && tw_tensor_count(t) > 0 ? tw_tensor_mutable_data(t) : nullptr;
  if (!data) {
    ValueRef copy = NewTensor(nullptr, type, tw_tensor_dims(t), tw_tensor_rank(t));
    WriteTensor(std::move(tensor), "", copy.get());
    return copy;
  }
  auto value = std::make_unique<OrtValue>();
  value->type = type;
  value->dims.assign(tw_tensor_dims(t), tw_tensor_dims(t) + tw_tensor_rank(t));
  value->count = static_cast<int64_t>(tw_tensor_count(t));
  value->bytes = static_cast<size_t>(tw_tensor_bytes(t));
  value->data = data;
  value->memory = std::shared_ptr<void>(tensor.release(), [](void* p) { tw_tensor_release(static_cast<tw_tensor*>(p)); });
  return value;
}

void WriteTensor(TensorRef tensor, const std::string& name, OrtValue* to) {
  tw_tensor* t = tensor.get();
  const std::vector<int64_t> dims(tw_tensor_dims(t), tw_tensor_dims(t) + tw_tensor_rank(t));
  if (ElementOf(tw_tensor_dtype(t)) != to->type || to->kind != ONNX_TYPE_TENSOR) {
    Fail(ORT_INVALID_ARGUMENT, "output '", name, "' is a tensor(", NameOf(ElementOf(tw_tensor_dtype(t))), "), but the given value is a ",
         NameOf(TypeOf(*to)), "; give NULL to have it allocated");
  }
  if (dims != to->dims) {
    Fail(ORT_INVALID_ARGUMENT, "output '", name, "' has shape ", ShapeText(dims), ", but the given tensor has ", ShapeText(to->dims),
         "; give NULL to have it allocated");
  }
  if (IsString(*to)) {
    for (size_t i = 0; i < to->strings->size(); ++i) {
      const char* data = nullptr;
      uint64_t bytes = 0;
      Check(tw_tensor_get_string(t, i, &data, &bytes));
      (*to->strings)[i].assign(data, static_cast<size_t>(bytes));
    }
  } else if (PerByte(to->type) > 1) {
    Pack(static_cast<const uint8_t*>(tw_tensor_data(t)), to->count, PerByte(to->type), static_cast<uint8_t*>(to->data));
  } else if (to->bytes > 0) {
    std::memcpy(to->data, tw_tensor_data(t), to->bytes);
  }
}

namespace api {

// ---- Making ----

OrtStatus* CreateTensorAsOrtValue(OrtAllocator* allocator, const int64_t* dims, size_t rank, ONNXTensorElementDataType type,
                                  OrtValue** out) {
  return Guard(__func__, [&] {
    OrtValue*& made = Result(out);
    made = NewTensor(Need(allocator, "allocator"), type, dims, rank).release();
  });
}
OrtStatus* CreateTensorWithDataAsOrtValue(const OrtMemoryInfo* info, void* data, size_t bytes, const int64_t* dims, size_t rank,
                                          ONNXTensorElementDataType type, OrtValue** out) {
  return Guard(__func__, [&] {
    OrtValue*& made = Result(out);
    CheckHost(info);
    made = Over(*info, data, bytes, dims, rank, type).release();
  });
}
OrtStatus* CreateTensorWithDataAndDeleterAsOrtValue(OrtAllocator* deleter, void* data, size_t bytes, const int64_t* dims, size_t rank,
                                                    ONNXTensorElementDataType type, OrtValue** out) {
  return Guard(__func__, [&] {
    OrtValue*& made = Result(out);
    const OrtMemoryInfo* info = Need(deleter, "deleter")->Info ? deleter->Info(deleter) : nullptr;
    ValueRef value = Over(info ? *info : *CpuMemory(), data, bytes, dims, rank, type);
    value->memory = std::shared_ptr<void>(data, [deleter](void* p) { deleter->Free(deleter, p); });
    made = value.release();
  });
}
void ReleaseValue(OrtValue* value) { delete value; }

OrtStatus* CreateValue(const OrtValue* const* in, size_t count, ONNXType kind, OrtValue** out) {
  return Guard(__func__, [&] {
    OrtValue*& made = Result(out);
    Need(in, "in");
    if (kind == ONNX_TYPE_SEQUENCE) {
      made = NewSequence(in, count).release();
    } else if (kind == ONNX_TYPE_MAP) {
      if (count != 2) Fail(ORT_INVALID_ARGUMENT, "a map has two values, its keys and what they map to, not ", std::to_string(count));
      made = NewMap(*Need(in[0], "in[0]"), *Need(in[1], "in[1]")).release();
    } else {
      Fail(ORT_NOT_IMPLEMENTED, "values of type ", std::to_string(static_cast<int>(kind)),
           " cannot be made of others; sequences and maps can");
    }
  });
}
OrtStatus* GetValueCount(const OrtValue* value, size_t* out) {
  return Guard(__func__, [&] {
    size_t& count = Result(out);
    if (Need(value, "value")->kind != ONNX_TYPE_SEQUENCE && value->kind != ONNX_TYPE_MAP) {
      Fail(ORT_FAIL, "the value is a ", NameOf(TypeOf(*value)), ", which has no parts; sequences and maps have");
    }
    count = value->parts.size();
  });
}
OrtStatus* GetValue(const OrtValue* value, int index, OrtAllocator* allocator, OrtValue** out) {
  return Guard(__func__, [&] {
    OrtValue*& made = Result(out);
    if (Need(value, "value")->kind != ONNX_TYPE_SEQUENCE && value->kind != ONNX_TYPE_MAP) {
      Fail(ORT_FAIL, "the value is a ", NameOf(TypeOf(*value)), ", which has no parts; sequences and maps have");
    }
    if (index < 0 || static_cast<size_t>(index) >= value->parts.size()) {
      Fail(ORT_INVALID_ARGUMENT, "index ", std::to_string(index), " is out of bounds: the value has ", std::to_string(value->parts.size()),
           " parts");
    }
    made = Copy(*value->parts[static_cast<size_t>(index)], Need(allocator, "allocator")).release();
  });
}

// ---- Looking ----

OrtStatus* IsTensor(const OrtValue* value, int* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(value, "value")->kind == ONNX_TYPE_TENSOR;
  });
}
OrtStatus* IsSparseTensor(const OrtValue* value, int* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(value, "value")->kind == ONNX_TYPE_SPARSETENSOR;
  });
}
OrtStatus* HasValue(const OrtValue* value, int* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(value, "value")->kind != ONNX_TYPE_OPTIONAL || !value->parts.empty();
  });
}
OrtStatus* GetTypeInfo(const OrtValue* value, OrtTypeInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = new OrtTypeInfo(TypeOf(*Need(value, "value")));
  });
}
OrtStatus* GetValueType(const OrtValue* value, ONNXType* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(value, "value")->kind;
  });
}
OrtStatus* GetTensorTypeAndShape(const OrtValue* value, OrtTensorTypeAndShapeInfo** out) {
  return Guard(__func__, [&] {
    OrtTensorTypeAndShapeInfo*& made = Result(out);
    made = new OrtTensorTypeAndShapeInfo(TypeOf(Tensor(value)).tensor);
  });
}
OrtStatus* GetTensorElementTypeAndShapeDataReference(const OrtValue* value, ONNXTensorElementDataType* type, const int64_t** dims,
                                                     size_t* rank) {
  return Guard(__func__, [&] {
    Result(type, "elem_type");
    Result(dims, "shape_data");
    Result(rank, "shape_data_count");
    const OrtValue& tensor = Tensor(value);
    *type = tensor.type;
    *dims = tensor.dims.data();
    *rank = tensor.dims.size();
  });
}
OrtStatus* GetTensorMemoryInfo(const OrtValue* value, const OrtMemoryInfo** out) {
  return Guard(__func__, [&] {
    Result(out, "mem_info");
    *out = &Tensor(value).info;
  });
}
// For a tensor of strings it returns the address of the first std::string, as ONNX Runtime does.
OrtStatus* GetTensorMutableData(OrtValue* value, void** out) {
  return Guard(__func__, [&] {
    void*& data = Result(out);
    OrtValue& tensor = Tensor(value);
    data = IsString(tensor) ? static_cast<void*>(tensor.strings->data()) : tensor.data;
  });
}
OrtStatus* GetTensorData(const OrtValue* value, const void** out) {
  return Guard(__func__, [&] {
    const void*& data = Result(out);
    const OrtValue& tensor = Tensor(value);
    data = IsString(tensor) ? static_cast<const void*>(tensor.strings->data()) : tensor.data;
  });
}
OrtStatus* GetTensorSizeInBytes(const OrtValue* value, size_t* out) {
  return Guard(__func__, [&] {
    size_t& bytes = Result(out, "size");
    bytes = BytesOf(Tensor(value).type, value->count);
  });
}
OrtStatus* TensorAt(OrtValue* value, const int64_t* at, size_t count, void** out) {
  return Guard(__func__, [&] {
    void*& data = Result(out);
    OrtValue& tensor = Tensor(value);
    if (IsString(tensor) || PerByte(tensor.type) > 1)
      Fail(ORT_NOT_IMPLEMENTED, "elements of type ", NameOf(tensor.type), " have no address");
    if (count != tensor.dims.size()) {
      Fail(ORT_INVALID_ARGUMENT, std::to_string(count), " indices for a tensor of ", std::to_string(tensor.dims.size()), " axes");
    }
    size_t offset = 0;
    for (size_t i = 0; i < count; ++i) {
      const int64_t index = Need(at, "location_values")[i];
      if (index < 0 || index >= tensor.dims[i]) {
        Fail(ORT_INVALID_ARGUMENT, "index ", std::to_string(index), " of axis ", std::to_string(i), " is out of bounds: shape ",
             ShapeText(tensor.dims));
      }
      offset = offset * static_cast<size_t>(tensor.dims[i]) + static_cast<size_t>(index);
    }
    data = static_cast<char*>(tensor.data) + offset * BytesOf(tensor.type, 1);
  });
}
OrtStatus* CopyTensors(const OrtEnv* env, const OrtValue* const* from, OrtValue* const* to, OrtSyncStream* stream, size_t count) {
  return Guard(__func__, [&] {
    Need(env, "env");
    if (stream) Fail(ORT_INVALID_ARGUMENT, "there are no streams; give NULL");
    for (size_t i = 0; i < count; ++i) {
      const OrtValue& source = Tensor(Need(from, "src_tensors")[i]);
      OrtValue& target = Tensor(Need(to, "dst_tensors")[i]);
      if (source.type != target.type || source.dims != target.dims) {
        Fail(ORT_INVALID_ARGUMENT, "tensor ", std::to_string(i), " is ", NameOf(TypeOf(source)), " of shape ", ShapeText(source.dims),
             ", its target ", NameOf(TypeOf(target)), " of shape ", ShapeText(target.dims));
      }
      if (IsString(source)) *target.strings = *source.strings;
      if (source.bytes > 0) std::memmove(target.data, source.data, source.bytes);
    }
  });
}

// ---- Strings ----

OrtStatus* FillStringTensor(OrtValue* value, const char* const* texts, size_t count) {
  return Guard(__func__, [&] {
    OrtValue& tensor = Strings(value);
    if (count != tensor.strings->size()) {
      Fail(ORT_INVALID_ARGUMENT, std::to_string(count), " strings for a tensor of ", std::to_string(tensor.strings->size()), " elements");
    }
    for (size_t i = 0; i < count; ++i) (*tensor.strings)[i] = Need(Need(texts, "s")[i], "s[i]");
  });
}
OrtStatus* FillStringTensorElement(OrtValue* value, const char* text, size_t index) {
  return Guard(__func__, [&] {
    OrtValue& tensor = Strings(value);
    (*tensor.strings)[IndexIn(tensor, index)] = Need(text, "s");
  });
}
OrtStatus* GetResizedStringTensorElementBuffer(OrtValue* value, size_t index, size_t bytes, char** out) {
  return Guard(__func__, [&] {
    char*& buffer = Result(out, "buffer");
    OrtValue& tensor = Strings(value);
    std::string& text = (*tensor.strings)[IndexIn(tensor, index)];
    text.resize(bytes);
    buffer = text.data();
  });
}
OrtStatus* GetStringTensorElementLength(const OrtValue* value, size_t index, size_t* out) {
  return Guard(__func__, [&] {
    size_t& bytes = Result(out);
    const OrtValue& tensor = Strings(value);
    bytes = (*tensor.strings)[IndexIn(tensor, index)].size();
  });
}
OrtStatus* GetStringTensorElement(const OrtValue* value, size_t room, size_t index, void* to) {
  return Guard(__func__, [&] {
    const OrtValue& tensor = Strings(value);
    const std::string& text = (*tensor.strings)[IndexIn(tensor, index)];
    if (text.size() > room) {
      Fail(ORT_INVALID_ARGUMENT, "element ", std::to_string(index), " has ", std::to_string(text.size()), " bytes, the buffer ",
           std::to_string(room), "; GetStringTensorElementLength returns the length");
    }
    if (!text.empty()) std::memcpy(Need(to, "s"), text.data(), text.size());
  });
}
OrtStatus* GetStringTensorDataLength(const OrtValue* value, size_t* out) {
  return Guard(__func__, [&] {
    size_t& bytes = Result(out, "len");
    for (const std::string& text : *Strings(value).strings) bytes += text.size();
  });
}
OrtStatus* GetStringTensorContent(const OrtValue* value, void* to, size_t room, size_t* offsets, size_t count) {
  return Guard(__func__, [&] {
    const OrtValue& tensor = Strings(value);
    size_t total = 0;
    for (const std::string& text : *tensor.strings) total += text.size();
    if (count != tensor.strings->size()) {
      Fail(ORT_INVALID_ARGUMENT, "room for ", std::to_string(count), " offsets for ", std::to_string(tensor.strings->size()), " elements");
    }
    if (room < total) {
      Fail(ORT_INVALID_ARGUMENT, "room for ", std::to_string(room), " bytes, but the strings have ", std::to_string(total),
           "; GetStringTensorDataLength returns the length");
    }
    size_t at = 0;
    for (size_t i = 0; i < count; ++i) {
      Need(offsets, "offsets")[i] = at;
      const std::string& text = (*tensor.strings)[i];
      if (!text.empty()) std::memcpy(static_cast<char*>(Need(to, "s")) + at, text.data(), text.size());
      at += text.size();
    }
  });
}

}  // namespace api
}  // namespace thalweg::ort
