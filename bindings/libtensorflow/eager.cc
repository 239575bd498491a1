// The eager API: contexts, handles of tensors, executors.
#include "eager.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>

#include "devices.h"
#include "function.h"
#include "tensor.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api_experimental.h"

struct TFE_ContextOptions {
  TFE_ContextDevicePlacementPolicy policy = TFE_DEVICE_PLACEMENT_SILENT;
};

struct TFE_TensorDebugInfo {
  std::vector<int64_t> dims;
};

namespace thalweg::tf {
namespace {

constexpr const char* kHost = "/job:localhost/replica:0/task:0/device:CPU:0";

}  // namespace

TensorRef Share(const TensorRef& tensor) {
  tw_tensor_retain(tensor.get());
  return TensorRef(tensor.get());
}

TFE_TensorHandle* NewHandle(TensorRef tensor) {
  const char* text = tw_tensor_device(tensor.get());
  const std::string device = text ? text : kHost;
  const size_t number = device.rfind(':'), kind = device.rfind(':', number - 1) + 1;
  return new TFE_TensorHandle{std::move(tensor), device, device.substr(kind, number - kind)};
}

const tw_tensor* Need(const TFE_TensorHandle* h) {
  if (!h) Fail(TF_INVALID_ARGUMENT, "Invalid handle");
  return h->tensor.get();
}

std::string FullName(const TFE_Context& context, const std::string& wanted) {
  if (wanted.empty()) return "";
  const auto lower = [](std::string s) {
    std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return s;
  };
  const std::string end = lower(wanted);
  for (uint32_t i = 0; i < tw_devices_count(context.devices.get()); ++i) {
    const std::string name = tw_devices_name(context.devices.get(), i), low = lower(name);
    if (low == end || low.ends_with("/device" + (end[0] == '/' ? ":" + end.substr(1) : ":" + end)) || low.ends_with(end)) return name;
  }
  Fail(TF_INVALID_ARGUMENT, wanted, " unknown device.");
}

}  // namespace thalweg::tf

using namespace thalweg::tf;
namespace proto = thalweg::proto;

static thread_local std::map<const TFE_Context*, TFE_ContextDevicePlacementPolicy> thread_policies;

// ---- Contexts ----

TFE_ContextOptions* TFE_NewContextOptions(void) { return new TFE_ContextOptions; }
void TFE_DeleteContextOptions(TFE_ContextOptions* options) { delete options; }
// The runtime's threads and devices are those of the process; see the environment variable THALWEG_OPTIONS.
void TFE_ContextOptionsSetConfig(TFE_ContextOptions*, const void*, size_t, TF_Status* status) {
  Guard(status, [] {});
}
void TFE_ContextOptionsSetAsync(TFE_ContextOptions*, unsigned char) {}  // every call ends before it returns
void TFE_ContextOptionsSetTfrt(TFE_ContextOptions*, bool) {}
void TFE_ContextOptionsSetDevicePlacementPolicy(TFE_ContextOptions* options, TFE_ContextDevicePlacementPolicy policy) {
  options->policy = policy;
}

TFE_Context* TFE_NewContext(const TFE_ContextOptions* options, TF_Status* status) {
  static std::atomic<uint64_t> last{0};
  return Guard(status, [&] {
    auto context = std::make_unique<TFE_Context>();
    context->id = ++last;
    context->policy = options->policy;
    context->container = "tensorflow_eager_" + std::to_string(context->id);
    const std::string container = "container=" + context->container;
    const char* words[] = {container.c_str()};
    tw_eager* eager = nullptr;
    Check(tw_eager_create(nullptr, words, 1, &eager));
    context->eager.reset(eager);
    tw_devices* devices = nullptr;
    Check(tw_devices_create(nullptr, &devices));
    context->devices.reset(devices);
    return context.release();
  });
}
void TFE_DeleteContext(TFE_Context* context) {
  if (!context) return;
  Guard(nullptr, [&] { Check(tw_runtime_reset(nullptr, context->container.c_str(), nullptr)); });
  delete context;
}
TF_DeviceList* TFE_ContextListDevices(TFE_Context*, TF_Status* status) { return Guard(status, NewDeviceList); }
void TFE_ContextClearCaches(TFE_Context*) {}
uint64_t TFE_GetContextId(TFE_Context* context) { return context->id; }
void TFE_ContextSetThreadLocalDevicePlacementPolicy(TFE_Context* context, TFE_ContextDevicePlacementPolicy policy) {
  thread_policies[context] = policy;
}
TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(TFE_Context* context) {
  const auto own = thread_policies.find(context);
  return own == thread_policies.end() ? context->policy : own->second;
}
void TFE_ContextAsyncWait(TFE_Context*, TF_Status* status) {
  Guard(status, [] {});
}
void TFE_ContextStartStep(TFE_Context*) {}
void TFE_ContextEndStep(TFE_Context*) {}
void TFE_ContextEnableRunMetadata(TFE_Context*) {}
void TFE_ContextDisableRunMetadata(TFE_Context*) {}
// Eager calls of Thalweg keep no statistics, so the message is empty.
void TFE_ContextExportRunMetadata(TFE_Context*, TF_Buffer* buffer, TF_Status* status) {
  Guard(status, [&] { Fill(buffer, ""); });
}

