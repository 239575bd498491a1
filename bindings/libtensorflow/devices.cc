// Lists of devices; also libraries, ops, kernels, checkpoints and the log, each a few calls of Thalweg.
#include "devices.h"

#include <fstream>
#include <functional>
#include <mutex>

#include "framework/proto/op_def.pb.h"
#include "graph.h"
#include "ops.h"
#include "session.h"
#include "tensor.h"
#include "tensorflow/c/c_api_experimental.h"
#include "wire.h"

using namespace thalweg::tf;
namespace proto = thalweg::proto;

namespace thalweg::tf {

TF_DeviceList* NewDeviceList() {
  tw_devices* devices = nullptr;
  Check(tw_devices_create(nullptr, &devices));
  return new TF_DeviceList{DevicesRef(devices)};
}

}  // namespace thalweg::tf

TF_DeviceList* TF_SessionListDevices(TF_Session*, TF_Status* status) { return Guard(status, NewDeviceList); }
TF_DeviceList* TF_DeprecatedSessionListDevices(TF_DeprecatedSession*, TF_Status* status) { return Guard(status, NewDeviceList); }
void TF_DeleteDeviceList(TF_DeviceList* list) { delete list; }
int TF_DeviceListCount(const TF_DeviceList* list) { return static_cast<int>(tw_devices_count(list->devices.get())); }

static uint32_t At(const TF_DeviceList* list, int index) {
  if (index < 0 || index >= TF_DeviceListCount(list)) {
    Fail(TF_INVALID_ARGUMENT, "index out of bounds: there are ", std::to_string(TF_DeviceListCount(list)), " devices, none with number ",
         std::to_string(index));
  }
  return static_cast<uint32_t>(index);
}
const char* TF_DeviceListName(const TF_DeviceList* list, int index, TF_Status* status) {
  return Guard(status, [&] { return tw_devices_name(list->devices.get(), At(list, index)); });
}
const char* TF_DeviceListType(const TF_DeviceList* list, int index, TF_Status* status) {
  return Guard(status, [&] { return tw_devices_kind(list->devices.get(), At(list, index)); });
}
int64_t TF_DeviceListMemoryBytes(const TF_DeviceList* list, int index, TF_Status* status) {
  return Guard(status, [&] { return static_cast<int64_t>(tw_devices_memory(list->devices.get(), At(list, index))); });
}
uint64_t TF_DeviceListIncarnation(const TF_DeviceList* list, int index, TF_Status* status) {
  return Guard(status, [&]() -> uint64_t { return std::hash<std::string>()(tw_devices_uid(list->devices.get(), At(list, index))) | 1; });
}

// ---- Libraries ----

struct TF_Library {
  std::string ops;  // an OpList
};

// A plugin of Thalweg is loaded. A library of kernels for TensorFlow cannot be, because it binds to TensorFlow's C++ symbols.
static TF_Library* LoadLibrary(const char* file) {
  const std::string path = OrEmpty(file);
  if (!std::ifstream(path).good()) Fail(TF_NOT_FOUND, path, ": cannot open shared object file: No such file or directory");
  tw_status* status = tw_plugin_load(nullptr, path.c_str());
  if (status) {
    const std::string why = tw_status_message(status);
    tw_status_release(status);
    Fail(TF_UNIMPLEMENTED, "TF_LoadLibrary: '", path, "' is no plugin of Thalweg (", why,
         "); write its ops against thalweg/plugin/plugin.h (thalweg new op) and load that plugin");
  }
  OpsChanged();
  auto library = std::make_unique<TF_Library>();
  tw_plugins* plugins = nullptr;
  Check(tw_plugins_create(nullptr, &plugins));
  const Owner<tw_plugins, tw_plugins_destroy> owner(plugins);
  proto::OpList list;
  for (uint32_t i = 0; i < tw_plugins_count(plugins); ++i) {
    if (path != tw_plugins_path(plugins, i)) continue;
    for (uint32_t k = 0; k < tw_plugins_op_count(plugins, i); ++k) *list.add_op() = NeedOp(tw_plugins_op(plugins, i, k));
  }
  library->ops = Serialise(list);
  return library.release();
}
TF_Library* TF_LoadLibrary(const char* file, TF_Status* status) {
  return Guard(status, [&] { return LoadLibrary(file); });
}
TF_Library* TF_LoadPluggableDeviceLibrary(const char* file, TF_Status* status) {
  return Guard(status, [&] { return LoadLibrary(file); });
}
TF_Buffer TF_GetOpList(TF_Library* library) { return {library->ops.data(), library->ops.size(), nullptr}; }
void TF_DeleteLibraryHandle(TF_Library* library) { delete library; }
void TF_DeletePluggableDeviceLibraryHandle(TF_Library* library) { delete library; }

