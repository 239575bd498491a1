#include "tensor.h"

#include <cstdlib>
#include <cstring>

#include "framework/proto/attr_value.pb.h"
#include "framework/proto/graph.pb.h"

namespace thalweg::tf {
namespace {

constexpr size_t kAlignment = 64;

void FreeAligned(void* data, size_t, void*) { std::free(data); }

std::shared_ptr<Memory> Allocate(size_t bytes) {
  auto memory = std::make_shared<Memory>();
  memory->data = std::aligned_alloc(kAlignment, (bytes + kAlignment) / kAlignment * kAlignment);
  if (!memory->data) throw std::bad_alloc();
  memory->bytes = bytes;
  memory->release = FreeAligned;
  return memory;
}

bool Opaque(TF_DataType type) { return type == TF_RESOURCE || type == TF_VARIANT; }

}  // namespace

Memory::~Memory() {
  for (size_t i = 0; i < strings; ++i) TF_StringDealloc(static_cast<TF_TString*>(data) + i);
  if (release) release(data, bytes, arg);
}

int64_t Count(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t d : dims) {
    if (d < 0 || __builtin_mul_overflow(count, d, &count)) Fail(TF_INVALID_ARGUMENT, "the shape has a negative size or too many elements");
  }
  return count;
}

TensorRef ToThalweg(const TF_Tensor& tensor) {
  const Memory& memory = *tensor.memory;
  tw_tensor* made = nullptr;
  const auto rank = static_cast<uint32_t>(tensor.dims.size());
  if (memory.tensor && tw_tensor_dtype(memory.tensor.get()) == tensor.type) {
    Check(tw_tensor_reshape(memory.tensor.get(), tensor.dims.data(), rank, &made));
    return TensorRef(made);
  }
  if (Opaque(tensor.type)) Fail(TF_INVALID_ARGUMENT, "a tensor of resources or variants must come from a call");
  if (tensor.type == TF_STRING) {
    const auto count = static_cast<size_t>(Count(tensor.dims));
    if (memory.bytes < count * sizeof(TF_TString)) {
      Fail(TF_INVALID_ARGUMENT, "Malformed TF_STRING tensor; too short to hold number of elements");
    }
    Check(tw_tensor_create(TW_STRING, tensor.dims.data(), rank, &made));
    TensorRef owner(made);
    for (size_t i = 0; i < count; ++i) {
      const TF_TString* s = static_cast<const TF_TString*>(memory.data) + i;
      Check(tw_tensor_set_string(made, i, TF_StringGetDataPointer(s), TF_StringGetSize(s)));
    }
    return owner;
  }
  const size_t wanted = static_cast<size_t>(Count(tensor.dims)) * tw_dtype_bytes(tensor.type);
  if (memory.bytes != wanted) {
    Fail(TF_INVALID_ARGUMENT, "the tensor has ", std::to_string(memory.bytes), " bytes, but its type and shape need ",
         std::to_string(wanted));
  }
  // The runtime never writes to it, so that a variable that was assigned the tensor leaves the client's memory as it is.
  auto* keeps = new std::shared_ptr<Memory>(tensor.memory);
  Check(tw_tensor_create_from_const(
      tensor.type, tensor.dims.data(), rank, memory.data, memory.bytes, [](void* p) { delete static_cast<std::shared_ptr<Memory>*>(p); },
      keeps, &made));
  return TensorRef(made);
}

TF_Tensor* FromThalweg(TensorRef tensor) {
  if (tw_tensor_device(tensor.get())) {
    tw_tensor* host = nullptr;
    Check(tw_tensor_to_host(tensor.get(), &host));
    tensor.reset(host);
  }
  auto made = std::make_unique<TF_Tensor>();
  const tw_tensor* t = tensor.get();
  made->type = static_cast<TF_DataType>(tw_tensor_dtype(t));
  made->dims.assign(tw_tensor_dims(t), tw_tensor_dims(t) + tw_tensor_rank(t));
  if (made->type == TF_STRING) {
    const uint64_t count = tw_tensor_count(t);
    made->memory = Allocate(count * sizeof(TF_TString));
    auto* strings = static_cast<TF_TString*>(made->memory->data);
    for (uint64_t i = 0; i < count; ++i) {
      const char* data = nullptr;
      uint64_t bytes = 0;
      Check(tw_tensor_get_string(t, i, &data, &bytes));
      TF_StringInit(strings + i);
      made->memory->strings = i + 1;
      TF_StringCopy(strings + i, data, bytes);
    }
    return made.release();
  }
  made->memory = std::make_shared<Memory>();
  if (!Opaque(made->type)) {
    made->memory->data = const_cast<void*>(tw_tensor_data(t));
    made->memory->bytes = tw_tensor_bytes(t);
  }
  made->memory->tensor = std::move(tensor);
  return made.release();
}

// The value of a constant with this message.
TensorRef Decode(const proto::TensorProto& message) {
  proto::AttrValue value;
  *value.mutable_tensor() = message;
  const std::string bytes = Serialise(value);
  tw_graph* graph = nullptr;
  Check(tw_graph_create(nullptr, &graph));
  const GraphRef owner(graph);
  tw_op* op = tw_op_create(graph, "Const", "value");
  tw_op_set_type(op, "dtype", static_cast<uint32_t>(message.dtype()));
  tw_op_set_message(op, "value", bytes.data(), bytes.size());
  const tw_operation* made = nullptr;
  Check(tw_op_finish(op, &made));
  const void* tensors = nullptr;
  Check(tw_operation_attr(made, "value", nullptr, nullptr, nullptr, &tensors));
  tw_tensor* tensor = *static_cast<tw_tensor* const*>(tensors);
  tw_tensor_retain(tensor);
  return TensorRef(tensor);
}