static void AddContextFunction(TFE_Context* context, const proto::FunctionDef& def) {
  const std::lock_guard lock(context->mu);
  const std::string& name = def.signature().name();
  const auto known = context->functions.find(name);
  if (known != context->functions.end() && Serialise(known->second) != Serialise(def)) {
    Fail(TF_INVALID_ARGUMENT, "Cannot add function '", name, "' because a different function with the same name already exists.");
  }
  context->functions[name] = def;
}
void TFE_ContextAddFunctionDef(TFE_Context* context, const char* bytes, size_t size, TF_Status* status) {
  Guard(status, [&] {
    proto::FunctionDef def;
    Parse(bytes, size, "FunctionDef proto", &def);
    AddContextFunction(context, def);
  });
}
void TFE_ContextAddFunction(TFE_Context* context, TF_Function* function, TF_Status* status) {
  Guard(status, [&] { AddContextFunction(context, function->def); });
}
void TFE_ContextRemoveFunction(TFE_Context* context, const char* name, TF_Status* status) {
  Guard(status, [&] {
    const std::lock_guard lock(context->mu);
    if (context->functions.erase(OrEmpty(name)) == 0) Fail(TF_NOT_FOUND, "Tried to remove non-existent function '", OrEmpty(name), "'.");
  });
}
unsigned char TFE_ContextHasFunction(TFE_Context* context, const char* name) {
  const std::lock_guard lock(context->mu);
  return context->functions.count(name) > 0;
}
void TFE_ContextGetFunctionDef(TFE_Context* context, const char* name, TF_Buffer* buffer, TF_Status* status) {
  Guard(status, [&] {
    const std::lock_guard lock(context->mu);
    const auto at = context->functions.find(OrEmpty(name));
    if (at == context->functions.end()) Fail(TF_NOT_FOUND, "Unable to find FunctionDef with name: ", OrEmpty(name));
    Fill(buffer, Serialise(at->second));
  });
}

// ---- Handles ----

TFE_TensorHandle* TFE_NewTensorHandle(const TF_Tensor* t, TF_Status* status) {
  return Guard(status, [&] { return NewHandle(ToThalweg(*t)); });
}
TFE_TensorHandle* TFE_NewTensorHandleFromTensor(TFE_Context*, TF_Tensor* t, TF_Status* status) { return TFE_NewTensorHandle(t, status); }
TFE_TensorHandle* TFE_NewTensorHandleFromScalar(TF_DataType type, void* data, size_t len, TF_Status* status) {
  return Guard(status, [&] {
    tw_tensor* tensor = nullptr;
    Check(tw_tensor_create_copy(type, nullptr, 0, data, len, &tensor));
    return NewHandle(TensorRef(tensor));
  });
}
TF_Tensor* TFE_AllocateHostTensor(TFE_Context*, TF_DataType type, const int64_t* dims, int num_dims, TF_Status* status) {
  return Guard(status, [&] {
    const int64_t count = Count(std::vector<int64_t>(dims, dims + num_dims));
    const size_t element = type == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize(type);
    TF_Tensor* tensor = TF_AllocateTensor(type, dims, num_dims, static_cast<size_t>(count) * element);
    if (!tensor) throw std::bad_alloc();
    return tensor;
  });
}
void TFE_DeleteTensorHandle(TFE_TensorHandle* h) { delete h; }
TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle* h) { return static_cast<TF_DataType>(tw_tensor_dtype(h->tensor.get())); }

