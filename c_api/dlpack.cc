#include "thalweg/dlpack.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "c_api/shim.h"
#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/tensor/tensor.h"

using thalweg::Buffer;
using thalweg::Guard;
using thalweg::InvalidArgument;
using thalweg::Status;
using thalweg::StatusOr;
using thalweg::Tensor;

// ---- The structures of the DLPack specification, version 1.0 ----
// Under its names: sanitizers that check calls through pointers go by them.

struct DLDevice {
  int32_t type, id;
};
constexpr int32_t kDlCpu = 1, kDlPinned = 3, kDlOtherPinned = 11;  // pinned host memory, of two vendors, is host memory

struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
enum DlCode : uint8_t { kDlInt = 0, kDlUint = 1, kDlFloat = 2, kDlBfloat = 4, kDlComplex = 5, kDlBool = 6 };

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: dense and row-major
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor* self);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor tensor;
};
constexpr uint64_t kDlReadOnly = 1;

namespace {

struct TypePair {
  uint32_t dtype;
  DLDataType dl;
};
constexpr TypePair kTypes[] = {{TW_FLOAT, {kDlFloat, 32, 1}},       {TW_DOUBLE, {kDlFloat, 64, 1}},
                               {TW_HALF, {kDlFloat, 16, 1}},        {TW_BFLOAT16, {kDlBfloat, 16, 1}},
                               {TW_INT8, {kDlInt, 8, 1}},           {TW_INT16, {kDlInt, 16, 1}},
                               {TW_INT32, {kDlInt, 32, 1}},         {TW_INT64, {kDlInt, 64, 1}},
                               {TW_UINT8, {kDlUint, 8, 1}},         {TW_UINT16, {kDlUint, 16, 1}},
                               {TW_UINT32, {kDlUint, 32, 1}},       {TW_UINT64, {kDlUint, 64, 1}},
                               {TW_COMPLEX64, {kDlComplex, 64, 1}}, {TW_COMPLEX128, {kDlComplex, 128, 1}},
                               {TW_BOOL, {kDlBool, 8, 1}}};

// ---- Out ----

// What an exported structure holds on to. Managed is the first member, so that the deleter finds the whole.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor tensor;
  std::vector<int64_t> shape, strides;
};

template <class Managed>
Status Export(tw_tensor* tensor, Exported<Managed>** out) {
  const tw_view& view = tensor->view;
  if (const char* device = tw_tensor_device(tensor)) {
    return InvalidArgument("the tensor lies on ", device, ", and is shared from host memory only; copy it with tw_tensor_to_host first");
  }
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypePair& t) { return t.dtype == view.dtype; });
  if (type == std::end(kTypes)) return InvalidArgument("DLPack has no element type for ", thalweg::DTypeName(view.dtype));
  auto e = std::make_unique<Exported<Managed>>();
  e->tensor = Tensor::Share(tensor);
  e->shape.assign(view.dims, view.dims + view.rank);
  e->strides.resize(e->shape.size());
  int64_t stride = 1;
  for (size_t i = e->shape.size(); i-- > 0;) {
    e->strides[i] = stride;
    stride *= std::max<int64_t>(e->shape[i], 1);
  }
  DLTensor& t = e->managed.tensor;
  t.data = view.count ? static_cast<char*>(view.data) + view.offset : nullptr;
  t.device = {kDlCpu, 0};
  t.ndim = view.rank;
  t.dtype = type->dl;
  t.shape = e->shape.data();
  t.strides = e->strides.data();
  e->managed.context = e.get();
  e->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->context); };
  *out = e.release();
  return Status();
}

// ---- In ----

template <class Managed>
struct Taken {
  Managed* managed = nullptr;
  ~Taken() {
    if (managed && managed->deleter) managed->deleter(managed);
  }
};

bool IsDense(const DLTensor& t) {
  int64_t stride = 1;
  for (int32_t i = t.ndim; t.strides && i-- > 0;) {
    if (t.shape[i] != 1 && t.strides[i] != stride) return false;
    stride *= t.shape[i];
  }
  return true;
}

// Element by element, the last axis fastest.
void CopyStrided(const DLTensor& t, const char* from, uint32_t size, char* to, int32_t axis = 0) {
  if (axis == t.ndim) {
    std::memcpy(to, from, size);
    return;
  }
  int64_t inner = 1;
  for (int32_t i = axis + 1; i < t.ndim; ++i) inner *= t.shape[i];
  for (int64_t k = 0; k < t.shape[axis]; ++k) {
    CopyStrided(t, from + k * t.strides[axis] * int64_t(size), size, to + k * inner * int64_t(size), axis + 1);
  }
}

