#include "thalweg/tensor.h"

#include <cstring>

#include "c_api/geometry.h"
#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/runtime.h"
#include "framework/tensor/lent.h"
#include "framework/tensor/tensor.h"

using thalweg::BaseType;
using thalweg::DTypeName;
using thalweg::Enter;
using thalweg::InvalidArgument;
using thalweg::Status;
using thalweg::Tensor;

namespace {

// Checks that a program may make such a tensor: resources and variants come only from operations.
Status CheckGeometry(uint32_t dtype, const int64_t* dims, uint32_t rank) {
  const uint32_t base = BaseType(dtype);
  if (!thalweg::FindDType(dtype)) return InvalidArgument("element type ", dtype, " is none that exists");
  if (base == TW_RESOURCE || base == TW_VARIANT || dtype > TW_REF) {
    return InvalidArgument("a tensor of ", DTypeName(dtype), " cannot be made by a program, only by operations");
  }
  if (rank > uint32_t(thalweg::kMaxRank)) return InvalidArgument("rank ", rank, " is more than ", thalweg::kMaxRank);
  if (rank > 0 && !dims) return InvalidArgument("dims are NULL at rank ", rank);
  return Status();
}

Status CheckBytes(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes) {
  RETURN_IF_ERROR(CheckGeometry(dtype, dims, rank));
  if (dtype == TW_STRING) return InvalidArgument("strings cannot be given as bytes; use tw_tensor_set_string");
  ASSIGN_OR_RETURN(const int64_t need, thalweg::CountBytes(dims, int32_t(rank), dtype));
  if (uint64_t(need) != bytes) {
    return InvalidArgument("a tensor of ", DTypeName(dtype), " ", thalweg::ShapeText(dims, int32_t(rank)), " has ", need, " bytes, but ",
                           bytes, " were given");
  }
  if (bytes > 0 && !data) return InvalidArgument("data is NULL for ", bytes, " bytes");
  return Status();
}

template <class T>
tw_status* MakeScalar(uint32_t dtype, T value, tw_tensor** out_tensor) {
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, nullptr, 0));
    *t.as<T>() = value;
    *out_tensor = t.release();
    return Status();
  });
}

// Returns true if only the caller refers to the tensor and its memory.
bool Alone(tw_tensor* tensor) {
  Tensor t = Tensor::Adopt(tensor);
  const bool unique = t.unique();
  t.release();
  return unique;
}

// Returns the tensor, or its copy in host memory if it is on a device.
thalweg::StatusOr<Tensor> OnHost(tw_tensor* tensor) {
  thalweg::Device* device = thalweg::HoldingDevice(*tensor);
  if (!device && !thalweg::LiesOnHost(*tensor)) {
    return thalweg::FailedPrecondition("the tensor's device is no more; its runtime has ended");
  }
  Tensor here = Tensor::Share(tensor);
  return device ? device->ToHost(here) : here;
}

Status CheckString(const tw_tensor* tensor, uint64_t i) {
  if (tensor->view.dtype != TW_STRING) return InvalidArgument("a tensor of ", DTypeName(tensor->view.dtype), " holds no strings");
  if (i >= tensor->view.count) {
    return thalweg::Error(absl::StatusCode::kOutOfRange, "string ", i, " of a tensor with ", tensor->view.count, " elements");
  }
  return Status();
}

}  // namespace

tw_status* tw_tensor_create(uint32_t dtype, const int64_t* dims, uint32_t rank, tw_tensor** out_tensor) {
  NEED(out_tensor);
  return Enter([&]() -> Status {
    RETURN_IF_ERROR(CheckGeometry(dtype, dims, rank));
    ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, dims, int32_t(rank)));
    if (dtype != TW_STRING && t.bytes() > 0) std::memset(t.data(), 0, t.bytes());
    *out_tensor = t.release();
    return Status();
  });
}

tw_status* tw_tensor_create_copy(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes,
                                 tw_tensor** out_tensor) {
  NEED(out_tensor);
  return Enter([&]() -> Status {
    RETURN_IF_ERROR(CheckBytes(dtype, dims, rank, data, bytes));
    ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, dims, int32_t(rank)));
    if (bytes > 0) std::memcpy(t.data(), data, bytes);
    *out_tensor = t.release();
    return Status();
  });
}