int TFE_TensorHandleNumDims(TFE_TensorHandle* h, TF_Status* status) {
  int rank = -1;
  Guard(status, [&] { rank = static_cast<int>(tw_tensor_rank(Need(h))); });
  return rank;
}
int64_t TFE_TensorHandleNumElements(TFE_TensorHandle* h, TF_Status* status) {
  int64_t count = -1;
  Guard(status, [&] { count = static_cast<int64_t>(tw_tensor_count(Need(h))); });
  return count;
}
int64_t TFE_TensorHandleDim(TFE_TensorHandle* h, int dim_index, TF_Status* status) {
  int64_t dim = -1;
  Guard(status, [&] {
    if (dim_index < 0 || static_cast<uint32_t>(dim_index) >= tw_tensor_rank(Need(h)))
      Fail(TF_INVALID_ARGUMENT, "there is no dimension ", std::to_string(dim_index));
    dim = tw_tensor_dim(Need(h), static_cast<uint32_t>(dim_index));
  });
  return dim;
}
const char* TFE_TensorHandleDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  return Guard(status, [&] {
    Need(h);
    return h->device.c_str();
  });
}
const char* TFE_TensorHandleBackingDeviceName(TFE_TensorHandle* h, TF_Status* status) { return TFE_TensorHandleDeviceName(h, status); }
const char* TFE_TensorHandleDeviceType(TFE_TensorHandle* h, TF_Status* status) {
  return Guard(status, [&] {
    Need(h);
    return h->kind.c_str();
  });
}
int TFE_TensorHandleDeviceID(TFE_TensorHandle* h, TF_Status* status) {
  return Guard(status, [&] {
    Need(h);
    return std::atoi(h->device.c_str() + h->device.rfind(':') + 1);
  });
}
TFE_TensorHandle* TFE_TensorHandleCopySharingTensor(TFE_TensorHandle* h, TF_Status* status) {
  return Guard(status, [&] {
    Need(h);
    return NewHandle(Share(h->tensor));
  });
}
TF_Tensor* TFE_TensorHandleResolve(TFE_TensorHandle* h, TF_Status* status) {
  return Guard(status, [&] {
    Need(h);
    return FromThalweg(Share(h->tensor));
  });
}
TFE_TensorHandle* TFE_TensorHandleCopyToDevice(TFE_TensorHandle* h, TFE_Context* context, const char* device, TF_Status* status) {
  return Guard(status, [&] {
    Need(h);
    const std::string wanted = FullName(*context, OrEmpty(device));
    tw_tensor* copy = nullptr;
    if (wanted.empty() || wanted.find("CPU:") != std::string::npos) {
      Check(tw_tensor_to_host(h->tensor.get(), &copy));
    } else {
      Check(tw_tensor_to_device(h->tensor.get(), nullptr, wanted.c_str(), &copy));
    }
    return NewHandle(TensorRef(copy));
  });
}
void TFE_TensorHandleGetStatus(TFE_TensorHandle*, TF_Status* status) {
  Guard(status, [] {});
}

TFE_TensorDebugInfo* TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle* h, TF_Status* status) {
  return Guard(status, [&] {
    const tw_tensor* t = Need(h);
    return new TFE_TensorDebugInfo{std::vector<int64_t>(tw_tensor_dims(t), tw_tensor_dims(t) + tw_tensor_rank(t))};
  });
}
void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo* info) { delete info; }
int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo* info) { return static_cast<int>(info->dims.size()); }
int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo* info, int dim_index) { return info->dims[static_cast<size_t>(dim_index)]; }

// ---- Executors: every call has ended when it returns ----

struct TFE_Executor {
  bool is_async;
};
TFE_Executor* TFE_NewExecutor(bool is_async, bool, int) { return new TFE_Executor{is_async}; }
void TFE_DeleteExecutor(TFE_Executor* executor) { delete executor; }
bool TFE_ExecutorIsAsync(TFE_Executor* executor) { return executor->is_async; }
void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor*, TF_Status* status) {
  Guard(status, [] {});
}
void TFE_ExecutorClearError(TFE_Executor*) {}
void TFE_ContextSetExecutorForThread(TFE_Context*, TFE_Executor*) {}
TFE_Executor* TFE_ContextGetExecutorForThread(TFE_Context*) { return new TFE_Executor{false}; }