StatusOr<uint32_t> CheckImport(const DLTensor& t) {
  if (t.device.type != kDlCpu && t.device.type != kDlPinned && t.device.type != kDlOtherPinned) {
    return InvalidArgument("the DLPack tensor lies on a device of DLPack type ", t.device.type, "; copy it to host memory first");
  }
  const auto same = [&](const TypePair& p) {
    return p.dl.code == t.dtype.code && p.dl.bits == t.dtype.bits && p.dl.lanes == t.dtype.lanes;
  };
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes), same);
  if (type == std::end(kTypes)) {
    return InvalidArgument("tensors have no element type for DLPack's code ", int(t.dtype.code), " of ", int(t.dtype.bits), " bits and ",
                           t.dtype.lanes, " lanes");
  }
  if (t.ndim < 0 || (t.ndim > 0 && !t.shape))
    return InvalidArgument("the DLPack tensor has ", t.ndim, " axes", t.shape ? "" : " and no shape");
  RETURN_IF_ERROR(thalweg::CountBytes(t.shape, t.ndim, type->dtype).status());
  return type->dtype;
}

template <class Managed>
Status Import(Taken<Managed>* taken, tw_tensor** out) {
  const DLTensor& t = taken->managed->tensor;
  ASSIGN_OR_RETURN(const uint32_t dtype, CheckImport(t));
  ASSIGN_OR_RETURN(const int64_t bytes, thalweg::CountBytes(t.shape, t.ndim, dtype));
  if (bytes > 0 && !t.data) return InvalidArgument("the DLPack tensor of ", bytes, " bytes has no data");
  char* data = bytes > 0 ? static_cast<char*>(t.data) + t.byte_offset : nullptr;  // without elements there may be none
  const uint32_t size = thalweg::DTypeBytes(dtype);
  const uint32_t align = dtype == TW_COMPLEX64 || dtype == TW_COMPLEX128 ? size / 2 : size;
  if (bytes == 0 || !IsDense(t) || reinterpret_cast<uintptr_t>(data) % align != 0) {
    ASSIGN_OR_RETURN(Tensor copy, Tensor::Make(dtype, t.shape, t.ndim));
    if (bytes > 0 && IsDense(t)) {
      std::memcpy(copy.data(), data, size_t(bytes));
    } else if (bytes > 0) {
      CopyStrided(t, data, size, static_cast<char*>(copy.data()));
    }
    *out = copy.release();
    return Status();
  }
  auto buffer = std::make_unique<Buffer>();
  auto owner = std::make_unique<Taken<Managed>>();
  owner->managed = std::exchange(taken->managed, nullptr);
  buffer->data = data;
  buffer->bytes = uint64_t(bytes);
  buffer->read_only = true;
  buffer->user = owner.release();
  buffer->release = [](Buffer* b) {
    delete static_cast<Taken<Managed>*>(b->user);
    delete b;
  };
  ASSIGN_OR_RETURN(Tensor shared, Tensor::Wrap(buffer.release(), 0, dtype, t.shape, t.ndim));
  *out = shared.release();
  return Status();
}

}  // namespace

tw_status* tw_tensor_to_dlpack(tw_tensor* tensor, void** out_managed) {
  NEED(tensor);
  NEED(out_managed);
  return Guard([&]() -> Status {
    Exported<DLManagedTensor>* e = nullptr;
    RETURN_IF_ERROR(Export(tensor, &e));
    *out_managed = &e->managed;
    return Status();
  });
}

tw_status* tw_tensor_to_dlpack_versioned(tw_tensor* tensor, void** out_managed) {
  NEED(tensor);
  NEED(out_managed);
  return Guard([&]() -> Status {
    Exported<DLManagedTensorVersioned>* e = nullptr;
    RETURN_IF_ERROR(Export(tensor, &e));
    e->managed.major = 1;
    e->managed.flags = kDlReadOnly;
    *out_managed = &e->managed;
    return Status();
  });
}

tw_status* tw_tensor_from_dlpack(void* managed, tw_tensor** out_tensor) {
  NEED(managed);
  Taken<DLManagedTensor> taken{static_cast<DLManagedTensor*>(managed)};
  NEED(out_tensor);
  return Guard([&] { return Import(&taken, out_tensor); });
}

tw_status* tw_tensor_from_dlpack_versioned(void* managed, tw_tensor** out_tensor) {
  NEED(managed);
  Taken<DLManagedTensorVersioned> taken{static_cast<DLManagedTensorVersioned*>(managed)};
  NEED(out_tensor);
  return Guard([&]() -> Status {
    // Of another major version only the members up to the deleter are known.
    const DLManagedTensorVersioned& m = *taken.managed;
    if (m.major != 1) return InvalidArgument("the DLPack tensor is of version ", m.major, ".", m.minor, "; this runtime reads 1.x");
    return Import(&taken, out_tensor);
  });
}
