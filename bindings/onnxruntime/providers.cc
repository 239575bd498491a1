// Execution providers and devices. There is one provider, the machine's processor; Thalweg's other devices are chosen by its own options.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "session.h"

struct OrtHardwareDevice {
  OrtKeyValuePairs metadata;
};
struct OrtEpDevice {
  OrtHardwareDevice device;
  OrtKeyValuePairs metadata, options;
};
struct OrtArenaCfg {};

namespace thalweg::ort {
namespace {

constexpr const char* kCpu = "CPUExecutionProvider";

const OrtEpDevice* CpuDevice() {
  static const OrtEpDevice* const device = new OrtEpDevice;
  return device;
}

// Returns the failure of a function that asks for a provider other than the CPU's.
OrtStatus* NotBuilt(const char* function, const char* provider) noexcept {
  return Guard(function, [&] { Fail(ORT_FAIL, provider, " execution provider is not enabled in this build; available: ", kCpu); });
}
// Does the same for a function that makes options of such a provider.
template <class Options>
OrtStatus* NoOptions(const char* function, const char* provider, Options** out) noexcept {
  OrtStatus* status = Guard(function, [&] { Result(out); });
  return status ? status : NotBuilt(function, provider);
}

}  // namespace

namespace api {

// ---- Providers ----

OrtStatus* GetAvailableProviders(char*** out, int* count) {
  return Guard(__func__, [&] {
    Result(out, "out_ptr");
    Result(count, "provider_length");
    Allocated name(CpuAllocator(), std::strlen(kCpu) + 1), list(CpuAllocator(), sizeof(char*));
    std::strcpy(static_cast<char*>(name.data()), kCpu);
    char** const made = static_cast<char**>(list.give());
    made[0] = static_cast<char*>(name.give());
    *out = made;
    *count = 1;
  });
}
OrtStatus* ReleaseAvailableProviders(char** names, int count) {
  return Guard(__func__, [&] {
    for (int i = 0; names && i < count; ++i) std::free(names[i]);
    std::free(names);
  });
}

OrtStatus* SessionOptionsAppendExecutionProvider(OrtSessionOptions* options, const char* name, const char* const*, const char* const*,
                                                 size_t) {
  return Guard(__func__, [&] {
    Need(options, "options");
    if (std::string_view(Need(name, "provider_name")) == kCpu) return;
    Fail(ORT_INVALID_ARGUMENT, "Unknown provider name: '", name, "' is not available; available: ", kCpu);
  });
}
OrtStatus* SessionOptionsAppendExecutionProvider_CUDA(OrtSessionOptions*, const OrtCUDAProviderOptions*) {
  return NotBuilt(__func__, "CUDA");
}
OrtStatus* SessionOptionsAppendExecutionProvider_CUDA_V2(OrtSessionOptions*, const OrtCUDAProviderOptionsV2*) {
  return NotBuilt(__func__, "CUDA");
}
OrtStatus* SessionOptionsAppendExecutionProvider_ROCM(OrtSessionOptions*, const OrtROCMProviderOptions*) {
  return NotBuilt(__func__, "ROCM");
}
OrtStatus* SessionOptionsAppendExecutionProvider_OpenVINO(OrtSessionOptions*, const OrtOpenVINOProviderOptions*) {
  return NotBuilt(__func__, "OpenVINO");
}
OrtStatus* SessionOptionsAppendExecutionProvider_OpenVINO_V2(OrtSessionOptions*, const char* const*, const char* const*, size_t) {
  return NotBuilt(__func__, "OpenVINO");
}
OrtStatus* SessionOptionsAppendExecutionProvider_TensorRT(OrtSessionOptions*, const OrtTensorRTProviderOptions*) {
  return NotBuilt(__func__, "TensorRT");
}
OrtStatus* SessionOptionsAppendExecutionProvider_TensorRT_V2(OrtSessionOptions*, const OrtTensorRTProviderOptionsV2*) {
  return NotBuilt(__func__, "TensorRT");
}
OrtStatus* SessionOptionsAppendExecutionProvider_MIGraphX(OrtSessionOptions*, const OrtMIGraphXProviderOptions*) {
  return NotBuilt(__func__, "MIGraphX");
}
OrtStatus* SessionOptionsAppendExecutionProvider_CANN(OrtSessionOptions*, const OrtCANNProviderOptions*) {
  return NotBuilt(__func__, "CANN");
}
OrtStatus* SessionOptionsAppendExecutionProvider_Dnnl(OrtSessionOptions*, const OrtDnnlProviderOptions*) {
  return NotBuilt(__func__, "DNNL");
}
OrtStatus* SessionOptionsAppendExecutionProvider_VitisAI(OrtSessionOptions*, const char* const*, const char* const*, size_t) {
  return NotBuilt(__func__, "VitisAI");
}
OrtStatus* CreateCUDAProviderOptions(OrtCUDAProviderOptionsV2** out) { return NoOptions(__func__, "CUDA", out); }
OrtStatus* CreateROCMProviderOptions(OrtROCMProviderOptions** out) { return NoOptions(__func__, "ROCM", out); }
OrtStatus* CreateTensorRTProviderOptions(OrtTensorRTProviderOptionsV2** out) { return NoOptions(__func__, "TensorRT", out); }
OrtStatus* CreateCANNProviderOptions(OrtCANNProviderOptions** out) { return NoOptions(__func__, "CANN", out); }
OrtStatus* CreateDnnlProviderOptions(OrtDnnlProviderOptions** out) { return NoOptions(__func__, "DNNL", out); }

// ---- Devices ----

OrtStatus* GetEpDevices(const OrtEnv* env, const OrtEpDevice* const** out, size_t* count) {
  static const OrtEpDevice* const devices[] = {CpuDevice()};
  return Guard(__func__, [&] {
    Result(out, "ep_devices");
    Result(count, "num_ep_devices");
    Need(env, "env");
    *out = devices;
    *count = 1;
  });
}
const char* EpDevice_EpName(const OrtEpDevice*) { return kCpu; }
const char* EpDevice_EpVendor(const OrtEpDevice*) { return "Thalweg"; }
const OrtKeyValuePairs* EpDevice_EpMetadata(const OrtEpDevice* device) { return device ? &device->metadata : nullptr; }
const OrtKeyValuePairs* EpDevice_EpOptions(const OrtEpDevice* device) { return device ? &device->options : nullptr; }
const OrtHardwareDevice* EpDevice_Device(const OrtEpDevice* device) { return device ? &device->device : nullptr; }
const OrtMemoryInfo* EpDevice_MemoryInfo(const OrtEpDevice* device, OrtDeviceMemoryType type) {
  return device && type == OrtDeviceMemoryType_DEFAULT ? CpuMemory() : nullptr;
}
OrtHardwareDeviceType HardwareDevice_Type(const OrtHardwareDevice*) { return OrtHardwareDeviceType_CPU; }
uint32_t HardwareDevice_VendorId(const OrtHardwareDevice*) { return 0; }
const char* HardwareDevice_Vendor(const OrtHardwareDevice*) { return ""; }
uint32_t HardwareDevice_DeviceId(const OrtHardwareDevice*) { return 0; }
const OrtKeyValuePairs* HardwareDevice_Metadata(const OrtHardwareDevice* device) { return device ? &device->metadata : nullptr; }
OrtStatus* SessionOptionsAppendExecutionProvider_V2(OrtSessionOptions* options, OrtEnv* env, const OrtEpDevice* const* devices,
                                                    size_t count, const char* const*, const char* const*, size_t n_options) {
  return Guard(__func__, [&] {
    Need(options, "session_options");
    Need(env, "env");
    if (count == 0) Fail(ORT_INVALID_ARGUMENT, "no devices were given; GetEpDevices lists them");
    for (size_t i = 0; i < count; ++i) {
      if (Need(devices, "ep_devices")[i] != CpuDevice())
        Fail(ORT_INVALID_ARGUMENT, "device ", std::to_string(i), " is not of GetEpDevices");
    }
    if (n_options > 0) Fail(ORT_INVALID_ARGUMENT, kCpu, " has no options");
  });
}
// Any policy chooses the only device.
OrtStatus* SessionOptionsSetEpSelectionPolicy(OrtSessionOptions* options, OrtExecutionProviderDevicePolicy policy) {
  return Guard(__func__, [&] {
    Need(options, "session_options");
    if (policy < 0 || policy > 6) Fail(ORT_INVALID_ARGUMENT, "policy ", std::to_string(policy), " does not exist; policies are 0 to 6");
  });
}
OrtStatus* SessionGetEpDeviceForInputs(const OrtSession* session, const OrtEpDevice** out, size_t count) {
  return Guard(__func__, [&] {
    const size_t n = Need(session, "session")->file.inputs.size();
    if (count != n) Fail(ORT_FAIL, "room for ", std::to_string(count), " inputs; the model has ", std::to_string(n));
    std::fill_n(n > 0 ? Need(out, "inputs_ep_devices") : out, n, CpuDevice());
  });
}
OrtStatus* SessionGetEpDeviceForOutputs(const OrtSession* session, const OrtEpDevice** out, size_t count) {
  return Guard(__func__, [&] {
    const size_t n = Need(session, "session")->file.outputs.size();
    if (count != n) Fail(ORT_FAIL, "room for ", std::to_string(count), " outputs; the model has ", std::to_string(n));
    std::fill_n(n > 0 ? Need(out, "outputs_ep_devices") : out, n, CpuDevice());
  });
}

// ---- Shared allocators; Thalweg's pools of memory belong to its runtime, which all sessions share anyhow ----

OrtStatus* CreateArenaCfg(size_t, int, int, int, OrtArenaCfg** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = new OrtArenaCfg;
  });
}
OrtStatus* CreateArenaCfgV2(const char* const* keys, const size_t*, size_t count, OrtArenaCfg** out) {
  return Guard(__func__, [&] {
    OrtArenaCfg*& made = Result(out);
    constexpr std::string_view kKnown[] = {"max_mem",
                                           "arena_extend_strategy",
                                           "initial_chunk_size_bytes",
                                           "max_dead_bytes_per_chunk",
                                           "initial_growth_chunk_size_bytes",
                                           "max_power_of_two_extend_bytes"};
    for (size_t i = 0; i < count; ++i) {
      const std::string_view key = Need(Need(keys, "arena_config_keys")[i], "arena_config_keys[i]");
      if (std::find(std::begin(kKnown), std::end(kKnown), key) == std::end(kKnown))
        Fail(ORT_INVALID_ARGUMENT, "Invalid key found: '", key, "'");
    }
    made = new OrtArenaCfg;
  });
}
void ReleaseArenaCfg(OrtArenaCfg* config) { delete config; }