TF_Buffer* TF_GetAllOpList(void) {
  return Guard(nullptr, [] { return NewBuffer(Serialise(AllOps())); });
}
int TF_OpIsStateful(const char* op, TF_Status* status) {
  return Guard(status, [&] { return static_cast<int>(NeedOp(OrEmpty(op)).is_stateful()); });
}
const char* TF_GetNumberAttrForOpListInput(const char* op, int input_index, TF_Status* status) {
  return Guard(status, [&]() -> const char* {
    const proto::OpDef& def = NeedOp(OrEmpty(op));
    if (input_index < 0 || input_index >= def.input_arg_size()) Fail(TF_INVALID_ARGUMENT, "there is no such input");
    const auto& arg = def.input_arg(input_index);
    if (!arg.number_attr().empty()) return arg.number_attr().c_str();
    return arg.type_list_attr().empty() ? nullptr : arg.type_list_attr().c_str();
  });
}

// A KernelList: an entry for each kernel, with its op and the kind of its device.
static std::string Kernels(const char* only) {
  enum ListField : uint32_t { kKernel = 1 };
  enum KernelField : uint32_t { kOp = 1, kDeviceType = 2 };
  tw_ops* ops = nullptr;
  Check(tw_ops_create(nullptr, &ops));
  const Owner<tw_ops, tw_ops_destroy> owner(ops);
  std::string list;
  for (uint32_t i = 0; i < tw_ops_count(ops); ++i) {
    const std::string name = tw_ops_name(ops, i);
    if (only && name != only) continue;
    for (uint32_t k = 0; k < tw_ops_kernel_count(ops, i); ++k) {
      const std::string spec = tw_ops_kernel(ops, i, k);  // "MatMul@CPU ..."
      const size_t at = spec.find('@'), end = spec.find_first_of(" \n\t;(", at);
      std::string kernel;
      PutField(kOp, name, &kernel);
      const std::string device = at == std::string::npos ? "CPU" : spec.substr(at + 1, end == std::string::npos ? end : end - at - 1);
      PutField(kDeviceType, device, &kernel);
      PutField(kKernel, kernel, &list);
    }
  }
  return list;
}
TF_Buffer* TF_GetAllRegisteredKernels(TF_Status* status) {
  return Guard(status, [] { return NewBuffer(Kernels(nullptr)); });
}
TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name, TF_Status* status) {
  return Guard(status, [&] { return NewBuffer(Kernels(name)); });
}

// ---- The log ----

static void ToListener(void* listener, uint32_t, const char* text, uint64_t bytes) {
  reinterpret_cast<void (*)(const char*)>(listener)(std::string(text, bytes).c_str());
}
void TF_RegisterLogListener(void (*listener)(const char*)) {
  Guard(nullptr, [&] { Check(tw_log_set_sink(nullptr, listener ? ToListener : nullptr, reinterpret_cast<void*>(listener), TW_LOG_INFO)); });
}

// ---- Checkpoints ----

struct TF_CheckpointReader {
  tw_checkpoint* checkpoint = nullptr;
  ~TF_CheckpointReader() { tw_checkpoint_close(checkpoint); }
};

static tw_shape Describe(TF_CheckpointReader* reader, const char* name, uint32_t* type) {
  tw_shape shape{};
  Check(tw_checkpoint_describe(reader->checkpoint, OrEmpty(name).c_str(), type, &shape, nullptr));
  return shape;
}
TF_CheckpointReader* TF_NewCheckpointReader(const char* filename, TF_Status* status) {
  return Guard(status, [&] {
    auto reader = std::make_unique<TF_CheckpointReader>();
    Check(tw_checkpoint_open(OrEmpty(filename).c_str(), &reader->checkpoint));
    return reader.release();
  });
}
void TF_DeleteCheckpointReader(TF_CheckpointReader* reader) { delete reader; }
int TF_CheckpointReaderSize(TF_CheckpointReader* reader) { return static_cast<int>(tw_checkpoint_count(reader->checkpoint)); }
const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader, int index) {
  return tw_checkpoint_name(reader->checkpoint, static_cast<uint32_t>(index));
}
int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader, const char* name) {
  return Guard(nullptr, [&] {
    Describe(reader, name, nullptr);
    return 1;
  });
}
TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader* reader, const char* name) {
  return Guard(nullptr, [&] {
    uint32_t type = 0;
    Describe(reader, name, &type);
    return static_cast<TF_DataType>(type);
  });
}
int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader, const char* name) {
  return Guard(nullptr, [&] { return Describe(reader, name, nullptr).rank; });
}
void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader, const char* name, int64_t* dims, int num_dims, TF_Status* status) {
  Guard(status, [&] {
    const tw_shape shape = Describe(reader, name, nullptr);
    if (shape.rank != num_dims)
      Fail(TF_INVALID_ARGUMENT, "Expected rank is ", std::to_string(num_dims), " but actual rank is ", std::to_string(shape.rank));
    for (int i = 0; i < num_dims; ++i) dims[i] = shape.dims[i];
  });
}
TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader, const char* name, TF_Status* status) {
  return Guard(status, [&] {
    tw_tensor* tensor = nullptr;
    Check(tw_checkpoint_read(reader->checkpoint, OrEmpty(name).c_str(), &tensor));
    return FromThalweg(TensorRef(tensor));
  });
}
