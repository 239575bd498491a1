#include "device.h"

#include <algorithm>
#include <cstdio>

#include "modules.h"

namespace thalweg::cuda {
namespace {

std::string UidText(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", unsigned(static_cast<unsigned char>(uuid.bytes[i])));
    text += (i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(two);
  }
  return text;
}

}  // namespace

Device::Device(const Driver& driver, Lines& lines, const Vendors& vendors, BlasLibrary& blas, std::shared_ptr<DnnLibrary> dnn,
               Compiler& compiler, CUdevice id)
    : driver_(driver), lines_(lines), id_(id), blas_(std::make_unique<Blas>(blas, vendors)), compiler_(compiler) {
  char name[256] = {};
  Check(driver_, driver_.cuDeviceGetName(name, sizeof name - 1, id_), "cuDeviceGetName");
  CUuuid uuid{};
  Check(driver_, driver_.cuDeviceGetUuid(&uuid, id_), "cuDeviceGetUuid");
  Check(driver_, driver_.cuDeviceTotalMem(&memory_, id_), "cuDeviceTotalMem");
  int major = 0, minor = 0, pools = 0;
  Check(driver_, driver_.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, id_), "cuDeviceGetAttribute");
  Check(driver_, driver_.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, id_), "cuDeviceGetAttribute");
  Check(driver_, driver_.cuDeviceGetAttribute(&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, id_), "cuDeviceGetAttribute");
  uid_ = UidText(uuid);
  description_ = std::string(name) + ", compute capability " + std::to_string(major) + "." + std::to_string(minor);
  architecture_ = "sm_" + std::to_string(major) + std::to_string(minor);
  dnn_ = std::make_unique<Dnn>(std::move(dnn), vendors, architecture_);
  constexpr int kOldest = THALWEG_CUDA_OLDEST;  // oldest architecture with built-in machine code
  if (10 * major + minor < kOldest)
    throw tw::Error{TW_UNIMPLEMENTED, description_ + ": the plugin was built for " + std::to_string(kOldest / 10) + "." +
                                          std::to_string(kOldest % 10) +
                                          " and newer; build it with that one in THALWEG_CUDA_ARCHITECTURES"};
  if (!pools) throw tw::Error{TW_UNIMPLEMENTED, std::string(name) + " has no stream-ordered memory; it is needed"};
}

Device::~Device() {
  if (!context_) return;
  driver_.cuCtxSetCurrent(context_);
  if (stream_) driver_.cuStreamSynchronize(stream_);  // memory is released there
  for (const auto& [shard, module] : modules_) driver_.cuModuleUnload(module);
  for (const auto& [function, module] : compiled_) driver_.cuModuleUnload(module);
  for (CUevent e : events_) driver_.cuEventDestroy(e);
  profile_.Clear(driver_);
  others_.Clear();
  blas_.reset();
  dnn_.reset();
  if (stream_) driver_.cuStreamDestroy(stream_);
  driver_.cuCtxSetCurrent(nullptr);
  driver_.cuDevicePrimaryCtxRelease(id_);
}