proto::TensorProto Encode(tw_tensor* tensor) {
  tw_graph* graph = nullptr;
  Check(tw_graph_create(nullptr, &graph));
  const GraphRef owner(graph);
  tw_op* op = tw_op_create(graph, "Const", "value");
  tw_op_set_type(op, "dtype", tw_tensor_dtype(tensor));
  tw_op_set_tensor(op, "value", tensor);
  const tw_operation* made = nullptr;
  Check(tw_op_finish(op, &made));
  tw_buffer* bytes = nullptr;
  Check(tw_operation_message(made, &bytes));
  const BufferRef message(bytes);
  proto::NodeDef node;
  Parse(tw_buffer_data(bytes), tw_buffer_bytes(bytes), "NodeDef", &node);
  return std::move(*(*node.mutable_attr())["value"].mutable_tensor());
}

}  // namespace thalweg::tf

using namespace thalweg::tf;

size_t TF_TensorDefaultAlignment(void) { return kAlignment; }

TF_Tensor* TF_NewTensor(TF_DataType type, const int64_t* dims, int num_dims, void* data, size_t len,
                        void (*deallocator)(void* data, size_t len, void* arg), void* deallocator_arg) {
  return Guard(nullptr, [&]() -> TF_Tensor* {
    auto tensor = std::make_unique<TF_Tensor>();
    tensor->type = type;
    tensor->dims.assign(dims, dims + num_dims);
    const size_t element = TF_DataTypeSize(type);
    // As TensorFlow, other memory is copied. Some clients free it before they are told that they may.
    if (element == 0 || reinterpret_cast<uintptr_t>(data) % kAlignment == 0) {
      tensor->memory = std::make_shared<Memory>();
      tensor->memory->data = data;
      tensor->memory->bytes = len;
      tensor->memory->release = deallocator;
      tensor->memory->arg = deallocator_arg;
    } else {
      tensor->memory = Allocate(len);
      std::memcpy(tensor->memory->data, data, len);
      if (deallocator) deallocator(data, len, deallocator_arg);
    }
    if (element != 0 && len < element * static_cast<size_t>(Count(tensor->dims))) return nullptr;
    return tensor.release();
  });
}

TF_Tensor* TF_AllocateTensor(TF_DataType type, const int64_t* dims, int num_dims, size_t len) {
  return Guard(nullptr, [&] {
    auto tensor = std::make_unique<TF_Tensor>();
    tensor->type = type;
    tensor->dims.assign(dims, dims + num_dims);
    tensor->memory = Allocate(len);
    if (type == TF_STRING) std::memset(tensor->memory->data, 0, len);
    return tensor.release();
  });
}

// The client may still use memory of its own, so that is not moved.
TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor) {
  const bool own = tensor && (tensor->memory->tensor || tensor->memory->release == FreeAligned);
  if (!own || tensor->memory.use_count() != 1 || (tensor->memory->tensor && tw_tensor_shared(tensor->memory->tensor.get()))) return nullptr;
  return Guard(nullptr, [&] { return new TF_Tensor(*tensor); });
}

void TF_DeleteTensor(TF_Tensor* tensor) { delete tensor; }
TF_DataType TF_TensorType(const TF_Tensor* tensor) { return tensor->type; }
void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims) { tensor->dims.assign(dims, dims + num_dims); }
int TF_NumDims(const TF_Tensor* tensor) { return static_cast<int>(tensor->dims.size()); }
int64_t TF_Dim(const TF_Tensor* tensor, int dim_index) { return tensor->dims[static_cast<size_t>(dim_index)]; }
size_t TF_TensorByteSize(const TF_Tensor* tensor) { return tensor->memory->bytes; }
void* TF_TensorData(const TF_Tensor* tensor) { return tensor->memory->data; }

int64_t TF_TensorElementCount(const TF_Tensor* tensor) {
  int64_t count = 1;
  for (int64_t d : tensor->dims) count *= d;
  return count;
}

void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type, TF_Tensor* to, const int64_t* new_dims, int num_new_dims,
                          TF_Status* status) {
  Guard(status, [&] {
    const std::vector<int64_t> dims(new_dims, new_dims + num_new_dims);
    const size_t wanted = static_cast<size_t>(Count(dims)) * TF_DataTypeSize(type);
    if (TF_DataTypeSize(type) == 0 || TF_DataTypeSize(from->type) == 0) Fail(TF_INVALID_ARGUMENT, "only numbers can be cast bit by bit");
    if (wanted != from->memory->bytes) {
      Fail(TF_INVALID_ARGUMENT, "input tensor is not compatible with output shape: it has ", std::to_string(from->memory->bytes),
           " bytes, and the result ", std::to_string(wanted));
    }
    to->memory = from->memory;
    to->type = type;
    to->dims = dims;
  });
}

bool TF_TensorIsAligned(const TF_Tensor* tensor) { return reinterpret_cast<uintptr_t>(tensor->memory->data) % kAlignment == 0; }

void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to, TF_Status* status) {
  Guard(status, [&] {
    thalweg::proto::TensorProto message;
    Parse(from, "TensorProto", &message);
    const std::unique_ptr<TF_Tensor> decoded(FromThalweg(Decode(message)));
    *to = *decoded;
  });
}