static tw_status* Lend(const char* function, uint32_t dtype, const int64_t* dims, uint32_t rank, void* data, uint64_t bytes,
                       void (*release)(void* user), void* user, bool read_only, tw_tensor** out_tensor) {
  thalweg::Lent lent(release, user);
  if (!out_tensor) return thalweg::NullArgument(function, "out_tensor");
  return Enter([&]() -> Status {
    RETURN_IF_ERROR(CheckBytes(dtype, dims, rank, data, bytes));
    const uint32_t align = thalweg::AlignmentOf(dtype);
    if (reinterpret_cast<uintptr_t>(data) % align != 0) {
      return InvalidArgument("data for ", DTypeName(dtype), " is not aligned to ", align, " bytes");
    }
    ASSIGN_OR_RETURN(Tensor t, thalweg::LendTensor(dtype, dims, int32_t(rank), data, bytes, read_only, std::move(lent)));
    *out_tensor = t.release();
    return Status();
  });
}

tw_status* tw_tensor_create_from(uint32_t dtype, const int64_t* dims, uint32_t rank, void* data, uint64_t bytes,
                                 void (*release)(void* user), void* user, tw_tensor** out_tensor) {
  return Lend(__func__, dtype, dims, rank, data, bytes, release, user, false, out_tensor);
}

tw_status* tw_tensor_create_from_const(uint32_t dtype, const int64_t* dims, uint32_t rank, const void* data, uint64_t bytes,
                                       void (*release)(void* user), void* user, tw_tensor** out_tensor) {
  return Lend(__func__, dtype, dims, rank, const_cast<void*>(data), bytes, release, user, true, out_tensor);
}

tw_status* tw_tensor_create_float(float value, tw_tensor** out_tensor) {
  NEED(out_tensor);
  return MakeScalar(TW_FLOAT, value, out_tensor);
}

tw_status* tw_tensor_create_double(double value, tw_tensor** out_tensor) {
  NEED(out_tensor);
  return MakeScalar(TW_DOUBLE, value, out_tensor);
}

tw_status* tw_tensor_create_int32(int32_t value, tw_tensor** out_tensor) {
  NEED(out_tensor);
  return MakeScalar(TW_INT32, value, out_tensor);
}

tw_status* tw_tensor_create_int64(int64_t value, tw_tensor** out_tensor) {
  NEED(out_tensor);
  return MakeScalar(TW_INT64, value, out_tensor);
}

tw_status* tw_tensor_create_string(const char* data, uint64_t bytes, tw_tensor** out_tensor) {
  NEED(out_tensor);
  NEED_ARRAY(data, bytes);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(Tensor t, Tensor::Make(TW_STRING, nullptr, 0));
    RETURN_IF_ERROR(t.SetString(0, std::string_view(data, bytes)));
    *out_tensor = t.release();
    return Status();
  });
}

tw_status* tw_tensor_reshape(tw_tensor* tensor, const int64_t* dims, uint32_t rank, tw_tensor** out_tensor) {
  NEED(tensor);
  NEED_ARRAY(dims, rank);
  NEED(out_tensor);
  return Enter([&]() -> Status {
    if (rank > uint32_t(thalweg::kMaxRank)) return InvalidArgument("rank ", rank, " is more than ", thalweg::kMaxRank);
    ASSIGN_OR_RETURN(Tensor t, Tensor::Share(tensor).Reshape(dims, int32_t(rank)));
    *out_tensor = t.release();
    return Status();
  });
}

void tw_tensor_retain(tw_tensor* tensor) {
  if (tensor) thalweg::RetainTensor(tensor);
}

void tw_tensor_release(tw_tensor* tensor) { thalweg::ReleaseTensor(tensor); }

uint32_t tw_tensor_dtype(const tw_tensor* tensor) { return tensor ? tensor->view.dtype : uint32_t(TW_INVALID_TYPE); }