// The pool keeps released memory, because asking the operating system again is slow.
void Device::Open() {
  if (stream_) return;
  if (!context_) Check(driver_, driver_.cuDevicePrimaryCtxRetain(&context_, id_), "cuDevicePrimaryCtxRetain");
  Check(driver_, driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  Check(driver_, driver_.cuDeviceGetDefaultMemPool(&pool_, id_), "cuDeviceGetDefaultMemPool");
  cuuint64_t keep = UINT64_MAX;
  Check(driver_, driver_.cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep), "cuMemPoolSetAttribute");
  Check(driver_, driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

void Device::Enter() {
  {
    std::lock_guard lock(mutex_);
    Open();
  }
  Check(driver_, driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

CUstream Device::stream() {
  Enter();
  return stream_;
}

CUdeviceptr Device::AllocateOn(CUstream stream, uint64_t bytes) {
  CUdeviceptr memory = 0;
  CUresult error = driver_.cuMemAllocFromPoolAsync(&memory, std::max<uint64_t>(bytes, 1), pool_, stream);
  if (error == CUDA_ERROR_OUT_OF_MEMORY) {
    Check(driver_, driver_.cuStreamSynchronize(stream_), "giving memory back");
    Check(driver_, driver_.cuMemPoolTrimTo(pool_, 0), "cuMemPoolTrimTo");
    error = driver_.cuMemAllocFromPoolAsync(&memory, std::max<uint64_t>(bytes, 1), pool_, stream);
  }
  if (error == CUDA_SUCCESS) return memory;
  throw Failure(driver_, error, "allocating " + std::to_string(bytes) + " bytes on '" + uid_ + "'");
}

CUdeviceptr Device::Allocate(uint64_t bytes) {
  const CUstream stream = this->stream();
  const CUdeviceptr memory = AllocateOn(stream, bytes);
  Check(driver_, driver_.cuStreamSynchronize(stream), "allocating memory");
  return memory;
}

void Device::Release(CUdeviceptr memory) { Check(driver_, driver_.cuMemFreeAsync(memory, stream()), "releasing memory"); }

void Device::EnqueueCopy(CUstream stream, const tw_copy& c) {
  if (c.from_host && c.to_host) throw tw::Error{TW_INVALID_ARGUMENT, "a copy between two host addresses is none of a device's"};
  const char* from = static_cast<const char*>(c.from) + c.from_offset;
  char* to = static_cast<char*>(c.to) + c.to_offset;
  const auto at = [](const char* p) { return reinterpret_cast<CUdeviceptr>(p); };
  if (c.from_host)
    Check(driver_, driver_.cuMemcpyHtoDAsync(at(to), from, c.bytes, stream), "a copy to the device");
  else if (c.to_host)
    Check(driver_, driver_.cuMemcpyDtoHAsync(to, at(from), c.bytes, stream), "a copy from the device");
  else
    Check(driver_, driver_.cuMemcpyDtoDAsync(at(to), at(from), c.bytes, stream), "a copy inside the device");
}

bool Device::Reaches(const Device& other) {
  if (&other == this) return false;
  Enter();
  int can = 0;
  if (driver_.cuDeviceCanAccessPeer(&can, other.id_, id_) != CUDA_SUCCESS || !can) return false;
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = other.id_;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return driver_.cuMemPoolSetAccess(pool_, &access, 1) == CUDA_SUCCESS;
}

void Device::EnqueuePeerCopy(CUstream stream, const tw_copy& c, const Device& to) {
  const auto at = [](void* p, uint64_t offset) { return reinterpret_cast<CUdeviceptr>(static_cast<char*>(p) + offset); };
  Check(driver_, driver_.cuMemcpyPeerAsync(at(c.to, c.to_offset), to.context_, at(c.from, c.from_offset), context_, c.bytes, stream),
        "a copy to another device");
}

Tape* Device::TapeOf(CUstream stream) {
  std::lock_guard lock(tape_mutex_);
  const auto found = tapes_.find(stream);
  return found == tapes_.end() ? nullptr : found->second;
}

void Device::SetTape(CUstream stream, Tape* tape) {
  std::lock_guard lock(tape_mutex_);
  if (tape) {
    tapes_[stream] = tape;
  } else {
    tapes_.erase(stream);
  }
}

CUevent Device::TakeEvent() {
  Enter();
  {
    std::lock_guard lock(event_mutex_);
    if (!events_.empty()) {
      const CUevent event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  CUevent event = nullptr;
  Check(driver_, driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC), "cuEventCreate");
  return event;
}

void Device::GiveEvent(CUevent event) {
  std::lock_guard lock(event_mutex_);
  events_.push_back(event);
}

// Returns NULL if the plugin was built without the function.
CUfunction Device::FindBuiltIn(const std::string& text, const std::string& function) {
  const size_t shard = ShardOf(text);
  std::lock_guard lock(mutex_);
  Open();
  Check(driver_, driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  CUmodule& module = modules_[shard];
  if (!module) Check(driver_, driver_.cuModuleLoadData(&module, ModuleImage(shard)), "loading the kernels");
  CUfunction found = nullptr;
  const CUresult error = driver_.cuModuleGetFunction(&found, module, function.c_str());
  if (error == CUDA_ERROR_NOT_FOUND) return nullptr;
  Check(driver_, error, "cuModuleGetFunction");
  return found;
}

CUfunction Device::FindCompiled(const tw_host* host, const std::string& text, const char* name, const std::string& function) {
  std::lock_guard lock(compile_mutex_);
  CUmodule& module = compiled_[function];
  if (!module) {
    const std::string image = compiler_.Compile(host, text, name, architecture_);
    Check(driver_, driver_.cuModuleLoadData(&module, image.data()), "loading a compiled kernel");
  }
  CUfunction found = nullptr;
  Check(driver_, driver_.cuModuleGetFunction(&found, module, function.c_str()), "cuModuleGetFunction");
  return found;
}

CUfunction Device::Function(const tw_host* host, const std::string& text, const char* name) {
  const std::string function = FunctionName(text, name);
  if (CUfunction found = FindBuiltIn(text, function)) return found;
  if (compiler_.there(host)) return FindCompiled(host, text, name, function);
  throw tw::Error{TW_UNIMPLEMENTED, std::string("the plugin was built without '") + name +
                                        "' for these types and attributes, and there is no NVRTC to compile it; place the op on a CPU"};
}

}  // namespace thalweg::cuda
