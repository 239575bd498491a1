#include "thalweg/dlpack.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "c_api/geometry.h"
#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/runtime.h"
#include "framework/tensor/tensor.h"

using thalweg::Buffer;
using thalweg::Device;
using thalweg::Enter;
using thalweg::InvalidArgument;
using thalweg::Status;
using thalweg::StatusOr;
using thalweg::Tensor;

// ---- The structures of the DLPack specification, version 1.0 ----
// The names are those of the specification, because sanitizers that check calls through pointers
// compare type names.

struct DLDevice {
  int32_t type, id;
};
constexpr int32_t kDlCpu = 1, kDlPinned = 3, kDlOtherPinned = 11;  // pinned host memory, of two vendors, counts as host memory

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

// ---- Export ----

// An exported structure with the objects that it keeps alive. Managed is the first member, so that
// the deleter finds the whole.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor tensor;
  std::vector<int64_t> shape, strides;
};

// Fills the DLPack description of the place of the tensor's elements.
Status Place(const tw_tensor& tensor, DLTensor* to) {
  const tw_view& view = tensor.view;
  const Device* device = thalweg::HoldingDevice(tensor);
  to->device = {kDlCpu, 0};
  if (device) {
    const tw_dlpack_set* set = device->def().def.dlpack;
    if (!set) return InvalidArgument(device->name(), " shares no memory by DLPack; copy the tensor with tw_tensor_to_host first");
    to->device = {int32_t(set->type), set->id(device->def().host, device->self())};
    to->byte_offset = set->handles ? view.offset : 0;
  } else if (!thalweg::LiesOnHost(tensor)) {
    return thalweg::FailedPrecondition("the tensor's device is no more; its runtime has ended");
  }
  to->data = view.count ? static_cast<char*>(view.data) + (view.offset - to->byte_offset) : nullptr;
  return Status();
}

template <class Managed>
Status Export(tw_tensor* tensor, Exported<Managed>** out) {
  const tw_view& view = tensor->view;
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
  RETURN_IF_ERROR(Place(*tensor, &t));
  t.ndim = view.rank;
  t.dtype = type->dl;
  t.shape = e->shape.data();
  t.strides = e->strides.data();
  e->managed.context = e.get();
  e->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->context); };
  *out = e.release();
  return Status();
}

// ---- Import ----

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

// Copies element by element, the last axis fastest.
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

bool OnHost(const DLTensor& t) { return t.device.type == kDlCpu || t.device.type == kDlPinned || t.device.type == kDlOtherPinned; }

// Finds the device of the tensor's memory.
StatusOr<Device*> FindDevice(const DLTensor& t, const thalweg::Runtime& runtime) {
  std::string there_are;
  for (Device* d : runtime.devices()) {
    const tw_dlpack_set* set = d->def().def.dlpack;
    if (!set) continue;
    const int32_t id = set->id(d->def().host, d->self());
    if (int32_t(set->type) == t.device.type && id == t.device.id) return d;
    there_are += thalweg::StrCat(there_are.empty() ? "" : ", ", d->kind(), ":", d->index(), " is ", id, " of type ", set->type);
  }
  return thalweg::NotFound("the DLPack tensor lies on device ", t.device.id, " of DLPack type ", t.device.type,
                           "; devices that share memory: ", there_are.empty() ? "none" : there_are,
                           "; load the plugin that provides it, or copy the tensor to host memory");
}

// The target of an import, see tw_tensor_from_dlpack_on. Without a runtime: host memory.
struct Wanted {
  const thalweg::Runtime* runtime = nullptr;
  void* queue = nullptr;
};