uint32_t tw_tensor_rank(const tw_tensor* tensor) { return tensor ? uint32_t(tensor->view.rank) : 0; }

int64_t tw_tensor_dim(const tw_tensor* tensor, uint32_t axis) { return axis < tw_tensor_rank(tensor) ? tensor->view.dims[axis] : -1; }

const int64_t* tw_tensor_dims(const tw_tensor* tensor) { return tensor ? tensor->view.dims : nullptr; }

uint64_t tw_tensor_count(const tw_tensor* tensor) { return tensor ? tensor->view.count : 0; }

uint64_t tw_tensor_bytes(const tw_tensor* tensor) { return tensor ? tensor->view.bytes : 0; }

const char* tw_tensor_device(const tw_tensor* tensor) {
  const thalweg::Device* device = tensor ? thalweg::HoldingDevice(*tensor) : nullptr;
  return device ? device->name().c_str() : nullptr;
}

tw_status* tw_tensor_to_host(tw_tensor* tensor, tw_tensor** out_tensor) {
  NEED(tensor);
  NEED(out_tensor);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(Tensor here, OnHost(tensor));
    *out_tensor = here.release();
    return Status();
  });
}

tw_status* tw_tensor_to_device(tw_tensor* tensor, tw_runtime* runtime, const char* device, tw_tensor** out_tensor) {
  NEED(tensor);
  NEED(device);
  NEED(out_tensor);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<thalweg::Runtime> owner, thalweg::RuntimeOf(runtime));
    ASSIGN_OR_RETURN(thalweg::Device * there, thalweg::FindDevice(*owner, device));
    Tensor t = Tensor::Share(tensor);
    if (thalweg::HoldingDevice(*tensor) != there) {
      ASSIGN_OR_RETURN(t, OnHost(tensor));
      ASSIGN_OR_RETURN(t, there->FromHost(t));
    }
    *out_tensor = t.release();
    return Status();
  });
}

const void* tw_tensor_data(const tw_tensor* tensor) {
  if (tensor && !thalweg::LiesOnHost(*tensor)) return nullptr;
  return tensor ? static_cast<const char*>(tensor->view.data) + tensor->view.offset : nullptr;
}

uint32_t tw_tensor_shared(const tw_tensor* tensor) { return tensor && thalweg::IsShared(*tensor); }

void* tw_tensor_mutable_data(tw_tensor* tensor) {
  if (!tensor || tensor->view.dtype == TW_STRING || !thalweg::LiesOnHost(*tensor) || !Alone(tensor)) return nullptr;
  return static_cast<char*>(tensor->view.data) + tensor->view.offset;
}

tw_status* tw_tensor_get_string(const tw_tensor* tensor, uint64_t i, const char** out_data, uint64_t* out_bytes) {
  NEED(tensor);
  NEED(out_data);
  NEED(out_bytes);
  return Enter([&]() -> Status {
    RETURN_IF_ERROR(CheckString(tensor, i));
    const tw_string& s = static_cast<const tw_string*>(tw_tensor_data(tensor))[i];
    *out_data = s.data ? s.data : "";
    *out_bytes = s.size;
    return Status();
  });
}

tw_status* tw_tensor_set_string(tw_tensor* tensor, uint64_t i, const char* data, uint64_t bytes) {
  NEED(tensor);
  NEED_ARRAY(data, bytes);
  return Enter([&]() -> Status {
    RETURN_IF_ERROR(CheckString(tensor, i));
    if (!Alone(tensor)) return thalweg::FailedPrecondition("the tensor is shared; its strings cannot be changed any more");
    return thalweg::SetString(tensor, i, std::string_view(data, bytes));
  });
}

const char* tw_dtype_name(uint32_t dtype) {
  const thalweg::DTypeInfo* info = thalweg::FindDType(dtype);
  return info ? DTypeName(dtype).data() : nullptr;  // views of literals, which are NUL-terminated
}

uint32_t tw_dtype_find(const char* name) { return name ? thalweg::DTypeByName(name) : uint32_t(TW_INVALID_TYPE); }

uint32_t tw_dtype_bytes(uint32_t dtype) { return thalweg::DTypeBytes(dtype); }