namespace {

void AddAllocator(OrtEnv* env, const OrtMemoryInfo* info) {
  Need(env, "env");
  CheckHost(info);
  const std::lock_guard lock(env->mu);
  if (std::find(env->allocators.begin(), env->allocators.end(), *info) != env->allocators.end()) {
    Fail(ORT_INVALID_ARGUMENT, "an allocator for memory '", info->name, "' is registered already; call UnregisterAllocator first");
  }
  env->allocators.push_back(*info);
}

}  // namespace

OrtStatus* CreateAndRegisterAllocator(OrtEnv* env, const OrtMemoryInfo* info, const OrtArenaCfg*) {
  return Guard(__func__, [&] { AddAllocator(env, info); });
}
OrtStatus* CreateAndRegisterAllocatorV2(OrtEnv* env, const char* provider, const OrtMemoryInfo* info, const OrtArenaCfg*,
                                        const char* const*, const char* const*, size_t) {
  return Guard(__func__, [&] {
    if (std::string_view(Need(provider, "provider_type")) != kCpu) {
      Fail(ORT_INVALID_ARGUMENT, "provider '", provider, "' is not available; available: ", kCpu);
    }
    AddAllocator(env, info);
  });
}
OrtStatus* UnregisterAllocator(OrtEnv* env, const OrtMemoryInfo* info) {
  return Guard(__func__, [&] {
    Need(info, "mem_info");
    const std::lock_guard lock(Need(env, "env")->mu);
    const auto found = std::find(env->allocators.begin(), env->allocators.end(), *info);
    if (found == env->allocators.end()) Fail(ORT_INVALID_ARGUMENT, "no allocator is registered for memory '", info->name, "'");
    env->allocators.erase(found);
  });
}

}  // namespace api
}  // namespace thalweg::ort