StatusOr<uint32_t> CheckImport(const DLTensor& t) {
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

// Ends the import of a tensor that shares memory: wraps the memory from `data` on.
template <class Managed>
Status Wrap(Taken<Managed>* taken, void* data, uint64_t offset, uint64_t bytes, uint32_t dtype, Device* device, tw_tensor** out) {
  const DLTensor& t = taken->managed->tensor;
  auto buffer = std::make_unique<Buffer>();
  auto owner = std::make_unique<Taken<Managed>>();
  owner->managed = std::exchange(taken->managed, nullptr);
  buffer->data = data;
  buffer->bytes = bytes;
  buffer->read_only = true;
  buffer->user = owner.release();
  buffer->release = [](Buffer* b) {
    delete static_cast<Taken<Managed>*>(b->user);
    delete b;
  };
  if (device) device->pool()->Lodge(buffer.get());
  ASSIGN_OR_RETURN(Tensor shared, Tensor::Wrap(buffer.release(), offset, dtype, t.shape, t.ndim));
  *out = shared.release();
  return Status();
}

// Never copies device memory: if the device cannot use the memory as it is, the owner of the memory
// must convert it.
template <class Managed>
Status ImportFromDevice(Taken<Managed>* taken, const Wanted& wanted, uint64_t bytes, uint32_t dtype, tw_tensor** out) {
  const DLTensor& t = taken->managed->tensor;
  if (!wanted.runtime) {
    return InvalidArgument("the DLPack tensor lies on a device of DLPack type ", t.device.type,
                           "; take it with tw_tensor_from_dlpack_on, or copy it to host memory first");
  }
  ASSIGN_OR_RETURN(Device * device, FindDevice(t, *wanted.runtime));
  if (bytes == 0) {
    ASSIGN_OR_RETURN(Tensor empty, Tensor::Make(dtype, t.shape, t.ndim, device->pool()));
    *out = empty.release();
    return Status();
  }
  const tw_dlpack_set& set = *device->def().def.dlpack;
  const uint64_t offset = set.handles ? t.byte_offset : 0;
  char* data = static_cast<char*>(t.data) + (t.byte_offset - offset);
  if (!IsDense(t) || (set.handles ? offset : reinterpret_cast<uintptr_t>(data)) % thalweg::DTypeBytes(dtype) != 0) {
    return InvalidArgument("the DLPack tensor on ", device->name(),
                           " is not dense and row-major from an element's address on; make it so first");
  }
  RETURN_IF_ERROR(thalweg::Prefix(thalweg::FromC(set.take(device->def().host, device->self(), data, offset, bytes, wanted.queue)),
                                  thalweg::StrCat(device->name(), " cannot take the DLPack tensor:")));
  return Wrap(taken, data, offset, bytes, dtype, device, out);
}

template <class Managed>
Status Import(Taken<Managed>* taken, const Wanted& wanted, tw_tensor** out) {
  const DLTensor& t = taken->managed->tensor;
  ASSIGN_OR_RETURN(const uint32_t dtype, CheckImport(t));
  ASSIGN_OR_RETURN(const int64_t bytes, thalweg::CountBytes(t.shape, t.ndim, dtype));
  if (bytes > 0 && !t.data) return InvalidArgument("the DLPack tensor of ", bytes, " bytes has no data");
  if (!OnHost(t)) return ImportFromDevice(taken, wanted, uint64_t(bytes), dtype, out);
  char* data = bytes > 0 ? static_cast<char*>(t.data) + t.byte_offset : nullptr;  // a tensor without elements may have no data
  if (bytes == 0 || !IsDense(t) || reinterpret_cast<uintptr_t>(data) % thalweg::AlignmentOf(dtype) != 0) {
    ASSIGN_OR_RETURN(Tensor copy, Tensor::Make(dtype, t.shape, t.ndim));
    if (bytes > 0 && IsDense(t)) {
      std::memcpy(copy.data(), data, size_t(bytes));
    } else if (bytes > 0) {
      CopyStrided(t, data, thalweg::DTypeBytes(dtype), static_cast<char*>(copy.data()));
    }
    *out = copy.release();
    return Status();
  }
  return Wrap(taken, data, 0, uint64_t(bytes), dtype, nullptr, out);
}

Status ImportVersioned(Taken<DLManagedTensorVersioned>* taken, const Wanted& wanted, tw_tensor** out) {
  // For another major version only the members up to the deleter are known.
  const DLManagedTensorVersioned& m = *taken->managed;
  if (m.major != 1) return InvalidArgument("the DLPack tensor is of version ", m.major, ".", m.minor, "; this runtime reads 1.x");
  return Import(taken, wanted, out);
}

}  // namespace

tw_status* tw_tensor_to_dlpack(tw_tensor* tensor, void** out_managed) {
  NEED(tensor);
  NEED(out_managed);
  return Enter([&]() -> Status {
    Exported<DLManagedTensor>* e = nullptr;
    RETURN_IF_ERROR(Export(tensor, &e));
    *out_managed = &e->managed;
    return Status();
  });
}

tw_status* tw_tensor_to_dlpack_versioned(tw_tensor* tensor, void** out_managed) {
  NEED(tensor);
  NEED(out_managed);
  return Enter([&]() -> Status {
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
  return Enter([&] { return Import(&taken, Wanted(), out_tensor); });
}

tw_status* tw_tensor_from_dlpack_versioned(void* managed, tw_tensor** out_tensor) {
  NEED(managed);
  Taken<DLManagedTensorVersioned> taken{static_cast<DLManagedTensorVersioned*>(managed)};
  NEED(out_tensor);
  return Enter([&] { return ImportVersioned(&taken, Wanted(), out_tensor); });
}

tw_status* tw_tensor_from_dlpack_on(tw_runtime* runtime, void* managed, uint32_t versioned, void* queue, tw_tensor** out_tensor) {
  NEED(managed);
  Taken<DLManagedTensor> plain{versioned ? nullptr : static_cast<DLManagedTensor*>(managed)};
  Taken<DLManagedTensorVersioned> with_version{versioned ? static_cast<DLManagedTensorVersioned*>(managed) : nullptr};
  NEED(out_tensor);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<thalweg::Runtime> owner, thalweg::RuntimeOf(runtime));
    const Wanted wanted{owner.get(), queue};
    return versioned ? ImportVersioned(&with_version, wanted, out_tensor) : Import(&plain, wanted, out_tensor);
  });
}
